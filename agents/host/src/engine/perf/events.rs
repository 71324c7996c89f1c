//! What perf is asked for so that the user gets what he asked for.

use std::path::Path;

use flamegraph::perf_data::{Counted, Wanted};

use crate::engine::api::USER_CODE;
use crate::engine::perf::command::FOLDER;
use crate::engine::tracepoints::is_modifier;
use crate::wire::outcome::{Code, Failure};

/// What perf itself calls the clock that counts CPU time.
pub const CPU_CLOCK: &str = "cpu-clock";
/// Each switch is one sample, and the records of switches say when a thread was back.
const SWITCHES: &str = "context-switches/period=1/";
/// What the kernel counts by itself: each is one sample. With a frequency a sample would tell how many the *next* one
/// stands for, so that sums were wrong by any factor where they come in bursts.
const COUNTED: [&str; 7] = [
    "alignment-faults",
    "context-switches",
    "cpu-migrations",
    "emulation-faults",
    "major-faults",
    "minor-faults",
    "page-faults",
];
/// Other words for them.
const SAME: [(&str, &str); 3] = [
    ("cs", "context-switches"),
    ("faults", "page-faults"),
    ("migrations", "cpu-migrations"),
];
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
/// What perf's oldest grammar takes a frequency for behind the plain name.
const WITH_FREQUENCY: [&str; 16] = [
    CPU_CLOCK,
    "task-clock",
    "cycles",
    "cpu-cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-instructions",
    "branch-misses",
    "bus-cycles",
    "ref-cycles",
    "stalled-cycles-frontend",
    "idle-cycles-frontend",
    "stalled-cycles-backend",
    "idle-cycles-backend",
];
/// How files end that perf compiles or loads into the kernel, up to 6.4; it takes `x.o` out of `x.o:u` as well.
const PROGRAMS: [&str; 5] = [".c", ".cpp", ".o", ".obj", ".bpf"];
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
                "use --engine async-profiler for a JVM",
            )
            .coded(Code::EventUnsupported));
        }
        let term = match name {
            "cpu" => CPU_CLOCK.to_owned(),
            "offcpu" => SWITCHES.to_owned(),
            _ => each_one(name),
        };
        // Such a name stands for any number of events, none of which is called so.
        let pattern = name.contains(['*', '?']);
        if pattern || names_program(name) || !is_event(name) {
            return Err(Failure::new(
                format!("{name} is not an event of perf"),
                "choose one that `perf list` shows on the host",
            )
            .coded(Code::EventUnknown));
        }
        refuse_folder(name)?;
        Ok(Self {
            name: name.to_owned(),
            term,
        })
    }

    /// Each of which is a sample too, if perf is given no frequency; unlike others it takes no period of its own.
    pub fn is_tracepoint(&self) -> bool {
        self.term.contains(':') && !self.term.contains('/') && !has_modifier(&self.term)
    }

    /// Whether each one is a sample, however often it comes.
    pub fn is_each_one(&self) -> bool {
        self.counted().is_some() || self.is_tracepoint()
    }

    /// Whether its frequency can be its own, or it has none.
    pub fn takes_frequency(&self) -> bool {
        let its_own = ["period=", "freq="]
            .iter()
            .any(|own| self.term.contains(own));
        its_own
            || self.term.contains(':') && !has_modifier(&self.term)
            || with_frequency(&self.term, 1) != self.term
    }

    pub fn is_off_cpu(&self) -> bool {
        self.name == "offcpu"
    }

    /// How perf is to be asked; without `kernel` for what happens in the program's own code only. `own`: the event's own
    /// frequency, where perf is given none for all.
    pub fn argument(&self, own: Option<u32>, kernel: bool) -> String {
        let term = own.map(|frequency| with_frequency(&self.term, frequency));
        argument(term.as_ref().unwrap_or(&self.term), kernel)
    }

    /// What the recording is to be made, of what perf was asked for.
    fn wanted(&self, argument: String) -> Wanted {
        let counted = match self.name.as_str() {
            "cpu" => Counted::CpuTime,
            "offcpu" => Counted::OffCpu,
            _ => Counted::Count,
        };
        Wanted {
            event: self.name.clone(),
            name: self.counted().unwrap_or(&self.term).to_owned(),
            perf: argument,
            counted,
        }
    }

    /// The plain name of what the kernel counts by itself.
    pub fn counted(&self) -> Option<&str> {
        self.term.split_once("/period=1/").map(|(plain, _)| plain)
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

/// Whether perf could take it, or the begin of it, for a program's file.
fn names_program(name: &str) -> bool {
    let ends = |(at, end): (usize, &str)| {
        let after = name[at + end.len()..].chars().next();
        after.is_none_or(|c| !c.is_ascii_alphanumeric())
    };
    let mut found = PROGRAMS.iter().flat_map(|end| name.match_indices(end));
    name.contains("..") || found.any(ends)
}

/// Whether it has an event's form: a word, `source/terms/modifiers`, or `mem:address/length:access`. Whatever else has
/// slashes is a path.
fn is_event(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let word = |part: &str| !part.is_empty() && !part.starts_with(['.', '@']);
    match parts[..] {
        [all] => word(all),
        [address, length] => address.starts_with("mem:") && word(length),
        [source, terms, modifiers] => {
            word(source) && !terms.starts_with('.') && modifiers.chars().all(char::is_alphabetic)
        }
        _ => false,
    }
}

/// In a folder that is called as an event's source perf would look for a program, `x.o` for the event `x.other`, too.
fn refuse_folder(name: &str) -> Result<(), Failure> {
    let folder = name.split_once('/');
    let folder = folder.map(|(source, _)| Path::new(FOLDER).join(source));
    match folder.filter(|folder| folder.symlink_metadata().is_ok()) {
        Some(folder) => Err(Failure::new(
            format!(
                "perf could take {name} for a file, because {} exists",
                folder.display()
            ),
            "remove or rename that file, or choose an event without a slash",
        )
        .coded(Code::EventRefused)),
        None => Ok(()),
    }
}

/// perf's name for an event, by which it takes each one as a sample if the kernel counts it by itself.
fn each_one(name: &str) -> String {
    let (plain, modifier) = name.split_once(':').unwrap_or((name, ""));
    let same = SAME.iter().find(|(other, _)| *other == plain);
    let plain = same.map_or(plain, |(_, plain)| plain);
    match COUNTED.contains(&plain) {
        true => format!("{plain}/period=1/{modifier}"),
        false => name.to_owned(),
    }
}

/// perf's name for an event with a frequency of its own, where it can have one and has neither that nor a period.
fn with_frequency(term: &str, frequency: u32) -> String {
    if ["period=", "freq="].iter().any(|own| term.contains(own)) {
        return term.to_owned();
    }
    if let Some((before, modifier)) = term.rsplit_once('/').filter(|(it, _)| it.contains('/')) {
        let comma = if before.ends_with('/') { "" } else { "," };
        return format!("{before}{comma}freq={frequency}/{modifier}");
    }
    let (plain, modifier) = term.split_once(':').unwrap_or((term, ""));
    match WITH_FREQUENCY.contains(&plain) {
        true => format!("{plain}/freq={frequency}/{modifier}"),
        false => term.to_owned(),
    }
}

/// perf's name for an event with what it is to be asked for; without `kernel` the program's own code only.
fn argument(term: &str, kernel: bool) -> String {
    let slashes = term.matches('/').count();
    match kernel || (slashes == 0 && has_modifier(term)) || (slashes > 1 && !term.ends_with('/')) {
        true => term.to_owned(),
        false if slashes > 1 => format!("{term}u"),
        false => format!("{term}:u"),
    }
}

/// `event:u` and its like; a tracepoint has a colon too.
fn has_modifier(term: &str) -> bool {
    term.rsplit_once(':')
        .is_some_and(|(_, rest)| is_modifier(rest))
}

/// The arguments that ask for these events, each of perf's own events once. Beside a tracepoint, of which every one is to
/// be a sample, each has a frequency of its own.
pub fn arguments(events: &[Event], frequency: u32, kernel: bool) -> Vec<String> {
    let own = own_frequency(events, frequency);
    let mut arguments = match own {
        Some(_) => Vec::new(),
        None => vec!["-F".to_owned(), frequency.to_string()],
    };
    let mut asked: Vec<String> = Vec::new();
    for event in events {
        let argument = event.argument(own, kernel);
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

/// What the recording that these arguments ask for is to be made, in the order of the events.
pub fn wanted(events: &[Event], frequency: u32, kernel: bool) -> Vec<Wanted> {
    let own = own_frequency(events, frequency);
    let wanted = |event: &Event| event.wanted(event.argument(own, kernel));
    events.iter().map(wanted).collect()
}

/// The frequency of each event by itself, where perf may be given none for all.
fn own_frequency(events: &[Event], frequency: u32) -> Option<u32> {
    events.iter().any(Event::is_tracepoint).then_some(frequency)
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
            (
                "page-faults",
                "page-faults/period=1/",
                "page-faults/period=1/u",
            ),
            (
                "faults:k",
                "page-faults/period=1/k",
                "page-faults/period=1/k",
            ),
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
                (
                    event(name).argument(None, true),
                    event(name).argument(None, false)
                ),
                (kernel.into(), user.into())
            );
        }
        let events = ["cpu", "cpu-clock", "offcpu"].map(event);
        let want = [
            "-F",
            "300",
            "-e",
            "cpu-clock",
            "-e",
            "context-switches/period=1/",
            "--switch-events",
        ];
        assert_eq!(arguments(&events, 300, true), want);
    }

    #[test]
    fn every_tracepoint_is_a_sample() {
        let events = ["sched:sched_switch", "cpu", "page-faults"].map(event);
        let want = "-e sched:sched_switch -e cpu-clock/freq=300/ -e page-faults/period=1/";
        assert_eq!(arguments(&events, 300, true).join(" "), want);
        assert!(arguments(&events, 300, false).contains(&"cpu-clock/freq=300/u".to_owned()));
        for (name, want) in [
            ("task-clock", "task-clock/freq=300/"),
            ("cpu-clock:u", "cpu-clock/freq=300/u"),
            ("cycles:pp", "cycles/freq=300/pp"),
            ("cpu/cache-misses/", "cpu/cache-misses,freq=300/"),
            ("cpu/cache-misses/k", "cpu/cache-misses,freq=300/k"),
            ("cpu/cycles,period=9/u", "cpu/cycles,period=9/u"),
            ("cpu//", "cpu/freq=300/"),
            ("faults:k", "page-faults/period=1/k"),
            ("sched:sched_switch:u", "sched:sched_switch:u"),
            ("mem:0x10/8:w", "mem:0x10/8:w"),
            ("r1a8:u", "r1a8:u"),
        ] {
            assert_eq!(event(name).argument(Some(300), true), want);
        }
        let asked = wanted(&["sched:sched_switch", "task-clock"].map(event), 300, false);
        assert_eq!(asked[1].perf, "task-clock/freq=300/u");
        assert!(!event("cycles:u").is_tracepoint() && !event("cpu").is_tracepoint());
    }

    #[test]
    fn what_it_becomes() {
        let names = ["cpu", "offcpu", "page-faults", "page-faults:u", "cycles:u"];
        let wanted = wanted(&names.map(event), 300, true);
        let asked: Vec<_> = wanted.iter().map(|one| (&*one.perf, &*one.name)).collect();
        let want = [
            ("cpu-clock", "cpu-clock"),
            ("context-switches/period=1/", "context-switches"),
            ("page-faults/period=1/", "page-faults"),
            ("page-faults/period=1/u", "page-faults"),
            ("cycles:u", "cycles:u"),
        ];
        assert_eq!(asked, want);
        assert_eq!(wanted[0].counted, Counted::CpuTime);
        assert_eq!(wanted[4].counted, Counted::Count);
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
        for name in [
            "sched:*",
            "page-fault?",
            "",
            "@x",
            "cpu/x/u/",
            "a/b",
            "a/b/.o",
        ] {
            assert!(
                Event::new(name).unwrap_err().reason.contains("no event"),
                "{name}"
            );
        }
        for name in ["mem_load_retired.l3_miss", "cpu/cpu_clk_unhalted.core/u"] {
            assert!(Event::new(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_perf_could_take_for_a_program() {
        for name in [
            "/tmp/x.o",
            "x.c",
            "./x",
            "x.bpf",
            "x.o:u",
            "x.obj-u",
            "software/../tmp/y.o//",
            "software/../tmp/y/",
            "software/y.o/",
            "software/y.c/u",
            "software//y.o",
            "software/../../tmp/y.cpp",
            "../tmp//",
            "software/tmp/y/u",
            "mem:0x10/y.o:w",
        ] {
            let refused = Event::new(name).unwrap_err();
            assert!(refused.reason.contains("no event"), "{name}");
        }
        // That there is in the folder in which perf runs, as it may be on any machine.
        let refused = Event::new("tmp/x.other/").unwrap_err();
        assert!(refused.reason.contains("there is /tmp"), "{refused:?}");
    }
}
