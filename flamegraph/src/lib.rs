//! Call trees of stacks: formats in and out, merging, pictures.
//!
//! A [`Profile`] is a call tree over interned frames with typed values. Readers ([`read`], which
//! detects the format, and those of [`folded`]) build one; writers (folded, pprof, SVG, the
//! viewer's data) walk it. Nothing here is recursive, and everything a reader gets is held to [`Limits`].

mod formats;
mod ops;
mod profile;
mod render;
mod source;
#[cfg(feature = "recordings")]
mod symbols;

#[cfg(feature = "recordings")]
pub use formats::perf_data;
pub use formats::{
    folded, read, read_file, read_path, read_stream, Format, PerfOptions, ReadOptions,
};
#[cfg(feature = "recordings")]
pub use formats::{read_jfr, Recording, Sampled};
#[cfg(feature = "formats")]
pub use ops::{
    category_label, category_patterns, frame_category, Difference, Distance, MethodSums, Outliers,
    Pattern, Samples, StackTable, Stacks, SumsOf, Work, WorkRules, WorkTable,
};
pub use ops::{
    read_all, read_mean, smaller_frames, Change, Diff, DiffNode, Keep, MeanMerger, Method, NodeRow,
    Threads, Tier,
};
#[cfg(feature = "recordings")]
pub use ops::{NameRules, WAIT_FRAMES};
pub use profile::{
    band_of, Error, Kind, Labels, LeftOut, Limits, Merger, Profile, Result, Row, Slice, SliceOf,
    ThreadId, Times, TimesBuilder, ValueType, BUCKET,
};
pub use render::{svg, write, WriteFormat, WriteOptions};
#[cfg(feature = "formats")]
pub use render::{PartColumn, ViewerWriter};
#[cfg(feature = "recordings")]
pub use symbols::{python_frame, GoOn, SymbolOptions};
