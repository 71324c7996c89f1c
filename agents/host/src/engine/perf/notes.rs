//! What a user should know: the meaning of perf's messages, what the kernel hides, how good a recording is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use flamegraph::perf_data::Recorded;

use super::java_map::Java;
use crate::engine::api::{fraction, share, Note};
use crate::engine::kernel_events::no_counter;
use crate::os::host::kernel_setting;
use crate::os::proc::status::Status;
use crate::os::proc::target::Target;
use crate::wire::outcome::{Code, Failure};

/// Words in perf's output, the outcome's code, the meaning (`{}` is the event), and the remedy. The first match counts.
const MEANINGS: [(&[&str], Code, &str, &str); 8] = [
    (
        &["error mapping pages", "failed to mmap"],
        Code::MemoryLimit,
        "the kernel does not let this user have memory for samples of {}",
        "connect as root (--become sudo), or raise kernel.perf_event_mlock_kb or the limit of locked memory (ulimit -l)",
    ),
    (
        &["workload failed"],
        Code::ProgramMissing,
        "perf cannot run the host's timeout, which limits its time",
        "check that the agent's user may run timeout, cat and true of /usr/bin or /bin",
    ),
    (
        &["no such process", "thread/cpu maps", "finding threads"],
        Code::ProcessEnded,
        "the process has ended",
        "",
    ),
    (
        &["can't access trace events", "no permissions to read", "tracefs"],
        Code::NotPermitted,
        "{} is a tracepoint, which the kernel shows to nobody but root",
        "connect as root (--become sudo)",
    ),
    (
        &[
            "parser error",
            "unknown tracepoint",
            "event syntax error",
            "bad event",
            "cannot find pmu",
            "unable to find",
            "invalid or unsupported event",
        ],
        Code::EventUnknown,
        "perf knows no event {} on this host",
        "choose one that `perf list` shows on the host",
    ),
    (
        &["function not implemented"],
        Code::NotPermitted,
        "the kernel has no perf events, or they are filtered (seccomp)",
        "let the container call perf_event_open",
    ),
    (
        &["perf_event_paranoid", "permission", "not permitted", "access to performance"],
        Code::NotPermitted,
        "the kernel does not let the agent's user record {} of this process",
        "connect as root (--become sudo), or set kernel.perf_event_paranoid to 1",
    ),
    (
        &["too many open files", "too many events", "ulimit -n"],
        Code::TooManyFiles,
        "perf needs more open files than the limit allows: one for each thread, processor and event",
        "raise the limit of open files (ulimit -n)",
    ),
];

/// perf's words for a counter that the processor lacks, if nothing above matches.
const NO_COUNTER: [&str; 3] = [
    "not supported",
    "no such device",
    "no such file or directory",
];

pub fn failure(words: &str, events: &str) -> Failure {
    let lower = words.to_lowercase();
    let fits = |phrases: &&[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    match MEANINGS.iter().find(|(phrases, ..)| fits(phrases)) {
        Some((_, code, reason, remedy)) => {
            Failure::new(reason.replace("{}", events), *remedy).coded(*code)
        }
        None if NO_COUNTER.iter().any(|phrase| lower.contains(phrase)) => no_counter(events),
        None => Failure::plain(format!(
            "perf does not record {events}: {}",
            first_of(words)
        ))
        .coded(Code::PerfFailed),
    }
}

/// `killed`: by which signal.
pub fn end(killed: Option<i32>, words: &str, events: &str) -> Failure {
    match killed {
        Some(libc::SIGKILL) => Failure::new(
            "perf was killed by signal 9",
            "check in the kernel's log (dmesg) whether memory ran out",
        )
        .coded(Code::PerfKilled),
        Some(signal) => {
            Failure::plain(format!("perf was killed by signal {signal}")).coded(Code::PerfKilled)
        }
        None => failure(words, events),
    }
}

/// Whether a smaller buffer may help.
pub fn is_memory(words: &str) -> bool {
    let lower = words.to_lowercase();
    MEANINGS[0].0.iter().any(|phrase| lower.contains(phrase))
}

fn first_of(words: &str) -> String {
    let lines = words.lines().map(str::trim);
    let lines = lines
        .filter(|line| !line.is_empty() && *line != "Error:" && !line.starts_with("[ perf record"));
    let first: Vec<&str> = lines.take(3).collect();
    match first.is_empty() {
        true => "it ended without a message".to_owned(),
        false => first.join(" ").chars().take(400).collect(),
    }
}

/// `better`: async-profiler could record the process too.
pub fn of_recording(recorded: &Recorded, java: &Java, better: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    for event in &recorded.events {
        let of = match recorded.events.len() {
            1 => String::new(),
            _ => format!(" ({})", event.event),
        };
        let percent = share(event.broken, event.taken);
        let broken = if java.is_hotspot && !java.frame_pointers && event.taken > 0 {
            let percent = percent.unwrap_or_else(|| "few".to_owned());
            let what = format!("{percent} of the stacks{of} are broken");
            Some(no_frame_pointers(&what, better))
        } else {
            percent.map(|percent| {
                let why = "they come from code without frame pointers";
                Note::plain(format!("{percent} of the stacks{of} are broken: {why}"))
                    .coded(Code::BrokenStacks)
            })
        };
        notes.extend(broken.map(|note| {
            note.with("event", event.event.clone())
                .with("share", fraction(event.broken, event.taken))
        }));
        let unknown = &event.unknown;
        if let Some(percent) = share(unknown.unknown_frames, unknown.frames) {
            let most = unknown.modules.iter().max_by_key(|(_, frames)| **frames);
            let most = most.map(|(module, _)| format!(", most of them in {module}"));
            let most = most.unwrap_or_default();
            let text = format!("{percent} of the frames{of} have no name{most}");
            notes.push(Note::plain(text).coded(Code::UnknownFrames));
        }
    }
    let taken: u64 = recorded.events.iter().map(|event| event.taken).sum();
    let lost = |samples: u64, reason: String, remedy: &str| {
        let failure = Failure::new(reason, remedy).coded(Code::SamplesLost);
        Note::of(failure.with("share", fraction(samples, taken + samples)))
    };
    if let Some(percent) = share(recorded.lost, taken + recorded.lost) {
        let reason =
            format!("{percent} of the samples were lost: perf had too little time or memory");
        notes.push(lost(recorded.lost, reason, "use a lower frequency"));
    }
    let left_out = recorded.left_out;
    if left_out > 0 {
        let reason = format!(
            "{left_out} samples were left out: there are more stacks than the agent can hold"
        );
        notes.push(lost(left_out, reason, "record for a shorter time"));
    }
    if recorded.malformed > 0 {
        notes.push(
            Note::plain(format!(
                "{} records of perf were damaged",
                recorded.malformed
            ))
            .coded(Code::DamagedRecording),
        );
    }
    notes
}

/// What is known before the recording.
pub fn before_recording(java: &Java, better: bool) -> Option<Note> {
    (java.is_hotspot && !java.frame_pointers)
        .then(|| no_frame_pointers("stacks may be broken", better))
}

fn no_frame_pointers(what: &str, better: bool) -> Note {
    let remedy = match better {
        true => "restart the JVM with -XX:+PreserveFramePointer, or use async-profiler",
        false => "restart the JVM with -XX:+PreserveFramePointer",
    };
    Note::of(Failure::new(
        format!("{what}: the JVM keeps no frame pointers"),
        remedy,
    ))
    .coded(Code::NoFramePointers)
}

const MOST_SYMBOLS: u64 = 64 << 20;
const KALLSYMS: &str = "/proc/kallsyms";

/// What the kernel lets the agent see, and the settings behind that. None: a setting cannot be read.
pub struct Rights {
    /// Whether samples may be taken in the kernel.
    pub kernel: bool,
    root: bool,
    /// CAP_SYSLOG: the kernel shows its symbols.
    syslog: bool,
    paranoid: Option<i32>,
    restrict: Option<i32>,
    /// Whether the kernel shows where its functions are.
    symbols: bool,
}

impl Rights {
    /// What the calling thread may see.
    pub fn of_agent() -> Self {
        let paranoid = kernel_setting("perf_event_paranoid");
        let status = Target::own_status();
        let privileged = status.as_ref().is_some_and(Status::may_profile_kernel);
        Self {
            kernel: privileged || paranoid.is_some_and(|level| level <= 1),
            root: status.as_ref().is_some_and(|status| status.uid == 0),
            syslog: status.is_some_and(|status| status.may_see_kernel_symbols()),
            paranoid,
            restrict: kernel_setting("kptr_restrict"),
            symbols: File::open(KALLSYMS)
                .and_then(shows_addresses)
                .unwrap_or(false),
        }
    }

    pub fn note(&self) -> Option<Note> {
        let get = |capability: &str| match self.root {
            true => format!("give the agent's container {capability}"),
            false => "use --become sudo".to_owned(),
        };
        let paranoid = shown(self.paranoid);
        if !self.kernel {
            let why = format!("kernel.perf_event_paranoid is {paranoid}");
            let get = get("CAP_PERFMON");
            let remedy =
                format!("{get}, or set kernel.perf_event_paranoid to 1, to see the kernel");
            let note = Note::plain("user code only").coded(Code::NoKernelFrames);
            return Some(note.because(Failure::new(why, remedy)));
        }
        if self.symbols {
            return None;
        }
        let restrict = shown(self.restrict);
        let mut why = format!("kernel.kptr_restrict is {restrict}");
        let remedy = match (self.syslog, self.restrict) {
            (false, _) => {
                why += &format!(
                    ", kernel.perf_event_paranoid {paranoid}, and the agent has no CAP_SYSLOG"
                );
                format!(
                    "{}, with kernel.kptr_restrict at 1 or less",
                    get("CAP_SYSLOG")
                )
            }
            (true, Some(2..)) => "set kernel.kptr_restrict to 1".to_owned(),
            (true, _) => "check whether a container hides /proc/kallsyms".to_owned(),
        };
        let note = Note::plain("kernel functions have no names").coded(Code::NoKernelNames);
        Some(note.because(Failure::new(why, remedy)))
    }

    /// Read with the calling thread's rights. None: the kernel is not sampled, or hides them.
    pub fn kernel_symbols(&self) -> io::Result<Option<Vec<u8>>> {
        if !(self.kernel && self.symbols) {
            return Ok(None);
        }
        let mut text = Vec::new();
        File::open(KALLSYMS)?
            .take(MOST_SYMBOLS)
            .read_to_end(&mut text)?;
        Ok(Some(text))
    }
}

fn shown(setting: Option<i32>) -> String {
    setting.map_or("not to be read".to_owned(), |level| level.to_string())
}

/// If the kernel hides its addresses, all of them are zero. (Some symbols are at zero on any kernel.)
fn shows_addresses(symbols: impl Read) -> io::Result<bool> {
    let reader = BufReader::new(symbols.take(1 << 20));
    for line in reader.lines().take(20_000) {
        let line = line?;
        let address = line.split(' ').next().unwrap_or_default();
        if address.chars().any(|digit| digit != '0') {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flamegraph::perf_data::{RecordedEvent, Unknown};
    use flamegraph::Profile;

    #[test]
    fn lost_samples_are_a_share_of_those_that_were_to_be_taken() {
        let events = vec![RecordedEvent {
            event: "cpu".to_owned(),
            source: "cycles".to_owned(),
            profile: Profile::new(Vec::new()),
            taken: 60,
            unknown: Unknown::default(),
            broken: 0,
        }];
        let java = Java {
            is_hotspot: false,
            no_attach: None,
            no_agents: None,
            frame_pointers: false,
            debug_non_safepoints: false,
        };
        let recorded = Recorded {
            events,
            lost: 20,
            left_out: 40,
            ..Recorded::default()
        };
        let notes = of_recording(&recorded, &java, false);
        let shares = notes
            .iter()
            .map(|note| (note.code, &note.parameters["share"]));
        let [lost, left_out] = [0.25.into(), 0.4.into()];
        assert!(shares.eq([(Code::SamplesLost, &lost), (Code::SamplesLost, &left_out)]));
    }

    #[test]
    fn real_words_and_what_they_mean() {
        for (words, want) in [
            ("Error:\nThe cache-misses:u event is not supported.\n", "cannot count x"),
            ("event syntax error: 'x'\n   \\___ parser error\nRun 'perf list' for a list of valid events\n", "knows no event x"),
            ("event syntax error: 'a:b'\n  \\___ can't access trace events\n\nError:\tNo permissions to read /sys/kernel/tracing/events/a/b\n", "tracepoint"),
            ("event syntax error: 'a:b'\n  \\___ unknown tracepoint\n\nError:\tFile /sys/kernel/tracing/events/a/b not found.\n", "knows no event"),
            ("Permission error mapping pages.\nConsider increasing /proc/sys/kernel/perf_event_mlock_kb,\n(current value: 256,0)\n", "memory for samples"),
            ("Error:\nAccess to performance monitoring and observability operations is limited.\nConsider adjusting /proc/sys/kernel/perf_event_paranoid\n", "does not let"),
            ("Couldn't create thread/CPU maps: No such process\n", "has ended"),
            ("Workload failed: No such file or directory\n", "host's timeout"),
            ("Error:\nquite new\n[ perf record: Woken up 1 times ]\n", "record x: quite new"),
            ("", "without a message"),
        ] {
            let reason = failure(words, "x").reason;
            assert!(reason.contains(want), "{words:?} became {reason:?}");
        }
        assert!(is_memory("Permission error mapping pages.") && !is_memory("Permission denied"));
    }
}
