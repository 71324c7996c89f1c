//! The text of `perf script`, folded as the FlameGraph scripts' stackcollapse-perf.pl folds it.
//!
//! A sample counts by its period if that is printed, else as one. Every event is a value, in order of appearance. The
//! first value is the one that the scripts use by default.
//!
//! Without the feature `formats` only the naming of frames is compiled, which perf.data needs too.

#[cfg(feature = "formats")]
mod line;
#[cfg(feature = "formats")]
mod lines;
mod names;
#[cfg(feature = "formats")]
mod read;
#[cfg(feature = "formats")]
mod symbols;

#[cfg(feature = "formats")]
pub(crate) use lines::Lines;
pub(crate) use names::{Names, StackLine, MOST_INLINED};
#[cfg(feature = "formats")]
pub(crate) use read::{detect, read_input};
