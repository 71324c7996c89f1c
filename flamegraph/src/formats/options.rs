//! What a caller may ask of a reader.

use std::collections::HashSet;
use std::sync::Arc;

use crate::formats::Format;
use crate::ops::Threads;
use crate::profile::{Error, Limits, Result, SliceOf};
use crate::symbols::SymbolOptions;

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
    /// Native allocations that also count as not freed (JFR): their times in ticks, and their addresses.
    pub unfreed: Option<Arc<HashSet<(i64, u64)>>>,
    /// Only samples of this time, in seconds from the recording's start (JFR): the first and the last.
    pub time: Option<(f64, f64)>,
    /// Keep when samples were taken (JFR), in at most [`Limits::rows`] rows. A profile has the times of one event.
    pub times: bool,
    /// The slices of samples, if their times are kept.
    pub slices: Option<Arc<dyn SliceOf>>,
    /// For `perf script` text and perf.data.
    pub perf: PerfOptions,
    /// For perf.data: where symbols are looked for.
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
            ("times", self.times, JFR),
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
