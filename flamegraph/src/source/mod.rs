//! Bytes: input, compression, and encoded numbers.

mod compression;
mod input;
#[cfg(feature = "formats")]
mod zstd;

pub(crate) mod wire;

pub(crate) use compression::uncompressed;
pub(crate) use input::{Input, HEAD_BYTES};
