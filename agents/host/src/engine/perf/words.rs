//! What perf says when it cannot do something, in plain words and with a remedy.

use crate::engine::counters;
use crate::wire::outcome::{Code, Failure};

/// What to look for in perf's output, its code, what it means (`{}` is the event), and what to do. The first that fits
/// counts.
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
        "perf cannot run the host's timeout or sleep, which limits its time",
        "check that the agent's user may run /usr/bin/timeout, /bin/cat and /bin/sleep",
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

/// What it says where the processor lacks a counter, if nothing else of this is the case.
const NO_COUNTER: [&str; 3] = [
    "not supported",
    "no such device",
    "no such file or directory",
];

/// Why perf did not record these events.
pub fn failure(words: &str, events: &str) -> Failure {
    let lower = words.to_lowercase();
    let fits = |phrases: &&[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    match MEANINGS.iter().find(|(phrases, ..)| fits(phrases)) {
        Some((_, code, reason, remedy)) => {
            Failure::new(reason.replace("{}", events), *remedy).coded(*code)
        }
        None if NO_COUNTER.iter().any(|phrase| lower.contains(phrase)) => counters::none(events),
        None => Failure::plain(format!(
            "perf does not record {events}: {}",
            first_of(words)
        ))
        .coded(Code::PerfFailed),
    }
}

/// Why perf ended; `killed`: by which signal.
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

/// Whether a smaller buffer might do.
pub fn is_memory(words: &str) -> bool {
    let lower = words.to_lowercase();
    MEANINGS[0].0.iter().any(|phrase| lower.contains(phrase))
}

fn first_of(words: &str) -> String {
    let lines = words.lines().map(str::trim);
    let told = lines
        .filter(|line| !line.is_empty() && *line != "Error:" && !line.starts_with("[ perf record"));
    let told: Vec<&str> = told.take(3).collect();
    match told.is_empty() {
        true => "it ended without a message".to_owned(),
        false => told.join(" ").chars().take(400).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("Workload failed: No such file or directory\n", "sleep"),
            ("Error:\nquite new\n[ perf record: Woken up 1 times ]\n", "record x: quite new"),
            ("", "without a word"),
        ] {
            let reason = failure(words, "x").reason;
            assert!(reason.contains(want), "{words:?} became {reason:?}");
        }
        assert!(is_memory("Permission error mapping pages.") && !is_memory("Permission denied"));
    }
}
