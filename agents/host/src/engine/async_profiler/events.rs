//! Which events async-profiler takes, and which of them go into one recording.

use crate::engine::counters::{is_hardware, refuse_missing};
use crate::engine::tracepoints::refuse_unmounted;
use crate::wire::outcome::{Code, Failure};

/// Events that have an argument of their own, so that all of them go into one recording.
const OWN_ARGUMENT: [&str; 6] = ["alloc", "live", "lock", "nativemem", "offcpu", "wall"];
/// What the profiler can sample CPU time by.
const WAYS_OF_CPU: [&str; 4] = ["cpu-clock", "ctimer", "itimer", "task-clock"];
/// Events that the kernel counts for perf, while this profiler would look for functions of these names.
const OF_PERF: [&str; 9] = [
    "alignment-faults",
    "cpu-migrations",
    "cs",
    "emulation-faults",
    "faults",
    "major-faults",
    "migrations",
    "minor-faults",
    "bpf-output",
];

/// Others with a hyphen, of which it knows more, are counters of hardware. No function has one in its name.
const WITH_HYPHEN: [&str; 2] = ["context-switches", "page-faults"];

/// Of these events those that one recording on this machine has, in their order, and why not the others.
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

/// The event that takes the profiler's only `event=`, if one does.
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
    refuse_missing(event)?;
    refuse_unmounted(event)
}

/// Whether the profiler would look for a function that no program has.
fn is_unknown(event: &str) -> bool {
    let word = event.contains('-') && !event.contains([':', '/', '.']);
    word && !WITH_HYPHEN.contains(&event) && !is_hardware(event)
}

/// Take out the events for which there is no place beside the counted one, and say so of each.
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
    fn a_hyphen_is_the_kernels() {
        assert!(is_unknown("page-fault") && !is_unknown("page-faults"));
        assert!(!is_unknown("sched:a-b"));
    }

    #[test]
    fn each_that_is_left_out_is_told() {
        let (_, refused) = of("page-faults cpu context-switches");
        assert!(refused[0].reason.contains("only one of cpu, page-faults"));
        assert!(refused[1].remedy.contains("-e context-switches"));
        assert!(of("ctimer").1[0].remedy.contains("ask for cpu"));
    }
}
