//! Pictures, the viewer's data, and the list of formats that can be written.

pub mod svg;
#[cfg(feature = "formats")]
mod viewer;
mod write;

#[cfg(feature = "formats")]
pub use viewer::{PartColumn, ViewerWriter};
pub use write::{write, WriteFormat, WriteOptions};
