//! Bytes: input, compression, encoded numbers, and output.

mod compression;
mod input;
#[cfg(feature = "formats")]
mod utf16;
mod writer_thread;
#[cfg(feature = "formats")]
mod zstd;

pub(crate) mod wire;

pub(crate) use compression::uncompressed;
pub(crate) use input::{Input, HEAD_BYTES};
pub use writer_thread::write_by_thread;
