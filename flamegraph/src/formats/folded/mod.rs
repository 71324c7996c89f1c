//! Folded text: `root;...;leaf count`, a stack a line.
//!
//! A line is split at its last space; the stack before it may contain spaces. Lines without a count are malformed: they
//! are counted and left out. A count that cannot be added is an error. An empty stack is the root itself.

mod adder;
mod blocks;
mod read;
mod shared;
mod write;

pub(crate) use adder::{is_comment, split_count, Tally, Wrong};
pub(crate) use read::{is_differential, lines, read_input};
