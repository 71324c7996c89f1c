//! `perf record`: how it is called and tried out.

use std::path::Path;
use std::process::ChildStdout;
use std::time::{Duration, Instant};

use rustix::param::page_size;

use super::budget;
use super::command::{self, Running};
use super::events::{self, Event, CPU_CLOCK};
use super::find::Perf;
use super::shared::Shared;
use super::stream;
use super::words;
use crate::engine::api::Note;
use crate::os::proc::read_text;
use crate::wire::outcome::{Code, Failure};
use crate::wire::sampling::Sampling;

/// perf stops by itself this long after the asked time, in seconds: should the agent be killed.
const LEASE: u64 = 30;
/// How long perf may take to open its events when it is tried out, on a busy host.
const TRIAL: Duration = Duration::from_secs(10);
/// Bytes of a sample with a deep stack.
const SAMPLE: u64 = 1100;
/// A buffer of fewer pages is not tried, and one of more is no use.
const PAGES: (u64, u64) = (4, 2048);
/// For events that come as often as they like: a MiB for each processor.
const OFTEN: u64 = 1 << 20;
const MAX_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// A call of `perf record` for one process.
#[derive(Debug, Clone)]
pub struct Command {
    perf: Perf,
    pid: i32,
    pub kernel: bool,
    asked_frequency: u32,
    pub frequency: u32,
    seconds: u64,
    /// Of the buffer that each processor writes samples to.
    pages: u64,
    /// Whether perf tells from when on its events count.
    pub tells_that_events_count: bool,
}

/// What came of a trial: the events that can be recorded, why not the others, the buffer that the kernel allows, and
/// whether perf tells from when on events count.
#[derive(Debug, Clone, Default)]
pub struct Tried {
    pub events: Vec<Event>,
    pub refused: Vec<Failure>,
    pub pages: u64,
    pub tells_that_events_count: bool,
}

impl Command {
    /// `kernel`: whether samples may be taken there.
    pub fn new(perf: Perf, pid: i32, kernel: bool, sampling: &Sampling) -> Self {
        let most = read_text(MAX_RATE, 64).and_then(|text| text.trim().parse::<u32>().ok());
        let frequency = sampling.frequency.min(most.unwrap_or(u32::MAX).max(1));
        Self {
            tells_that_events_count: perf.tells_that_events_count(),
            perf,
            pid,
            kernel,
            asked_frequency: sampling.frequency,
            frequency,
            seconds: sampling.duration.ceil() as u64 + LEASE,
            pages: pages(
                frequency,
                sampling.events.iter().all(|event| event == "cpu"),
            ),
        }
    }

    /// What one sample of this event stands for.
    pub fn interval(&self, event: &Event) -> u64 {
        event.interval(self.frequency)
    }

    /// What the kernel keeps for it, in bytes, of a process of so many threads.
    pub fn memory(&self, threads: u64, events: usize) -> u64 {
        budget::bytes(self.pages, threads, events)
    }

    /// What the user should know of it.
    pub fn notes(&self) -> Vec<Note> {
        let mut notes =
            vec![Note::plain(format!("perf {}", self.perf.version)).coded(Code::PerfVersion)];
        if self.frequency < self.asked_frequency {
            notes.push(Note::of(
                Failure::new(
                    format!(
                        "{} Hz is the most that the kernel allows (kernel.perf_event_max_sample_rate)",
                        self.frequency
                    ),
                    "use a lower frequency, or raise that limit",
                )
                .coded(Code::FrequencyLowered),
            ));
        }
        notes
    }

    /// Whether perf's times are those of the monotonic clock: not where this agent's clock is another than the kernel's own.
    pub fn knows_its_clock(&self) -> bool {
        let offsets = read_text("/proc/self/timens_offsets", 256).unwrap_or_default();
        self.perf.knows("clockid") && has_no_offset(&offsets)
    }

    fn arguments(&self, events: &[Event]) -> Vec<String> {
        let fixed = ["record", "-o", "-", "--call-graph", "fp", "-B", "-N"];
        let mut arguments: Vec<String> = fixed.map(str::to_owned).to_vec();
        // Else perf takes a second longer to end: it waits for news of BPF programs.
        if self.perf.knows("no-bpf-event") {
            arguments.push("--no-bpf-event".to_owned());
        }
        if self.perf.knows("clockid") {
            arguments.extend(["-k", "CLOCK_MONOTONIC"].map(str::to_owned));
        }
        arguments.extend(["-m".to_owned(), self.pages.to_string()]);
        arguments.extend(events::arguments(events, self.frequency, self.kernel));
        arguments
    }

    /// What perf runs for a while, and whom it records meanwhile: what it runs itself where that is None.
    fn of(process: Option<i32>, workload: &[String]) -> Vec<String> {
        let process = process.map(|pid| ["-p".to_owned(), pid.to_string()]);
        let mut arguments: Vec<String> = process.into_iter().flatten().collect();
        arguments.push("--".to_owned());
        arguments.extend_from_slice(workload);
        arguments
    }

    /// Which of these events can be recorded, and why not the others. perf is tried out once for all processes of a
    /// session, on what it runs itself, and nothing is kept: so the user hears of what cannot be before the time that he
    /// waits for.
    pub fn possible(&mut self, events: Vec<Event>, shared: &Shared) -> (Vec<Event>, Vec<Failure>) {
        let tried = shared.tried(self.arguments(&events), || {
            let mut command = self.clone();
            let together = command.attempt(&events, TRIAL);
            let (events, refused) = match together {
                Ok(()) => (events, Vec::new()),
                Err(failure) if events.len() < 2 => (Vec::new(), vec![failure]),
                Err(_) => command.one_by_one(events),
            };
            Tried {
                events,
                refused,
                pages: command.pages,
                tells_that_events_count: command.tells_that_events_count,
            }
        });
        self.pages = tried.pages;
        self.tells_that_events_count = tried.tells_that_events_count;
        (tried.events, tried.refused)
    }

    fn one_by_one(&mut self, events: Vec<Event>) -> (Vec<Event>, Vec<Failure>) {
        let mut refused = Vec::new();
        let mut fitting = Vec::new();
        for event in events {
            match self.attempt(std::slice::from_ref(&event), TRIAL) {
                Ok(()) => fitting.push(event),
                Err(failure) => refused.push(failure),
            }
        }
        (fitting, refused)
    }

    /// With ever smaller buffers, if that is what is wrong. Where perf has no time to answer, on a busy host, nothing
    /// is known against the events: that shows when it is to record them.
    fn attempt(&mut self, events: &[Event], patience: Duration) -> Result<(), Failure> {
        loop {
            let begin = Instant::now();
            let mut arguments = self.arguments(events);
            arguments.extend(Self::of(None, &[of_host("true")?]));
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let ended = match command::run(&self.perf.path, &arguments, patience) {
                Ok(ended) => ended,
                Err(_) if begin.elapsed() >= patience => return Ok(()),
                Err(error) => {
                    return Err(Failure::plain(format!("perf {error}")).coded(Code::PerfFailed))
                }
            };
            self.tells_that_events_count |= stream::tells_that_events_count(&ended.output);
            match stream::events(&ended.output) {
                opened if !opened.is_empty() => return refuse_in_place_of(events, &opened),
                _ if words::is_memory(&ended.words) && self.pages > PAGES.0 => self.pages /= 4,
                _ => return Err(words::end(ended.killed, &ended.words, &names(events))),
            }
        }
    }

    /// Have perf begin; what it records comes from the stream.
    pub fn start(&self, events: &[Event]) -> Result<(Running, ChildStdout), Failure> {
        let mut arguments = self.arguments(events);
        arguments.extend(Self::of(Some(self.pid), &lifeline(self.seconds)?));
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

/// What perf is to run, and to end with: it ends after so many seconds, or when the agent does, which has the other end of
/// its stdin. Where there is no such program, by the time alone.
fn lifeline(seconds: u64) -> Result<Vec<String>, Failure> {
    let seconds = seconds.to_string();
    // Older versions of busybox's take other arguments.
    let timeout = command::of_host("timeout").filter(|path| !is_of_busybox(path));
    match (timeout, command::of_host("cat")) {
        (Some(timeout), Some(cat)) => {
            let [timeout, cat] = [timeout, cat].map(|path| path.display().to_string());
            Ok(vec![timeout, seconds, cat])
        }
        _ => Ok(vec![of_host("sleep")?, seconds]),
    }
}

fn is_of_busybox(path: &Path) -> bool {
    let real = path.canonicalize().unwrap_or_default();
    real.to_string_lossy().contains("busybox")
}

/// The path of what perf is to run.
fn of_host(name: &str) -> Result<String, Failure> {
    let path = command::of_host(name).map(|path| path.display().to_string());
    path.ok_or_else(|| {
        Failure::new(
            format!("this host has no program {name}, which limits perf's time"),
            format!("install coreutils or busybox, or link {name} in /bin"),
        )
        .coded(Code::ProgramMissing)
    })
}

pub fn names(events: &[Event]) -> String {
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    names.join(", ")
}

/// Whether a time namespace that has these offsets leaves that clock as it is.
fn has_no_offset(offsets: &str) -> bool {
    let mut lines = offsets.lines().map(str::split_ascii_whitespace);
    lines.all(|mut line| line.next() != Some("monotonic") || line.all(|part| part == "0"))
}

/// For half a second's samples, a power of two as perf has it.
fn pages(frequency: u32, only_cpu: bool) -> u64 {
    let bytes = u64::from(frequency) * SAMPLE / 2;
    let bytes = if only_cpu { bytes } else { bytes.max(OFTEN) };
    let pages = bytes.div_ceil(page_size() as u64).next_power_of_two();
    pages.clamp(PAGES.0 * 4, PAGES.1)
}

/// Refuse what perf silently took something else for.
fn refuse_in_place_of(events: &[Event], opened: &[stream::Opened]) -> Result<(), Failure> {
    let clocks = opened.iter().filter(|opened| opened.is_cpu_clock()).count();
    let asked = events
        .iter()
        .filter(|event| event.is_cpu_clock())
        .count()
        .min(1);
    let Some(event) = events.iter().find(|event| event.is_cycles()) else {
        return Ok(());
    };
    match clocks > asked {
        true => Err(Failure::new(
            format!(
                "this machine cannot count {}: its processor, or its virtual machine, has no such counter, and perf would take {CPU_CLOCK} for it",
                event.name
            ),
            "record cpu instead, or choose a machine that has hardware counters",
        ).coded(Code::CounterMissing)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn buffers_hold_half_a_second() {
        let size = page_size() as u64;
        assert_eq!(pages(1, true), 16);
        assert!((300 * SAMPLE / 2..300 * SAMPLE * 2).contains(&(pages(300, true) * size)));
        assert!(pages(300, false) * size >= OFTEN);
        assert_eq!(pages(u32::MAX, true), 2048);
    }

    #[test]
    fn a_clock_of_its_own_is_known() {
        assert!(has_no_offset(""));
        assert!(has_no_offset(
            "monotonic           0         0\nboottime            7         0\n"
        ));
        assert!(!has_no_offset("monotonic      -86400         0\n"));
        assert!(!has_no_offset("monotonic           0         5\n"));
    }

    #[test]
    fn who_has_no_time_to_answer_is_not_refused() {
        let _alone = command::tests::alone();
        let path = std::env::temp_dir().join(format!("hprofiler-slow-{}", std::process::id()));
        let events = [Event::new("cpu").unwrap()];
        let attempt = |text: &str| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
            let sampling = Sampling::of("cpu");
            let mut command = Command::new(Perf::at(path.clone()), 1, true, &sampling);
            command.attempt(&events, Duration::from_millis(300))
        };
        assert!(attempt("#!/bin/sh\nexec sleep 600\n").is_ok());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_perf_took_for_something_else_is_refused() {
        let event = |name| Event::new(name).unwrap();
        let clock = stream::Opened { kind: 1, config: 0 };
        let hardware = stream::Opened { kind: 0, config: 0 };
        let (cycles, cpu) = ([event("cycles")], [event("cpu")]);
        let both = [event("cpu"), event("cycles")];
        assert!(refuse_in_place_of(&cpu, &[clock]).is_ok());
        assert!(refuse_in_place_of(&cycles, &[hardware]).is_ok());
        assert!(refuse_in_place_of(&both, &[clock, hardware]).is_ok());
        assert!(refuse_in_place_of(&cycles, &[clock]).is_err());
        assert!(refuse_in_place_of(&both, &[clock, clock]).is_err());
    }
}
