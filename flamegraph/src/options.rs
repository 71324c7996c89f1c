//! What a caller may ask of a reader.

use crate::input::Format;
use crate::limits::Limits;

/// How to read. The default detects the format and takes everything a file has.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format; `None`: by content.
    pub format: Option<Format>,
    /// What is accepted at most.
    pub limits: Limits,
    /// Put a frame `[name tid=N]` at the root of each stack, where the format knows threads.
    pub threads: bool,
    /// For `perf script` text and perf.data.
    pub perf: PerfOptions,
}

impl ReadOptions {
    /// Everything by default but the format.
    pub fn of(format: Option<Format>) -> ReadOptions {
        ReadOptions {
            format,
            ..ReadOptions::default()
        }
    }
}

/// The options of `stackcollapse-perf.pl`, by its names.
#[derive(Clone, Debug, Default)]
pub struct PerfOptions {
    /// The root frame is `comm-pid`.
    pub pid: bool,
    /// The root frame is `comm-pid/tid`; stronger than `pid`.
    pub tid: bool,
    /// Kernel frames are annotated `_[k]`.
    pub kernel: bool,
    /// Frames of JIT code are annotated `_[j]`.
    pub jit: bool,
    /// Frames without a symbol have their address as their name.
    pub addrs: bool,
    /// Only samples of this event; `None`: of all events, each its own value.
    pub event_filter: Option<String>,
}
