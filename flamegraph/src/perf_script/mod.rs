//! The text of `perf script`, folded as the FlameGraph scripts' stackcollapse-perf.pl folds it.
//!
//! A sample counts by its period where one is printed, else as one. Every event is a value of its own,
//! the first one seen the first: what the scripts take by default is the first value.

mod line;
mod names;
mod read;
mod rust_symbol;
mod symbols;

pub(crate) use line::StackLine;
pub(crate) use names::Names;
pub(crate) use read::{detect, read_input};
