//! Call trees of stacks: formats in and out, merging, pictures.
//!
//! A [`Profile`] is a call tree over interned frames with typed values. [`read`], which detects the
//! format, builds one; writers (folded, pprof, SVG, the viewer's data) walk it. Nothing here is recursive, and
//! everything a reader gets is held to [`Limits`].

mod formats;
mod ops;
mod profile;
mod render;
mod source;
mod symbols;

pub use formats::{
    perf_data, read, read_file, read_jfr, read_jfr_part, unfreed, Format, PerfOptions, ReadOptions,
    Recording, Sampled, Settings, MOST_LIVE,
};
#[cfg(feature = "formats")]
pub use formats::{
    GroupedThread, Lock, Place, Thread, ThreadDump, ThreadDumps, ThreadGroup, WaitsFor,
};
pub use ops::{
    category_label, category_patterns, frame_category, read_all, read_mean, smaller_frames, Change,
    Diff, Difference, Distance, Keep, MeanMerger, Method, MethodSums, NameRules, NamedWait,
    NodeRow, Outliers, Pattern, Samples, StackTable, Stacks, SumsOf, SureCallers, Threads, Waiter,
    Work, WorkTable, BROKEN_STACKS, DOING, DOING_KINDS,
};
pub use profile::{
    band_of, of_parts, Error, Kind, Labels, LeftOut, Limits, Merger, Profile, Result, Row, Slice,
    SliceOf, ThreadId, Times, TimesBuilder, ValueType, BUCKET,
};
pub use render::{svg, write, PartColumn, ViewerWriter, WriteFormat, WriteOptions};
pub use source::write_by_thread;
pub use symbols::{python_frame, GoOn, Open, SymbolOptions};
