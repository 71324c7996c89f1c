//! Speedscope's JSON, <https://www.speedscope.app/file-format-schema.json>.
//!
//! Written is one sampled profile for each value. What the schema has no place for stands in members
//! of our own, which other programs pass over: `labels` of the file, and `value` of a profile.

mod numbers;
mod profiles;
mod read;
mod write;

pub(crate) use read::{detect, read_input};
