//! Which events async-profiler and a JVM can record, and which of them go into one recording.

use crate::engine::kernel_events::{is_counter, refuse_missing};
use crate::wire::outcome::{Code, Failure};

/// Events with an argument of their own. One recording can have all of them.
const OWN_ARGUMENT: [&str; 7] = [
    "alloc",
    "live",
    "lock",
    "nativelive",
    "nativemem",
    "offcpu",
    "wall",
];
const WAYS_OF_CPU: [&str; 4] = ["cpu-clock", "ctimer", "itimer", "task-clock"];
/// perf's events that async-profiler would take for function names.
const OF_PERF: [&str; 3] = ["cs", "faults", "migrations"];

/// Events with a hyphen that are not processor counters. Function names have no hyphen.
const WITH_HYPHEN: [&str; 2] = ["context-switches", "page-faults"];

/// The first JDK that samples allocations and live objects.
const SAMPLES_HEAP: u32 = 11;
pub const SYMBOLS: &str = "install the JDK's debug symbols (a package such as openjdk-8-dbg)";

/// The events that one recording on this machine can have, in their order, and why not the others.
pub fn possible(asked: &[String]) -> (Vec<String>, Vec<Failure>) {
    let mut events = Vec::new();
    let mut refused = Vec::new();
    for event in asked {
        match refuse(event) {
            Ok(()) => events.push(event.clone()),
            Err(failure) => refused.push(failure),
        }
    }
    let others = without_first(&mut events);
    refused.extend(others);
    (events, refused)
}

/// The event that uses the profiler's only `event=`, if any.
pub fn counted(events: &[String]) -> Option<&str> {
    let counted = || events.iter().map(String::as_str).filter(is_counted);
    counted()
        .find(|event| *event == "cpu")
        .or_else(|| counted().next())
}

fn is_counted(event: &&str) -> bool {
    !OWN_ARGUMENT.contains(event)
}

fn refuse(event: &str) -> Result<(), Failure> {
    if WAYS_OF_CPU.contains(&event) {
        return Err(Failure::new(
            format!("{event} is one of the sources of cpu"),
            "use -e cpu: it uses the best source and reports it",
        )
        .coded(Code::EventUnsupported));
    }
    let pattern = event.contains(':') && event.contains(['*', '?']);
    if pattern || OF_PERF.contains(&event) || is_unknown(event) {
        return Err(Failure::new(
            format!("async-profiler has no event {event}"),
            format!("choose another event, or try --engine perf -e {event}"),
        )
        .coded(Code::EventUnknown));
    }
    refuse_missing(event)
}

/// Whether the profiler would search for a function of that name in vain.
fn is_unknown(event: &str) -> bool {
    let word = event.contains('-') && !event.contains([':', '/', '.']);
    word && !WITH_HYPHEN.contains(&event) && !is_counter(event)
}

/// Remove the events that do not fit beside the counted one, with a failure for each.
fn without_first(events: &mut Vec<String>) -> Vec<Failure> {
    let Some(first) = counted(events).map(str::to_owned) else {
        return Vec::new();
    };
    let (stay, go): (Vec<String>, Vec<String>) = std::mem::take(events)
        .into_iter()
        .partition(|event| *event == first || !is_counted(&event.as_str()));
    *events = stay;
    let no_place = |event: String| {
        Failure::new(
            format!("{event} is left out: async-profiler counts only one of {first}, {event} in a recording"),
            format!("record {event} in a run of its own: -e {event}"),
        ).coded(Code::EventLeftOut)
    };
    go.into_iter().map(no_place).collect()
}

/// The events that the JVM can record, and why not the others. If the version is unknown, all are possible.
pub fn of_jvm(asked: Vec<String>, version: Option<&str>) -> (Vec<String>, Vec<Failure>) {
    let old = version.filter(|version| feature(version).is_some_and(|it| it < SAMPLES_HEAP));
    let Some(old) = old else {
        return (asked, Vec::new());
    };
    let (live, able): (Vec<String>, Vec<String>) =
        asked.into_iter().partition(|event| event == "live");
    let too_old = |_| {
        Failure::new(
            format!("live needs JDK {SAMPLES_HEAP} or later, but this is {old}"),
            "run the application on a later JDK",
        )
        .coded(Code::JdkTooOld)
    };
    (able, live.into_iter().map(too_old).collect())
}

/// 8 of `1.8.0_412`, 17 of `17.0.9`.
pub fn feature(version: &str) -> Option<u32> {
    let version = version.strip_prefix("1.").unwrap_or(version);
    let end = version.find(|c: char| !c.is_ascii_digit());
    version[..end.unwrap_or(version.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::sampling::Sampling;

    fn of(events: &str) -> (String, Vec<Failure>) {
        let (left, refused) = possible(&Sampling::of(events).events);
        (left.join(" "), refused)
    }

    #[test]
    fn one_place_is_for_cpu_or_else_the_first() {
        for (asked, left) in [
            ("cpu wall alloc", "cpu wall alloc"),
            ("page-faults lock", "page-faults lock"),
            ("offcpu wall live", "offcpu wall live"),
            ("page-faults alloc cpu", "alloc cpu"),
            ("a.b.C.m page-faults context-switches", "a.b.C.m"),
            ("cpu ctimer", "cpu"),
            ("ctimer page-faults", "page-faults"),
            ("minor-faults", ""),
            ("sched:*", ""),
            ("page-fault off-cpu", ""),
            ("context-switches", "context-switches"),
            ("java.util.HashMap.*", "java.util.HashMap.*"),
        ] {
            let (possible, refused) = of(asked);
            assert_eq!(possible, left, "{asked}");
            let words = |text: &str| text.split_whitespace().count();
            assert_eq!(refused.len(), words(asked) - words(left), "{asked}");
            assert!(refused.iter().all(|failure| !failure.remedy.is_empty()));
        }
    }

    #[test]
    fn versions() {
        for (version, want) in [
            ("1.8.0_412", Some(8)),
            ("17.0.9", Some(17)),
            ("25", Some(25)),
            ("21-ea", Some(21)),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(feature(version), want, "{version}");
        }
    }
}
