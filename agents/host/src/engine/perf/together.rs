//! Which events go into one recording of perf's.

use super::events::Event;
use crate::wire::outcome::{Code, Failure};

const APART: &str = "record them in separate runs";

/// Of these events those that can be recorded together, and why not the others.
pub fn possible(events: Vec<Event>, kernel: bool) -> (Vec<Event>, Vec<Failure>) {
    let (events, mut refused) = told_apart(events, kernel);
    let (events, others) = at_their_frequency(events);
    refused.extend(others);
    (events, refused)
}

/// Leaves out what perf would sample at its own frequency, 4000 Hz, instead of the one asked for: it is given none for
/// all beside a tracepoint, and raw events, for one, take none of their own.
fn at_their_frequency(events: Vec<Event>) -> (Vec<Event>, Vec<Failure>) {
    let Some(each) = events.iter().find(|event| event.is_tracepoint()) else {
        return (events, Vec::new());
    };
    let beside = each.name.clone();
    let (kept, others): (Vec<_>, Vec<_>) = events.into_iter().partition(Event::takes_frequency);
    let refused = others.into_iter().map(|event| {
        Failure::new(
            format!(
                "{} cannot be recorded beside the tracepoint {beside}: perf would not keep the frequency",
                event.name
            ),
            APART,
        ).coded(Code::EventLeftOut)
    });
    (kept, refused.collect())
}

/// Leaves out what is asked for beside the same event in another form, as `page-faults:u` beside `page-faults`: kernels
/// (6.18 does) may hand the samples of both to one of them.
fn told_apart(events: Vec<Event>, kernel: bool) -> (Vec<Event>, Vec<Failure>) {
    let (mut kept, mut refused): (Vec<Event>, _) = (Vec::new(), Vec::new());
    for event in events {
        let counted = event.counted().is_some();
        let same = |other: &&Event| counted && other.counted() == event.counted();
        let other_form =
            |other: &&Event| other.argument(None, kernel) != event.argument(None, kernel);
        match kept.iter().filter(same).find(other_form) {
            None => kept.push(event),
            Some(other) => refused.push(
                Failure::new(
                    format!(
                        "{} cannot be recorded beside {}: kernels mix up their samples",
                        event.name, other.name
                    ),
                    APART,
                )
                .coded(Code::EventLeftOut),
            ),
        }
    }
    (kept, refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str) -> Event {
        Event::new(name).unwrap()
    }

    #[test]
    fn one_event_in_two_forms_is_recorded_in_the_first() {
        for (names, kernel, want) in [
            ("page-faults page-faults:u cpu", true, "page-faults cpu"),
            (
                "page-faults page-faults:u",
                false,
                "page-faults page-faults:u",
            ),
            (
                "faults page-faults minor-faults",
                true,
                "faults page-faults minor-faults",
            ),
            ("offcpu cs cs:k", true, "offcpu cs"),
            (
                "cpu cpu-clock:u cycles cycles:u",
                true,
                "cpu cpu-clock:u cycles cycles:u",
            ),
        ] {
            let (kept, refused) = told_apart(names.split(' ').map(event).collect(), kernel);
            let all: Vec<_> = kept.iter().map(|event| &*event.name).collect();
            assert_eq!(all.join(" "), want);
            assert_eq!(kept.len() + refused.len(), names.split(' ').count());
        }
    }

    #[test]
    fn nothing_is_sampled_at_another_frequency() {
        for (names, want) in [
            ("r1a8 cpu L1-dcache-load-misses", "r1a8 cpu L1-dcache-load-misses"),
            (
                "r1a8 cpu sched:sched_switch page-faults offcpu mem:0x10:w",
                "cpu sched:sched_switch page-faults offcpu mem:0x10:w",
            ),
            (
                "sched:sched_switch L1-dcache-load-misses cycles:pp mem_load_retired.l3_miss cpu/cache-misses/k r1a8:u",
                "sched:sched_switch cycles:pp cpu/cache-misses/k",
            ),
        ] {
            let (kept, refused) = possible(names.split(' ').map(event).collect(), true);
            let all: Vec<_> = kept.iter().map(|event| &*event.name).collect();
            assert_eq!(all.join(" "), want);
            assert_eq!(kept.len() + refused.len(), names.split(' ').count());
            assert!(refused.iter().all(|failure| failure.reason.contains("beside")));
        }
    }
}
