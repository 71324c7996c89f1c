//! What `perf record -o -` writes, folded while it is written.
//!
//! Stacks are kept as addresses, each distinct one once, in bounded memory. Names are looked for when the recording
//! is over ([`Live::finish`]): only then a JVM is asked which code it had where.
//!
//! How perf is to be called, with the process's pid (root, or the process's own user):
//!
//! ```text
//! perf record -q -o - --call-graph fp -p PID -F 300 -e cpu-clock                          CPU time, exact: its period is in ns
//! perf record -q -o - --call-graph fp -p PID -e context-switches/period=1/ --switch-events   off-CPU
//! ```
//!
//! Both events may stand in one command. perf follows children that the process makes: `Finish::pid` leaves them out.
//! With `-k CLOCK_MONOTONIC` the caller knows the stream's clock ([`Live::begin_by`], [`Live::end_by`]).
//!
//! Off-CPU: `context-switches` gives the stack of a thread that leaves the CPU, and the record of the switch that
//! brings it back says when. No tracepoint is needed. A thread that was preempted did not wait and is
//! counted separately. Where the kernel may not be seen (no root, `perf_event_paranoid` 2) there are no such samples, but still
//! the switches: waits are then known by thread alone. A wait that began before the recording is not known.

use std::io::{BufReader, Read};
use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use super::finish;
use super::groups::Groups;
use super::header::Header;
use super::modules::Modules;
use super::moments::Moments;
use super::off_cpu::OffCpu;
use super::processes::Processes;
use super::records::Records;
use super::stacks::{LastStacks, StackTree, Walker};
use super::tally::Tally;
use crate::formats::ReadOptions;
use crate::profile::{Limits, Profile, Result, SliceOf, Unknown};
use crate::symbols::JitMaps;
use crate::symbols::SymbolOptions;

/// What is held at most; what does not fit is left out and counted ([`Recorded::left_out`]).
#[derive(Clone, Copy, Debug)]
pub struct LiveLimits {
    /// Distinct stacks, as nodes of a tree of addresses.
    pub nodes: usize,
    /// Distinct addresses.
    pub places: usize,
    /// Threads that are known at the same time, and groups of them.
    pub threads: usize,
    /// Mapped stretches of all processes, and the files behind them.
    pub mappings: usize,
    /// Bytes of records that wait for their turn.
    pub waiting_bytes: usize,
    /// Nodes of a profile times its values; more is an error.
    pub cells: usize,
}

impl Default for LiveLimits {
    fn default() -> LiveLimits {
        LiveLimits {
            nodes: 1 << 20,
            places: 1 << 19,
            threads: 1 << 16,
            mappings: 1 << 17,
            waiting_bytes: 16 << 20,
            cells: Limits::default().cells,
        }
    }
}

/// What is counted of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// `samples` and `cpu` nanoseconds: the periods of `cpu-clock` and `task-clock`; for another event its periods
    /// in proportion, such that they add up to [`Finish::cpu_nanoseconds`].
    CpuTime,
    /// One column, called as the event that was asked for: the sum of the periods.
    Count,
    /// `offcpu_samples` and `offcpu` nanoseconds, each stack below a frame that says what was waited for.
    OffCpu,
}

/// One profile that is wanted of the stream.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What the user asked for.
    pub event: String,
    /// What perf was asked for, which it mostly calls the event: `page-faults/period=1/u`.
    pub perf: String,
    /// The event meant where none is called so, whatever was asked of it behind this name: `page-faults`.
    pub name: String,
    /// What is counted.
    pub counted: Counted,
}

/// How a recording is made a profile of.
#[derive(Clone, Copy, Debug)]
pub struct Finish<'a> {
    /// Only samples of this process; `None`: of all.
    pub pid: Option<u32>,
    /// Where symbols are looked for.
    pub symbols: &'a SymbolOptions,
    /// What code each process made at run time. One without a map: its `perf-PID.map`, if there is one.
    pub jit: &'a JitMaps,
    /// The CPU time that the processes used, for events that do not measure time.
    pub cpu_nanoseconds: Option<u64>,
}

/// What a recording yielded.
#[derive(Debug, Default)]
pub struct Recorded {
    /// In the order they were wanted; events the stream did not have are missing.
    pub events: Vec<RecordedEvent>,
    /// Samples and other records that perf or the kernel lost.
    pub lost: u64,
    /// Records that were cut short.
    pub malformed: u64,
    /// Samples left out because more is not held.
    pub left_out: u64,
    /// Nanoseconds that threads were ready to run and did not (off-CPU only; in no profile).
    pub preempted: u64,
}

/// One profile of a recording. Its outermost frames are groups of threads: `[pool-N-thread-N]`.
pub struct RecordedEvent {
    /// As it was asked for.
    pub event: String,
    /// What perf really recorded.
    pub source: String,
    /// The profile.
    pub profile: Profile,
    /// How many samples are in it (off-CPU: waits).
    pub taken: u64,
    /// What could not be named.
    pub unknown: Unknown,
    /// Samples whose user stack does not reach the begin of its thread.
    pub broken: u64,
}

impl std::fmt::Debug for RecordedEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} from {}: {} samples",
            self.event, self.source, self.taken
        )
    }
}

/// A recording in the making; see the module. Each is for one stream.
pub struct Live {
    /// What a stream is asked for; a file yields all its events, folded by `script` as what `perf script` prints of it.
    pub(super) wanted: Vec<Wanted>,
    pub(super) script: Option<ReadOptions>,
    pub(super) limits: LiveLimits,
    pub(super) begin: Arc<AtomicU64>,
    /// When the first sample was taken, or the first wait began.
    pub(super) first: Option<u64>,
    pub(super) end: Arc<AtomicU64>,
    pub(super) newest: u64,
    pub(super) header: Header,
    /// What `wanted` asks of each event of the stream, and the header's `changes` when that was found out.
    pub(super) by_event: Vec<Vec<usize>>,
    pub(super) changes: u32,
    pub(super) processes: Processes,
    pub(super) modules: Modules,
    pub(super) stacks: StackTree,
    pub(super) walker: Walker,
    pub(super) last: LastStacks,
    pub(super) groups: Groups,
    pub(super) tallies: Vec<Tally>,
    /// When samples were taken, if that is asked for.
    pub(super) moments: Option<Moments>,
    pub(super) off_cpu: OffCpu,
    pub(super) lost_records: u64,
    pub(super) lost_samples: u64,
    pub(super) malformed: u64,
    pub(super) left_out: u64,
    /// Samples whose user stack was copied and is not walked.
    pub(super) copied_stacks: u64,
}

impl Live {
    /// Keeps what is wanted of the stream, within the limits.
    pub fn new(wanted: Vec<Wanted>, limits: LiveLimits) -> Live {
        Live::with(wanted, None, limits)
    }

    /// Keeps all events of a file.
    pub(super) fn of_file(script: ReadOptions) -> Live {
        let limits = LiveLimits {
            nodes: 1 << 28,
            places: 1 << 26,
            threads: 1 << 22,
            mappings: 1 << 21,
            ..LiveLimits::default()
        };
        Live::with(Vec::new(), Some(script), limits)
    }

    fn with(wanted: Vec<Wanted>, script: Option<ReadOptions>, limits: LiveLimits) -> Live {
        Live {
            tallies: wanted.iter().map(|_| Tally::default()).collect(),
            wanted,
            groups: Groups::new(limits.threads, script.clone()),
            script,
            limits,
            begin: Arc::default(),
            first: None,
            end: Arc::new(AtomicU64::new(u64::MAX)),
            newest: 0,
            header: Header::default(),
            by_event: Vec::new(),
            // None was looked at.
            changes: u32::MAX,
            processes: Processes::new(&limits),
            modules: Modules::new(limits.mappings),
            stacks: StackTree::new(limits.nodes, limits.places),
            walker: Walker::default(),
            last: LastStacks::default(),
            moments: None,
            off_cpu: OffCpu::new(limits.threads),
            lost_records: 0,
            lost_samples: 0,
            malformed: 0,
            left_out: 0,
            copied_stacks: 0,
        }
    }

    /// When the recording begins, on the stream's clock; it may be set while the stream is read, 0 is not yet. Earlier
    /// samples are left out, and waits last from then. By default the first sample is the begin.
    pub fn begin_by(&mut self, nanoseconds: Arc<AtomicU64>) {
        self.begin = nanoseconds;
    }

    /// When the recording ends, on the stream's clock; it may be set while the stream is read, `u64::MAX` is not yet.
    /// Later records are left out, and waits that have not ended last until then. By default the last record is the
    /// end.
    pub fn end_by(&mut self, nanoseconds: Arc<AtomicU64>) {
        self.end = nanoseconds;
    }

    /// Keeps when samples were taken: profiles get [`Times`](crate::Times), all together with at most `rows` rows. Waits
    /// count when they begin. `clock` is one moment in nanoseconds of the stream's clock and in microseconds since 1970.
    pub fn keep_times(&mut self, rows: usize, clock: (u64, i64), slices: Option<Arc<dyn SliceOf>>) {
        self.moments = Some(Moments::new(rows, self.wanted.len(), clock, slices));
    }

    /// Reads the stream to its end. What was read before an error is kept, and can be finished.
    pub fn read(&mut self, input: impl Read) -> Result<()> {
        let input = BufReader::with_capacity(1 << 16, input);
        let records = Records::piped(input, self.limits.waiting_bytes)?;
        self.read_records(records)
    }

    pub(super) fn read_records<R: Read>(&mut self, mut records: Records<R>) -> Result<()> {
        let read = self.take_all(&mut records);
        self.malformed += records.cut_short;
        self.header = records.header;
        read
    }

    /// Names what was recorded. May be called again, for another process.
    pub fn finish(&mut self, finish: &Finish<'_>) -> Result<Recorded> {
        finish::finish(self, finish)
    }
}
