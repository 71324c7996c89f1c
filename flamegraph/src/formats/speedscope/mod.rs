//! Speedscope's JSON, <https://www.speedscope.app/file-format-schema.json>.
//!
//! A file has one sampled profile for each value. Members of our own, which other programs ignore, extend the schema:
//! `labels` of the file, and `value` of a profile.

mod numbers;
mod profiles;
mod read;
mod write;

pub(crate) use numbers::Fractions;
pub(crate) use read::{detect, read_input};
