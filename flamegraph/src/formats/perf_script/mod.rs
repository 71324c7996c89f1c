//! The text of `perf script`, folded as the FlameGraph scripts' stackcollapse-perf.pl folds it.
//!
//! A sample counts by its period where one is printed, else as one. Every event is a value of its own,
//! the first one seen the first: what the scripts take by default is the first value.
//!
//! Without the feature `formats` there is only what names frames, which perf.data needs as well.

#[cfg(feature = "formats")]
mod line;
#[cfg(feature = "formats")]
mod lines;
mod names;
#[cfg(feature = "formats")]
mod read;
#[cfg(feature = "formats")]
mod symbols;

pub(crate) use names::{Names, StackLine, MOST_INLINED};
#[cfg(feature = "formats")]
pub(crate) use read::{detect, read_input};
