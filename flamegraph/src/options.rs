//! What a caller may ask of a reader.

#[cfg(feature = "recordings")]
use std::path::PathBuf;
#[cfg(feature = "recordings")]
use std::sync::Arc;

use crate::error::{Error, Result};
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

    /// Refuses what a format has nothing for: passed over, it would seem to have been done.
    pub(crate) fn check_for(&self, format: Format) -> Result<()> {
        const JFR: &[&str] = &["jfr"];
        const PERF: &[&str] = &["perf-data", "perf-script"];
        let perf = &self.perf;
        let asked = [
            ("time", self.time.is_some(), JFR),
            ("estimate", self.estimate, JFR),
            ("off-cpu", self.off_cpu, JFR),
            ("pid", perf.pid, PERF),
            ("tid", perf.tid, PERF),
            ("kernel", perf.kernel, PERF),
            ("jit", perf.jit, PERF),
            ("addrs", perf.addrs, PERF),
            ("event-filter", perf.event_filter.is_some(), PERF),
        ];
        let is = format.name();
        let unfit = |&&(_, asked, formats): &&(_, bool, &[&str])| asked && !formats.contains(&is);
        match asked.iter().find(unfit) {
            None => Ok(()),
            Some((option, _, formats)) => Err(Error::Usage(format!(
                "the option {option} is for {} only, and this is {is}",
                formats.join(" and ")
            ))),
        }
    }
}

/// An event was asked for that a recording has not; it has these.
#[cfg(feature = "recordings")]
pub(crate) fn no_event<'a>(wanted: &str, there_are: impl Iterator<Item = &'a str>) -> Error {
    const SHOWN: usize = 32;
    let mut names: Vec<&str> = Vec::new();
    for name in there_are {
        if !names.contains(&name) && names.len() <= SHOWN {
            names.push(name);
        }
    }
    if names.len() > SHOWN {
        names[SHOWN] = "and others";
    }
    let names = names.join(", ");
    Error::Usage(format!(
        "no event {wanted:?} in this recording; there are: {names}"
    ))
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
    /// How much memory symbols may take, in bytes; and so much of each file is read at most.
    pub memory: usize,
    /// Whether symbols are still wanted.
    pub go_on: GoOn,
}

/// Asked again and again during long work: whether to go on with it. Whoever answers may rest before.
#[cfg(feature = "recordings")]
#[derive(Clone)]
pub struct GoOn(Arc<dyn Fn() -> bool + Send + Sync>);

#[cfg(feature = "recordings")]
impl GoOn {
    /// This is what is asked.
    pub fn new(ask: impl Fn() -> bool + Send + Sync + 'static) -> GoOn {
        GoOn(Arc::new(ask))
    }

    pub(crate) fn ask(&self) -> bool {
        (self.0)()
    }
}

#[cfg(feature = "recordings")]
impl Default for GoOn {
    /// To the end, without rest.
    fn default() -> GoOn {
        GoOn::new(|| true)
    }
}

#[cfg(feature = "recordings")]
impl std::fmt::Debug for GoOn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("GoOn")
    }
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
            memory: SymbolOptions::MEMORY,
            go_on: GoOn::default(),
        }
    }
}

#[cfg(feature = "recordings")]
impl SymbolOptions {
    /// The usual memory, in bytes.
    const MEMORY: usize = 1 << 30;

    /// Looks nowhere: every frame is of an unknown symbol.
    pub fn none() -> SymbolOptions {
        SymbolOptions {
            root: PathBuf::from("/dev/null"),
            process_root: None,
            perf_maps: Vec::new(),
            build_id_cache: None,
            kallsyms: None,
            kallsyms_text: None,
            memory: SymbolOptions::MEMORY,
            go_on: GoOn::default(),
        }
    }
}
