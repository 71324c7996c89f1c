//! What perf is asked for so that the user gets what he asked for.

use flamegraph::perf_data::{Columns, Wanted};

use crate::engine::USER_CODE;
use crate::outcome::Failure;

/// What perf itself calls the clock that counts CPU time.
pub const CPU_CLOCK: &str = "cpu-clock";
/// Each switch is one sample, and the records of switches say when a thread was back.
const SWITCHES: &str = "context-switches/period=1/";
/// What only async-profiler can see, which asks the JVM itself.
const OF_ASYNC_PROFILER: [&str; 7] = [
    "alloc",
    "live",
    "lock",
    "wall",
    "nativemem",
    "itimer",
    "ctimer",
];
/// perf takes the clock in the place of these where the processor counts no cycles, and says nothing.
const CYCLES: [&str; 2] = ["cycles", "cpu-cycles"];

/// One event as it was asked for, and how perf records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// As it was asked for.
    pub name: String,
    /// perf's name for it, with a period of its own where it has one.
    term: String,
}

impl Event {
    /// Err where perf cannot have it; whether this machine can is another question.
    pub fn new(name: &str) -> Result<Self, Failure> {
        if OF_ASYNC_PROFILER.contains(&name) {
            return Err(Failure::new(
                format!("{name} cannot be recorded by perf: it needs async-profiler in a JVM"),
                "record a JVM that async-profiler can be loaded into (--engine async-profiler)",
            ));
        }
        let term = match name {
            "cpu" => CPU_CLOCK,
            "offcpu" => SWITCHES,
            _ => name,
        };
        // perf would compile or load such a file.
        let file = [".c", ".cpp", ".o", ".bpf"]
            .iter()
            .any(|end| name.ends_with(end));
        // Such a name stands for any number of events, none of which is called so.
        let pattern = name.contains(['*', '?']);
        if file || pattern || name.starts_with(['/', '.', '@']) {
            return Err(Failure::new(
                format!("{name} is no event of perf's"),
                "choose one that perf list shows on this host",
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            term: term.to_owned(),
        })
    }

    pub fn is_off_cpu(&self) -> bool {
        self.name == "offcpu"
    }

    /// How perf is to be asked; without `kernel` for what happens in the program's own code only.
    pub fn argument(&self, kernel: bool) -> String {
        let term = &self.term;
        let slashes = term.matches('/').count();
        match kernel
            || (slashes == 0 && has_modifier(term))
            || (slashes > 1 && !term.ends_with('/'))
        {
            true => term.clone(),
            false if slashes > 1 => format!("{term}u"),
            false => format!("{term}:u"),
        }
    }

    /// What the recording is to be made.
    pub fn wanted(&self) -> Wanted {
        let columns = match self.name.as_str() {
            "cpu" => Columns::CpuTime,
            "offcpu" => Columns::OffCpu,
            _ => Columns::Count,
        };
        let perf = self.term.split('/').next().filter(|_| self.is_off_cpu());
        Wanted {
            event: self.name.clone(),
            perf: perf.unwrap_or(&self.term).to_owned(),
            columns,
        }
    }

    /// What was really used, in the words of the protocol.
    pub fn source(&self, kernel: bool) -> String {
        let source = match self.name.as_str() {
            "cpu" if kernel => "perf_events",
            "cpu" => USER_CODE,
            name => name,
        };
        source.to_owned()
    }

    /// What one sample stands for: nanoseconds of CPU time, one switch; otherwise each sample has its own period.
    pub fn interval(&self, frequency: u32) -> u64 {
        match self.name.as_str() {
            "cpu" => (1e9 / f64::from(frequency.max(1))).round() as u64,
            _ => 0,
        }
    }

    pub fn is_cpu_clock(&self) -> bool {
        self.term.split(':').next() == Some(CPU_CLOCK)
    }

    pub fn is_cycles(&self) -> bool {
        let name = self.term.split([':', '/']).next().unwrap_or_default();
        CYCLES.contains(&name)
    }
}

/// `event:u` and its like; a tracepoint has a colon too.
fn has_modifier(term: &str) -> bool {
    let modifier = |rest: &str| !rest.is_empty() && rest.chars().all(|c| "ukhpPGHSDWe".contains(c));
    term.rsplit_once(':')
        .is_some_and(|(_, rest)| modifier(rest))
}

/// The arguments that ask for these events, each of perf's own events once.
pub fn arguments(events: &[Event], kernel: bool) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut asked: Vec<String> = Vec::new();
    for event in events {
        let argument = event.argument(kernel);
        if !asked.contains(&argument) {
            arguments.extend(["-e".to_owned(), argument.clone()]);
            asked.push(argument);
        }
    }
    if events.iter().any(Event::is_off_cpu) {
        arguments.push("--switch-events".to_owned());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str) -> Event {
        Event::new(name).unwrap()
    }

    #[test]
    fn what_perf_is_asked_for() {
        for (name, kernel, user) in [
            ("cpu", "cpu-clock", "cpu-clock:u"),
            (
                "offcpu",
                "context-switches/period=1/",
                "context-switches/period=1/u",
            ),
            ("page-faults", "page-faults", "page-faults:u"),
            ("cycles:pp", "cycles:pp", "cycles:pp"),
            (
                "sched:sched_switch",
                "sched:sched_switch",
                "sched:sched_switch:u",
            ),
            (
                "cpu/cache-misses/",
                "cpu/cache-misses/",
                "cpu/cache-misses/u",
            ),
            (
                "cpu/cache-misses/k",
                "cpu/cache-misses/k",
                "cpu/cache-misses/k",
            ),
        ] {
            assert_eq!(
                (event(name).argument(true), event(name).argument(false)),
                (kernel.into(), user.into())
            );
        }
        let events = ["cpu", "cpu-clock", "offcpu"].map(event);
        let want = [
            "-e",
            "cpu-clock",
            "-e",
            "context-switches/period=1/",
            "--switch-events",
        ];
        assert_eq!(arguments(&events, true), want);
    }

    #[test]
    fn what_it_becomes() {
        assert_eq!(event("cpu").wanted().columns, Columns::CpuTime);
        assert_eq!(event("offcpu").wanted().perf, "context-switches");
        assert_eq!(event("cache-misses").wanted().columns, Columns::Count);
        assert_eq!(event("cpu").source(true), "perf_events");
        assert_eq!(event("cpu").source(false), "cpu-clock,alluser");
        assert_eq!(event("cpu").interval(300), 3_333_333);
        assert!(event("cycles:u").is_cycles() && !event("cpu").is_cycles());
    }

    #[test]
    fn what_is_refused() {
        assert!(Event::new("alloc")
            .unwrap_err()
            .reason
            .contains("async-profiler"));
        for name in ["/tmp/x.o", "x.c", "./x", "x.bpf", "sched:*", "page-fault?"] {
            assert!(
                Event::new(name).unwrap_err().reason.contains("no event"),
                "{name}"
            );
        }
        assert!(Event::new("mem_load_retired.l3_miss").is_ok());
    }
}
