//! Pictures, the viewer's data, and the list of formats that can be written.

pub mod svg;
mod viewer;
mod write;

pub use viewer::{PartColumn, ViewerWriter};
pub use write::{write, WriteFormat, WriteOptions};
