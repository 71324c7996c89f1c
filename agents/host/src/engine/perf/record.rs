//! `perf record`: its arguments, the trial run, and what all recordings of a session share.

use std::collections::HashMap;
use std::process::ChildStdout;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use flamegraph::perf_data::Wanted;
use rustix::param::page_size;

use super::command::{self, Running};
use super::events::{arguments, Event};
use super::notes;
use super::program::{self, Perf};
use super::recording::Progress;
use crate::engine::api::Note;
use crate::os::host::{kernel_setting, memory_bytes, processors};
use crate::wire::outcome::{Code, Failure};
use crate::wire::sampling::Sampling;

/// If the agent is killed, perf stops by itself this many seconds after the requested time.
const LEASE: u64 = 30;
/// How long perf may take to open its events in a trial, on a busy host.
const TRIAL: Duration = Duration::from_secs(10);
/// Bytes of a sample with a deep stack.
const SAMPLE: u64 = 1100;
/// The least and the most pages of one processor's buffer.
const PAGES: (u64, u64) = (4, 2048);
/// The least buffer for events other than CPU time, which come in bursts.
const BURSTS: u64 = 1 << 20;
/// The part of the host's memory that the kernel may use for perf, and its bounds in bytes.
const MEMORY_PART: u64 = 32;
const MEMORY: (u64, u64) = (64 << 20, 1 << 30);
/// What the kernel roughly uses for one counter, in bytes.
const COUNTER: u64 = 2 << 10;

/// What the recordings of a session share: the program, the kernel's memory for samples, and the trial runs.
pub struct Shared {
    perf: OnceLock<Result<Perf, Failure>>,
    most_memory: u64,
    taken: AtomicU64,
    /// By perf's arguments.
    trials: Mutex<HashMap<Vec<String>, Arc<OnceLock<Tried>>>>,
}

impl Shared {
    pub fn of_host() -> Self {
        Self {
            perf: OnceLock::new(),
            most_memory: (memory_bytes() / MEMORY_PART).clamp(MEMORY.0, MEMORY.1),
            taken: AtomicU64::new(0),
            trials: Mutex::default(),
        }
    }

    /// It is searched once.
    pub fn perf(&self) -> Result<Perf, Failure> {
        self.perf.get_or_init(program::find).clone()
    }

    /// Reserve kernel memory for one more process. perf has a buffer for each processor and process: a few hundred
    /// processes on a large host would use gigabytes.
    fn take(&self, bytes: u64) -> Result<(), Failure> {
        let most = self.most_memory;
        let add = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= most);
        let taken = self
            .taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
        taken.map(drop).map_err(|_| {
            Failure::new(
                format!(
                    "this host has room for {} processes that perf records at once ({} MiB of the kernel's memory, {} KiB each)",
                    most / bytes.max(1),
                    most >> 20,
                    bytes >> 10
                ),
                "choose fewer processes with a narrower selector, or ask for a lower frequency or fewer events",
            )
            .coded(Code::MemoryLimit)
            .with("limit_bytes", most)
        })
    }
}

#[derive(Debug, Clone, Default)]
struct Tried {
    events: Vec<Event>,
    refused: Vec<Failure>,
    /// The buffer that the kernel allows.
    pages: u64,
    says_begin: bool,
}

/// A call of `perf record` for one process.
#[derive(Debug, Clone)]
pub struct Command {
    perf: Perf,
    pid: i32,
    kernel: bool,
    asked_frequency: u32,
    frequency: u32,
    seconds: u64,
    /// Pages of each processor's buffer.
    pages: u64,
    /// Whether perf says when its events start to count (version 6.0 and later).
    pub says_begin: bool,
}

impl Command {
    /// `kernel`: whether the kernel may be sampled. `duration`: seconds.
    pub fn new(perf: Perf, pid: i32, kernel: bool, sampling: &Sampling, duration: f64) -> Self {
        let most = kernel_setting("perf_event_max_sample_rate").unwrap_or(i32::MAX);
        let frequency = sampling.frequency.min(most.max(1) as u32);
        let bursts = sampling.events.iter().any(|event| event != "cpu");
        Self {
            perf,
            pid,
            kernel,
            asked_frequency: sampling.frequency,
            frequency,
            seconds: duration.ceil() as u64 + LEASE,
            pages: pages(frequency, bursts),
            says_begin: false,
        }
    }

    pub fn interval(&self, event: &Event) -> u64 {
        event.interval(self.frequency)
    }

    pub fn wanted(&self, events: &[Event]) -> Vec<Wanted> {
        arguments(events, self.frequency, self.kernel).0
    }

    /// The most samples per second, and the events of which each one is a sample: 10,000 per processor and 100,000 in
    /// all, since one thread folds them. None: all events are sampled at the requested frequency.
    pub fn most_samples(&self, events: &[Event]) -> Option<(f64, String)> {
        let (each, timed): (Vec<&Event>, Vec<&Event>) =
            events.iter().partition(|event| event.is_each_one());
        let processors = processors() as f64;
        let timed = timed.len() as f64 * f64::from(self.frequency) * processors;
        let most = (10_000.0 * processors).min(100_000.0) + timed;
        (!each.is_empty()).then(|| (most, names(each)))
    }

    pub fn notes(&self) -> Vec<Note> {
        let version = format!("perf {}", self.perf.version);
        let mut notes = vec![Note::plain(version).coded(Code::PerfVersion)];
        if self.frequency < self.asked_frequency {
            let frequency = self.frequency;
            notes.push(Note::of(
                Failure::new(
                    format!("{frequency} Hz is the most that the kernel allows (kernel.perf_event_max_sample_rate)"),
                    "use a lower frequency, or raise that limit",
                )
                .coded(Code::FrequencyLowered),
            ));
        }
        notes
    }

    /// Whether perf's times are those of the monotonic clock.
    pub fn knows_its_clock(&self) -> bool {
        self.perf.knows("clockid")
    }

    /// `process` is recorded while `workload` runs. None: the workload itself is recorded.
    fn arguments(
        &self,
        events: &[Event],
        process: Option<i32>,
        workload: &[String],
    ) -> Vec<String> {
        let fixed = ["record", "-o", "-", "--call-graph", "fp", "-B", "-N"];
        let mut all: Vec<String> = fixed.map(str::to_owned).to_vec();
        // Otherwise perf takes a second longer to end: it waits for BPF events.
        if self.perf.knows("no-bpf-event") {
            all.push("--no-bpf-event".to_owned());
        }
        if self.knows_its_clock() {
            all.extend(["-k", "CLOCK_MONOTONIC"].map(str::to_owned));
        }
        all.extend(["-m".to_owned(), self.pages.to_string()]);
        all.extend(arguments(events, self.frequency, self.kernel).1);
        if let Some(pid) = process {
            all.extend(["-p".to_owned(), pid.to_string()]);
        }
        all.push("--".to_owned());
        all.extend_from_slice(workload);
        all
    }

    /// The events that can be recorded of a process with this many threads, and why not the others. perf is tried once
    /// for all processes of a session, on a program of its own, so that errors come before the recording.
    pub fn possible(
        &mut self,
        events: Vec<Event>,
        threads: u64,
        shared: &Shared,
    ) -> Result<(Vec<Event>, Vec<Failure>), Failure> {
        let mut trials = shared.trials.lock().unwrap_or_else(PoisonError::into_inner);
        let arguments = self.arguments(&events, None, &[]);
        let trial = trials.entry(arguments).or_default().clone();
        drop(trials);
        let tried = trial.get_or_init(|| self.clone().try_out(events)).clone();
        self.pages = tried.pages;
        self.says_begin = tried.says_begin;
        if !tried.events.is_empty() {
            let buffer = (self.pages + 1).saturating_mul(page_size() as u64);
            let counters = threads.saturating_mul(tried.events.len() as u64 * COUNTER);
            shared.take(processors().saturating_mul(buffer.saturating_add(counters)))?;
        }
        Ok((tried.events, tried.refused))
    }

    fn try_out(mut self, events: Vec<Event>) -> Tried {
        let (mut fitting, mut refused) = (Vec::new(), Vec::new());
        match self.attempt(&events, TRIAL) {
            Ok(()) => fitting = events,
            Err(failure) if events.len() < 2 => refused.push(failure),
            Err(_) => {
                for event in events {
                    match self.attempt(std::slice::from_ref(&event), TRIAL) {
                        Ok(()) => fitting.push(event),
                        Err(failure) => refused.push(failure),
                    }
                }
            }
        }
        Tried {
            events: fitting,
            refused,
            pages: self.pages,
            says_begin: self.says_begin,
        }
    }

    /// Retries with smaller buffers if memory is missing. If perf does not answer in time, on a busy host, the events
    /// are taken to be possible.
    fn attempt(&mut self, events: &[Event], patience: Duration) -> Result<(), Failure> {
        let workload = [of_host("true")?];
        loop {
            let begin = Instant::now();
            let arguments = self.arguments(events, None, &workload);
            let ended = match command::run(&self.perf.path, &arguments, patience) {
                Ok(ended) => ended,
                Err(_) if begin.elapsed() >= patience => return Ok(()),
                Err(error) => {
                    return Err(Failure::plain(format!("perf {error}")).coded(Code::PerfFailed))
                }
            };
            let mut progress = Progress::default();
            progress.follow(&ended.output);
            self.says_begin |= progress.says_begin;
            if progress.opened {
                return Ok(());
            }
            if !notes::is_memory(&ended.words) || self.pages <= PAGES.0 {
                return Err(notes::end(ended.killed, &ended.words, &names(events)));
            }
            self.pages /= 4;
        }
    }

    /// Start perf; its recording comes from the stream. perf ends with its child: `cat` ends when the agent closes its
    /// stdin, and `timeout` ends it after some seconds.
    pub fn start(&self, events: &[Event]) -> Result<(Running, ChildStdout), Failure> {
        let lifeline = [
            of_host("timeout")?,
            self.seconds.to_string(),
            of_host("cat")?,
        ];
        let arguments = self.arguments(events, Some(self.pid), &lifeline);
        Running::start(&self.perf.path, &arguments).map_err(|error| {
            let path = self.perf.path.display();
            Failure::new(
                format!("{path} cannot be started: {error}"),
                "raise the limit of processes (ulimit -u)",
            )
            .coded(Code::PerfFailed)
        })
    }
}

/// The path of one of the host's own programs, without the agent's `PATH`.
fn of_host(name: &str) -> Result<String, Failure> {
    let mut folders = std::env::split_paths(command::SEARCH);
    let path = folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()));
    path.map(|path| path.display().to_string()).ok_or_else(|| {
        Failure::new(
            format!("this host has no program {name}, which limits perf's time"),
            format!("install coreutils or busybox, or link {name} in /bin"),
        )
        .coded(Code::ProgramMissing)
    })
}

pub fn names<'a>(events: impl IntoIterator<Item = &'a Event>) -> String {
    let names = events.into_iter().map(|event| event.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// For the samples of half a second, a power of two as perf needs it.
fn pages(frequency: u32, bursts: bool) -> u64 {
    let bytes = u64::from(frequency) * SAMPLE / 2;
    let bytes = if bursts { bytes.max(BURSTS) } else { bytes };
    let pages = bytes.div_ceil(page_size() as u64).next_power_of_two();
    pages.clamp(PAGES.0 * 4, PAGES.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn command(path: &Path, events: &str) -> (Command, Vec<Event>) {
        let sampling = Sampling::of(events);
        let events = sampling.events.iter().map(|name| Event::new(name).unwrap());
        let events = events.collect();
        (
            Command::new(Perf::at(path.to_owned()), 1, true, &sampling, 1.0),
            events,
        )
    }

    #[test]
    fn buffers_hold_half_a_second() {
        let size = page_size() as u64;
        assert_eq!(pages(1, false), 16);
        assert!((300 * SAMPLE / 2..300 * SAMPLE * 2).contains(&(pages(300, false) * size)));
        assert!(pages(300, true) * size >= BURSTS);
        assert_eq!(pages(u32::MAX, false), 2048);
    }

    #[test]
    fn how_many_samples_are_too_many() {
        let most = |names: &str| {
            let (command, events) = command(Path::new("/none"), names);
            command.most_samples(&events)
        };
        assert_eq!(most("cpu cpu-clock"), None);
        let (faults, _) = most("page-faults").unwrap();
        let (more, names) = most("page-faults cpu offcpu").unwrap();
        assert!(faults <= 100_000.0 && more > faults);
        assert_eq!(names, "page-faults, offcpu");
    }
}
