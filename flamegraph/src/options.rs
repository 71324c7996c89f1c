//! What a caller may ask of a reader.

#[cfg(feature = "recordings")]
use std::path::PathBuf;
#[cfg(feature = "recordings")]
use std::sync::Arc;

use crate::input::Format;
use crate::limits::Limits;
use crate::threads::Threads;

/// How to read. The default detects the format and takes everything a file has.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format; `None`: by content.
    pub format: Option<Format>,
    /// What is accepted at most.
    pub limits: Limits,
    /// What of a sample's thread stands at the root of its stack, where the format knows threads.
    pub threads: Threads,
    /// Sampled allocations count as all those they stand for (JFR): bytes, and objects of the sampled
    /// one's size. Otherwise each counts as the recording has it.
    pub estimate: bool,
    /// Wall-clock samples that do not run also count as `offcpu` (JFR), below a frame that says what
    /// they wait for.
    pub off_cpu: bool,
    /// Only samples of this time, in seconds from the recording's start (JFR): the first and the last.
    pub time: Option<(f64, f64)>,
    /// For `perf script` text and perf.data.
    pub perf: PerfOptions,
    /// For perf.data: where symbols are looked for.
    #[cfg(feature = "recordings")]
    pub symbols: SymbolOptions,
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

/// Where the symbols of a perf.data file are looked for. The default is this machine, as `perf script` does.
#[cfg(feature = "recordings")]
#[derive(Clone, Debug)]
pub struct SymbolOptions {
    /// The folder under which programs, libraries and `usr/lib/debug` are: `/`.
    pub root: PathBuf,
    /// Where the processes that still run show their own files: `/proc`.
    pub process_root: Option<PathBuf>,
    /// Folders with `perf-PID.map`: `/tmp`.
    pub perf_maps: Vec<PathBuf>,
    /// perf's cache of files by build id: `~/.debug`.
    pub build_id_cache: Option<PathBuf>,
    /// The symbols of the running kernel: `/proc/kallsyms`.
    pub kallsyms: Option<PathBuf>,
    /// The same, read by a caller who has the right to; stronger than `kallsyms`.
    pub kallsyms_text: Option<Arc<[u8]>>,
}

#[cfg(feature = "recordings")]
impl Default for SymbolOptions {
    fn default() -> SymbolOptions {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        SymbolOptions {
            root: PathBuf::from("/"),
            process_root: Some(PathBuf::from("/proc")),
            perf_maps: vec![PathBuf::from("/tmp")],
            build_id_cache: home.map(|home| home.join(".debug")),
            kallsyms: Some(PathBuf::from("/proc/kallsyms")),
            kallsyms_text: None,
        }
    }
}

#[cfg(feature = "recordings")]
impl SymbolOptions {
    /// Looks nowhere: every frame is of an unknown symbol.
    pub fn none() -> SymbolOptions {
        SymbolOptions {
            root: PathBuf::from("/dev/null"),
            process_root: None,
            perf_maps: Vec::new(),
            build_id_cache: None,
            kallsyms: None,
            kallsyms_text: None,
        }
    }
}
