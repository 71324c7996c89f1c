//! Bytes: where they come from, what they are packed in, and numbers in them.

mod compression;
mod input;

pub(crate) mod wire;

pub(crate) use compression::{uncompressed, Garbage};
pub(crate) use input::{Input, HEAD_BYTES};
