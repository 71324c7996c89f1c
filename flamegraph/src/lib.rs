//! Call trees of stacks: formats in and out, merging, pictures.
//!
//! A [`Profile`] is a call tree over interned frames with typed values. Readers ([`read`], which
//! detects the format, and those of [`folded`]) build one; writers (folded, pprof, SVG, the
//! viewer's data) walk it. Nothing here is recursive, and everything a reader gets is held to [`Limits`].

pub mod folded;
pub mod svg;

mod compact;
mod compression;
mod error;
mod frames;
mod input;
#[cfg(feature = "recordings")]
mod jfr;
mod json;
mod limits;
#[cfg(feature = "formats")]
mod lines;
mod many;
mod merge;
mod modules;
mod ops;
mod options;
#[cfg(feature = "recordings")]
pub mod perf_data;
#[cfg(feature = "recordings")]
mod perf_script;
mod pprof;
mod profile;
mod proto;
#[cfg(feature = "formats")]
mod speedscope;
#[cfg(feature = "formats")]
mod stack;
mod suffix;
mod threads;
mod tree;
mod values;
#[cfg(feature = "formats")]
mod viewer;
mod walk;
mod wire;
mod write;

pub use error::{Error, Result};
pub use frames::Kind;
pub use input::{read, read_file, read_path, read_stream, Format};
pub use limits::Limits;
pub use many::{read_all, read_mean};
pub use merge::Merger;
pub use ops::{smaller_frames, Change, Diff, DiffNode, Keep, MeanMerger, Method, NodeRow, Tier};
#[cfg(feature = "recordings")]
pub use options::{GoOn, SymbolOptions};
pub use options::{PerfOptions, ReadOptions};
pub use profile::{Labels, Profile};
pub use threads::Threads;
pub use values::ValueType;
pub use write::{write, WriteFormat, WriteOptions};

#[cfg(feature = "recordings")]
pub use jfr::{read_jfr, Recording, Sampled};
#[cfg(feature = "recordings")]
pub use ops::NameRules;
#[cfg(feature = "formats")]
pub use ops::{Difference, Distance, Outliers, Pattern};
#[cfg(feature = "formats")]
pub use viewer::{ThreadColumn, ViewerWriter};
