//! Bytes: where they come from, what they are packed in, and numbers in them.

mod compression;
mod input;
#[cfg(feature = "formats")]
mod zstd;

pub(crate) mod wire;

pub(crate) use compression::uncompressed;
pub(crate) use input::{Input, HEAD_BYTES};
