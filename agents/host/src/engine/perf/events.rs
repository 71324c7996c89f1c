//! Which events perf may record, and its arguments for them.
//!
//! An event is one of the lists below, a tracepoint, or an event that the kernel lists for a device. Nothing else that
//! a user types becomes an argument of perf. A trial run shows what the kernel lets the agent record.

use flamegraph::perf_data::{Counted, Wanted};

use crate::engine::api::USER_CODE;
use crate::engine::kernel_events::{
    is_counter, is_device_event, is_tracepoint, refuse_missing, CHOICE,
};
use crate::wire::outcome::{Code, Failure};

const CPU_CLOCK: &str = "cpu-clock";
/// Events that the kernel counts. Each one is a sample: with a frequency, a sample would say how many the *next* one
/// stands for, and sums would be wrong if events come in bursts.
const COUNTED: [&str; 7] = [
    "alignment-faults",
    "context-switches",
    "cpu-migrations",
    "emulation-faults",
    "major-faults",
    "minor-faults",
    "page-faults",
];
/// Events that are sampled at the requested frequency, beside the counters that both engines know.
const SAMPLED: [&str; 4] = [
    CPU_CLOCK,
    "task-clock",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
];
const SAME: [(&str, &str); 7] = [
    ("cpu", CPU_CLOCK),
    ("offcpu", "context-switches"),
    ("cs", "context-switches"),
    ("faults", "page-faults"),
    ("migrations", "cpu-migrations"),
    ("cpu-cycles", "cycles"),
    ("branches", "branch-instructions"),
];
pub const OF_ASYNC_PROFILER: [&str; 6] =
    ["alloc", "live", "lock", "wall", "nativemem", "nativelive"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// As requested.
    pub name: String,
    /// perf's name.
    term: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counted,
    Sampled,
    Tracepoint,
    OfDevice,
}

impl Event {
    /// Err: perf cannot record it on this host, as far as that shows without a trial.
    pub fn new(name: &str) -> Result<Self, Failure> {
        if OF_ASYNC_PROFILER.contains(&name) {
            return Err(Failure::new(
                format!("{name} cannot be recorded by perf: it needs async-profiler in a JVM"),
                "use --engine async-profiler for a JVM",
            )
            .coded(Code::EventUnsupported));
        }
        let same = SAME.iter().find(|(other, _)| *other == name);
        let term = same.map_or(name, |(_, term)| term);
        let kind = match term {
            _ if COUNTED.contains(&term) => Kind::Counted,
            _ if SAMPLED.contains(&term) || is_counter(term) => Kind::Sampled,
            _ if is_tracepoint(term) => Kind::Tracepoint,
            _ if is_device_event(term) => Kind::OfDevice,
            _ => {
                let missing = refuse_missing(term).err().filter(|_| term.contains('/'));
                let unknown = || Failure::new(format!("perf records no event {name}"), CHOICE);
                return Err(missing.unwrap_or_else(|| unknown().coded(Code::EventUnknown)));
            }
        };
        refuse_missing(term)?;
        Ok(Self {
            name: name.to_owned(),
            term: term.to_owned(),
            kind,
        })
    }

    pub fn is_each_one(&self) -> bool {
        matches!(self.kind, Kind::Counted | Kind::Tracepoint)
    }

    pub fn is_off_cpu(&self) -> bool {
        self.name == "offcpu"
    }

    /// Without `kernel` only the program's own code is sampled. `own`: the event's own frequency, if there is none for
    /// all.
    fn argument(&self, own: Option<u32>, kernel: bool) -> String {
        let term = &self.term;
        let user = if kernel { "" } else { "u" };
        match (self.kind, own) {
            (Kind::Counted, _) => format!("{term}/period=1/{user}"),
            (Kind::Sampled, Some(own)) => format!("{term}/freq={own}/{user}"),
            (Kind::OfDevice, Some(own)) => {
                format!("{},freq={own}/{user}", term.trim_end_matches('/'))
            }
            (Kind::OfDevice, None) => format!("{term}{user}"),
            (Kind::Sampled | Kind::Tracepoint, _) if kernel => term.clone(),
            (Kind::Sampled | Kind::Tracepoint, _) => format!("{term}:u"),
        }
    }

    pub fn source(&self, kernel: bool) -> String {
        let source = match self.name.as_str() {
            "cpu" if kernel => "perf_events",
            "cpu" => USER_CODE,
            name => name,
        };
        source.to_owned()
    }

    /// Nanoseconds of CPU time; other samples have their own periods.
    pub fn interval(&self, frequency: u32) -> u64 {
        match self.name.as_str() {
            "cpu" => (1e9 / f64::from(frequency.max(1))).round() as u64,
            _ => 0,
        }
    }
}

/// The profiles that are wanted, in the events' order, and perf's arguments, each event once. Beside a tracepoint there
/// is no frequency for all, because each of its events is a sample.
pub fn arguments(events: &[Event], frequency: u32, kernel: bool) -> (Vec<Wanted>, Vec<String>) {
    let tracepoint = events.iter().any(|event| event.kind == Kind::Tracepoint);
    let own = tracepoint.then_some(frequency);
    let mut arguments = match own {
        Some(_) => Vec::new(),
        None => vec!["-F".to_owned(), frequency.to_string()],
    };
    let mut wanted: Vec<Wanted> = Vec::new();
    for event in events {
        let argument = event.argument(own, kernel);
        if wanted.iter().all(|other| other.perf != argument) {
            arguments.extend(["-e".to_owned(), argument.clone()]);
        }
        wanted.push(Wanted {
            event: event.name.clone(),
            name: event.term.clone(),
            perf: argument,
            counted: match event.name.as_str() {
                "cpu" => Counted::CpuTime,
                "offcpu" => Counted::OffCpu,
                _ => Counted::Count,
            },
        });
    }
    if events.iter().any(Event::is_off_cpu) {
        // These records show when a thread runs again.
        arguments.push("--switch-events".to_owned());
    }
    (wanted, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, kind: Kind) -> Event {
        Event {
            name: name.to_owned(),
            term: name.to_owned(),
            kind,
        }
    }

    fn asked(events: &[Event], kernel: bool) -> String {
        arguments(events, 300, kernel).1.join(" ")
    }

    #[test]
    fn what_perf_is_asked_for() {
        let known = |name: &str| Event::new(name).unwrap();
        for (name, kernel, user) in [
            ("cpu", "cpu-clock", "cpu-clock:u"),
            ("faults", "page-faults/period=1/", "page-faults/period=1/u"),
        ] {
            assert_eq!(asked(&[known(name)], true), format!("-F 300 -e {kernel}"));
            assert_eq!(asked(&[known(name)], false), format!("-F 300 -e {user}"));
        }
        let events = ["cpu", "cpu-clock", "offcpu", "cs"].map(known);
        let want = "-F 300 -e cpu-clock -e context-switches/period=1/ --switch-events";
        assert_eq!(asked(&events, true), want);
        let device = event("cpu/mem-loads/", Kind::OfDevice);
        assert_eq!(asked(&[device], false), "-F 300 -e cpu/mem-loads/u");
        assert_eq!(known("cpu").source(true), "perf_events");
        assert_eq!(known("cpu").source(false), "cpu-clock,alluser");
        assert_eq!(known("cpu").interval(300), 3_333_333);
    }

    #[test]
    fn every_tracepoint_is_a_sample() {
        let events = [
            event("sched:sched_switch", Kind::Tracepoint),
            event("cpu-clock", Kind::Sampled),
            event("page-faults", Kind::Counted),
            event("cpu/mem-loads/", Kind::OfDevice),
        ];
        let want = "-e sched:sched_switch -e cpu-clock/freq=300/ -e page-faults/period=1/ -e cpu/mem-loads,freq=300/";
        assert_eq!(asked(&events, true), want);
        assert!(asked(&events, false).contains("-e sched:sched_switch:u -e cpu-clock/freq=300/u"));
    }

    /// perf before 6.5 loads a file of such a name into the kernel, as a program.
    #[test]
    fn nothing_but_known_names_reaches_perf() {
        let alloc = Event::new("alloc").unwrap_err();
        assert!(alloc.reason.contains("async-profiler"));
        for name in [
            "sched:*",
            "page-fault?",
            "",
            "@x",
            "/tmp/x.o",
            "x.c",
            "x.o:u",
            "software/../tmp/y.o//",
            "software/y.o/",
            "tmp/x.other/",
            "mem:0x10/y.o:w",
            "cycles:u",
            "r1a8",
            "mem_load_retired.l3_miss",
        ] {
            assert!(Event::new(name).is_err(), "{name}");
        }
    }
}
