//! async-profiler's commands and answers.

use std::collections::BTreeMap;

use super::events::counted;
use super::intervals::Intervals;
use crate::engine::api::{Note, USER_CODE};
use crate::wire::outcome::{Code, Failure};

/// If the agent is killed, the profiler stops by itself this many seconds after the requested time.
const LEASE: u64 = 30;
/// Happens only in the kernel, like tracepoints (which have a colon in their names).
const OF_KERNEL: &str = "context-switches";
const UNSEEN: (&str, &str) = (
    "the kernel does not let this JVM count what happens in the kernel (perf_event_paranoid): there may be no samples",
    "set kernel.perf_event_paranoid to 1, or record it by perf as root (--become sudo --engine perf)",
);
const TIMER: (&str, &str) = (
    "perf events cannot be used for this JVM; timers lose samples above the kernel's tick rate",
    "allow perf_event_open in the seccomp profile, and set kernel.perf_event_paranoid to 2 or less",
);
const USER: &str = "without kernel frames";
const NOT_LET: (&str, &str) = (
    "the kernel does not let this JVM sample them (perf_event_paranoid)",
    "set kernel.perf_event_paranoid to 1 on the host, or record it by perf as root (--become sudo --engine perf), to see the kernel",
);
/// If that is not the reason. async-profiler's own words are a note beside it.
const UNABLE: (&str, &str) = (
    "async-profiler cannot sample them in this JVM",
    "record it by perf as root (--become sudo --engine perf) to see the kernel",
);
/// The size of a recording's chunks. Each is read by itself, which bounds the memory for reading.
const CHUNK: &str = "8m";
/// The longest chunk in seconds. If a JVM is killed, its unfinished chunk cannot be read.
const CHUNK_SECONDS: u64 = 5;
/// Neither the JVM's arguments nor its system properties (bits 1 and 2 of `jfropts`): they contain secrets.
const NO_ARGUMENTS: u32 = 3;

/// One way to record the event that uses the profiler's only `event=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// `event=` and its interval; empty if no event uses it.
    arguments: String,
    /// What records that event.
    pub source: String,
    /// What the user should know if this choice is used.
    pub note: Option<Note>,
}

/// What to record, and the choices in the order in which they are tried.
#[derive(Debug, Clone)]
pub struct Plan {
    pub events: Vec<String>,
    pub choices: Vec<Choice>,
    pub intervals: Intervals,
    pub seconds: u64,
}

impl Plan {
    /// The events must go together. `kernel`: whether the JVM may sample kernel stacks; `duration` in seconds.
    pub fn new(events: Vec<String>, intervals: Intervals, duration: f64, kernel: bool) -> Self {
        let choices = choices(counted(&events), intervals.cpu, kernel);
        Self {
            events,
            choices,
            intervals,
            seconds: duration.ceil() as u64,
        }
    }

    pub fn time_limit(&self) -> u64 {
        self.seconds + LEASE
    }

    pub fn has(&self, event: &str) -> bool {
        self.events.iter().any(|asked| asked == event)
    }

    /// Leave out an event; false if it is not there, or is the only one.
    pub fn leave_out(&mut self, event: &str) -> bool {
        let leaves = self.has(event) && self.events.len() > 1;
        if leaves {
            self.events.retain(|asked| asked != event);
        }
        leaves
    }

    pub fn start(&self, choice: &Choice, file: &str, log: &str) -> String {
        let intervals = &self.intervals;
        let mut command = "start".to_owned();
        let mut add = |asked: bool, argument: String| {
            if asked {
                command.push(',');
                command.push_str(&argument);
            }
        };
        add(!choice.arguments.is_empty(), choice.arguments.clone());
        add(
            self.has("alloc") || self.has("live"),
            format!("alloc={}", intervals.alloc),
        );
        add(self.has("live"), "live".to_owned());
        add(self.has("lock"), format!("lock={}", intervals.lock));
        add(
            self.has("wall") || self.has("offcpu"),
            format!("wall={}", intervals.wall),
        );
        // Without frees unless it is wanted what was not freed.
        let frees = if self.has("nativelive") {
            ""
        } else {
            ",nofree"
        };
        add(
            self.has("nativemem") || self.has("nativelive"),
            format!("nativemem={}{frees}", intervals.alloc),
        );
        let timeout = self.time_limit();
        let chunks = format!("chunksize={CHUNK},chunktime={CHUNK_SECONDS}");
        let jfr = format!("jfr,jfropts={NO_ARGUMENTS}");
        command + &format!(",{jfr},file={file},{chunks},timeout={timeout},log={log}")
    }

    pub fn source(&self, event: &str, choice: &Choice) -> String {
        match counted(&self.events) {
            Some(counted) if counted == event => choice.source.clone(),
            _ => event.to_owned(),
        }
    }

    pub fn sources(&self, choice: &Choice) -> BTreeMap<String, String> {
        let events = self.events.iter();
        events
            .map(|event| (event.clone(), self.source(event, choice)))
            .collect()
    }

    /// What one sample of an event stands for, in its unit; 0 if samples differ.
    pub fn interval(&self, event: &str) -> u64 {
        match event {
            "cpu" => self.intervals.cpu,
            "wall" | "offcpu" => self.intervals.wall,
            "alloc" | "live" | "nativemem" | "nativelive" => self.intervals.alloc,
            "lock" => self.intervals.lock,
            _ => 0,
        }
    }
}

/// `event=cpu` is never used: if the kernel forbids it, async-profiler silently uses a timer, which loses samples above
/// the kernel's tick rate. Named sources fail with an error, and the next one is tried.
fn choices(event: Option<&str>, interval: u64, kernel: bool) -> Vec<Choice> {
    let choice = |arguments: String, source: &str, note| Choice {
        arguments,
        source: source.to_owned(),
        note,
    };
    let worse = |(reason, remedy): (&str, &str)| {
        Some(Note::of(
            Failure::new(reason, remedy).coded(Code::TimerUsed),
        ))
    };
    let Some(event) = event else {
        return vec![choice(String::new(), "", None)];
    };
    if event != "cpu" {
        let unseen = !kernel && (event.contains(':') || event == OF_KERNEL);
        let note = if unseen { worse(UNSEEN) } else { None };
        return vec![choice(format!("event={event}"), event, note)];
    }
    let (why, remedy) = if kernel { UNABLE } else { NOT_LET };
    let user = Note::plain(USER)
        .coded(Code::NoKernelFrames)
        .because(Failure::new(why, remedy));
    let timed = |way: &str| format!("event={way},interval={interval}");
    let mut choices = vec![
        choice(timed(USER_CODE), USER_CODE, Some(user)),
        choice(timed("ctimer"), "ctimer", worse(TIMER)),
        choice(timed("itimer"), "itimer", worse(TIMER)),
    ];
    if kernel {
        choices.insert(0, choice(timed("cpu-clock"), "perf_events", None));
    }
    choices
}

pub fn stop(log: &str) -> String {
    format!("stop,log={log}")
}

/// Write to a file whether a recording runs.
pub fn status(file: &str) -> String {
    format!("status,file={file}")
}

/// Whether a status, or the answer to `stop`, says that no recording runs.
pub fn is_idle(status: &str) -> bool {
    status.contains("not active")
}

/// The errors in the profiler's log, each once, without thread numbers and without advice about its own options.
pub fn complaint(log: &str) -> String {
    let lines = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "Profiling started");
    let mut errors: Vec<String> = Vec::new();
    for line in lines.map(plain) {
        if errors.len() < 8 && !errors.contains(&line) {
            errors.push(line);
        }
    }
    errors.join("; ").chars().take(600).collect()
}

fn plain(line: &str) -> String {
    let words = ["[WARN] ", "[ERROR] "]
        .iter()
        .find_map(|level| line.strip_prefix(level))
        .unwrap_or(line);
    let words = words.split(". Try ").next().unwrap_or(words);
    let Some((before, after)) = words.split_once(" for TID ") else {
        return words.into();
    };
    format!(
        "{before}{}",
        after.trim_start_matches(|c: char| c.is_ascii_digit())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::sampling::Sampling;

    fn plan(events: &str, kernel: bool) -> Plan {
        let sampling = Sampling::of(events);
        let alloc = || (1 << 20, Note::plain("chosen"));
        let (intervals, _) = Intervals::choose(&sampling, &sampling.events, 20, alloc);
        Plan::new(sampling.events, intervals, sampling.duration, kernel)
    }

    #[test]
    fn the_chain_of_cpu() {
        let sources = |kernel| -> Vec<String> {
            let choices = plan("cpu", kernel).choices.into_iter();
            choices.map(|choice| choice.source).collect()
        };
        let user = ["cpu-clock,alluser", "ctimer", "itimer"];
        assert_eq!(sources(true)[1..], user);
        assert_eq!(sources(true)[0], "perf_events");
        assert_eq!(sources(false), user);
        for (plan, at, is_the_reason) in
            [(plan("cpu", false), 0, true), (plan("cpu", true), 1, false)]
        {
            let note = plan.choices[at].note.clone().unwrap_or_default();
            assert!(!note.degraded && note.text == USER);
            let cause = note.cause.unwrap();
            for words in [cause.reason, cause.remedy] {
                assert_eq!(
                    words.contains("perf_event_paranoid"),
                    is_the_reason,
                    "{words}"
                );
            }
        }
    }

    #[test]
    fn events_of_the_kernel_need_its_leave() {
        for (event, kernel, degraded) in [
            ("context-switches", false, true),
            ("context-switches", true, false),
            ("sched:sched_switch", false, true),
            ("page-faults", false, false),
            ("java.util.HashMap.get", false, false),
        ] {
            let noted = plan(event, kernel).choices[0].note.is_some();
            assert_eq!(noted, degraded, "{event}");
        }
    }

    #[test]
    fn commands() {
        let cpu = "event=cpu-clock,interval=3333333";
        for (events, want) in [
            ("cpu", cpu.to_owned()),
            ("alloc", "alloc=1048576".to_owned()),
            ("live", "alloc=1048576,live".to_owned()),
            ("offcpu", "wall=10000000".to_owned()),
            ("wall offcpu", "wall=10000000".to_owned()),
            (
                "page-faults lock",
                "event=page-faults,lock=10000".to_owned(),
            ),
            (
                "nativemem java.util.HashMap.get",
                "event=java.util.HashMap.get,nativemem=524288,nofree".to_owned(),
            ),
            ("nativelive", "nativemem=524288".to_owned()),
            ("nativelive nativemem", "nativemem=524288".to_owned()),
            (
                "wall lock live alloc cpu",
                format!("{cpu},alloc=1048576,live,lock=10000,wall=10000000"),
            ),
        ] {
            let plan = plan(events, true);
            assert_eq!(
                plan.start(&plan.choices[0], "/f", "/l"),
                format!(
                    "start,{want},jfr,jfropts=3,file=/f,chunksize=8m,chunktime=5,timeout=35,log=/l"
                )
            );
        }
    }

    #[test]
    fn a_log_is_told_once() {
        let log = "[WARN] perf_event_open for TID 1 failed: No\n[WARN] perf_event_open for TID 2 failed: No\n[ERROR] Perf events unavailable. Try --all-user\n";
        assert_eq!(
            complaint(log),
            "perf_event_open failed: No; Perf events unavailable"
        );
        assert_eq!(complaint("Profiling started\n"), "");
    }
}
