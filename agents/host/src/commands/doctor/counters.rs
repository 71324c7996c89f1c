//! What this machine counts of what was asked for, and whether `perf stat` counts the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::engine::api::Shared;
use crate::engine::perf;
use crate::metrics::counters::Chosen;
use crate::os::perf_event::{Encoding, Group, Whose, SOFTWARE};
use crate::os::threads::STACK;
use crate::wire::events::Finding;
use crate::wire::events::Severity::{Ok as Fine, Warning};

/// What is compared, where the machine has it.
const COMPARED: [&str; 3] = ["task-clock", "cycles:u", "instructions:u"];
const TIME: Duration = Duration::from_millis(300);
/// By how much two programs may differ that count one loop: other programs use the processor's caches too.
const ALIKE: f64 = 0.1;

pub fn findings(shared: &Shared) -> Vec<Finding> {
    let asked = &shared.sampling.counters;
    if asked.is_empty() {
        return Vec::new();
    }
    let chosen = Chosen::of_this_machine(asked);
    let shown = match chosen.shown() {
        all if all.is_empty() => Finding::new(Warning, "counters", "nothing can be counted"),
        all => Finding::new(Fine, "counters", format!("counts {}", all.join("; "))),
    };
    let notes = chosen
        .notes
        .into_iter()
        .map(|note| Finding::new(Warning, "counters", note.reason).remedy(note.remedy));
    let found = shared.perf.perf();
    let compared = found.ok().and_then(|perf| compare(&perf));
    std::iter::once(shown)
        .chain(notes)
        .chain(compared)
        .collect()
}

/// Count a loop of this program, and have `perf stat` count it meanwhile. None: one of them counts nothing.
fn compare(perf: &perf::Perf) -> Option<Finding> {
    let done = AtomicBool::new(false);
    let (ours, theirs) = thread::scope(|scope| {
        let (send, number) = channel();
        let done = &done;
        let work = move || {
            let groups = COMPARED.map(|event| {
                let encoding = match plain(event) {
                    "task-clock" => Some(Encoding::new(SOFTWARE, 1)),
                    other => Encoding::named(other),
                };
                Group::open(&[encoding?], Whose::ThisThread, true).ok()
            });
            let _ = send.send(rustix::thread::gettid().as_raw_nonzero().get());
            let mut sum = 0_u64;
            while !done.load(Ordering::Relaxed) {
                (0..1000_u64).for_each(|one| sum = std::hint::black_box(sum ^ one));
            }
            groups.map(|group| {
                let counts = group?.read().filter(|counts| counts.running > 0)?;
                Some(counts.values.first().copied()? as f64 / counts.running as f64)
            })
        };
        let spinning = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, work);
        let text = number
            .recv()
            .ok()
            .and_then(|thread| perf::stat(perf, &COMPARED, thread, TIME));
        done.store(true, Ordering::Relaxed);
        let ours = spinning.ok()?.join().ok()?;
        Some((ours, COMPARED.map(|event| rate(text.as_deref()?, event))))
    })?;
    verdict(&ours, &theirs)
}

/// Without `:u`.
fn plain(event: &str) -> &str {
    event.split(':').next().unwrap_or_default()
}

/// Events of each nanosecond by `perf stat -x,`: the count, its unit, the event, and for how long it was counted.
fn rate(text: &str, event: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split(',').collect();
        let [count, unit, name, running, ..] = words[..] else {
            return None;
        };
        if plain(name) != plain(event) {
            return None;
        }
        let count: f64 = count.parse().ok()?;
        let running: f64 = running.parse().ok()?;
        let each = if unit == "msec" { 1e6 } else { 1.0 };
        (running > 0.0).then_some(each * count / running)
    })
}

fn verdict(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Finding> {
    let both = COMPARED.iter().zip(ours.iter().zip(theirs));
    let both: Vec<(&str, f64, f64)> = both
        .filter_map(|(event, (ours, theirs))| Some((*event, (*ours)?, (*theirs)?)))
        .collect();
    if both.is_empty() {
        return None;
    }
    let shown = |(event, ours, theirs): &(&str, f64, f64)| {
        format!("{} {ours:.2}, {theirs:.2}", plain(event))
    };
    let all: Vec<String> = both.iter().map(shown).collect();
    let alike = both
        .iter()
        .all(|(_, ours, theirs)| (ours - theirs).abs() <= ALIKE * theirs);
    let all = all.join("; ");
    Some(match alike {
        true => Finding::new(
            Fine,
            "counters",
            format!("agrees with perf stat (ours, theirs; per ns): {all}"),
        ),
        false => Finding::new(
            Warning,
            "counters",
            format!("differs from perf stat (ours, theirs; per ns): {all}"),
        )
        .remedy("check again when the host is less busy; if it stays so, report it as a bug with the processor's name"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As perf 6.1 prints it.
    const SAID: &str = "\
300.21,msec,task-clock,300210000,100.00,1.000,CPUs utilized
900630000,,cycles:u,300210000,100.00,3.000,GHz
<not supported>,,instructions:u,0,100.00,,
";

    #[test]
    fn rates_that_perf_stat_prints() {
        assert_eq!(rate(SAID, "task-clock"), Some(1.0));
        assert_eq!(rate(SAID, "cycles"), Some(3.0));
        assert_eq!(
            (rate(SAID, "instructions"), rate("", "cycles")),
            (None, None)
        );
    }

    #[test]
    fn the_two_agree_or_differ_by_what_both_count() {
        let theirs = COMPARED.map(|event| rate(SAID, event));
        let found = verdict(&[Some(1.0), Some(3.1), Some(9.0)], &theirs).unwrap();
        assert_eq!(found.severity, Fine);
        assert!(
            found
                .text
                .ends_with("task-clock 1.00, 1.00; cycles 3.10, 3.00"),
            "{}",
            found.text
        );
        let found = verdict(&[Some(1.0), Some(2.0), None], &theirs).unwrap();
        assert_eq!(found.severity, Warning);
        assert!(verdict(&[None, None, Some(1.0)], &theirs).is_none());
    }
}
