//! What is said of a whole recording, from its parts: one part is too short to judge.

use std::collections::BTreeMap;

use super::plan::Plan;
use crate::engine::api::{fraction, share, EventProfile, Note};
use crate::wire::outcome::{Code, Failure};

/// Above these factors a slow wall-clock sampler is corrected for, and above the second the result is degraded.
const BEHIND: f64 = 1.02;
const FAR_BEHIND: f64 = 1.2;
/// Fewer samples of a thread prove nothing.
const FEW: f64 = 20.0;
/// The depth of the outermost frames, below the thread groups.
const BELOW_THREADS: u32 = 2;
/// Objects of this size may be allocated outside of TLABs, in bytes.
const LARGE: i64 = 16 << 10;
/// The interval from which on the JVM misses too many of them, in bytes. At 128 KiB they were a twentieth too few.
const MISSING: u64 = 256 << 10;

#[derive(Default)]
pub struct Tally {
    /// By event: the stacks that could not be walked to their end, and all.
    stacks: BTreeMap<String, (u64, u64)>,
    /// By event: the bytes of large objects, and of all.
    objects: BTreeMap<String, (u64, u64)>,
    /// The seconds that were sampled by the wall clock, and those for which there are samples.
    wall: (f64, f64),
}

impl Tally {
    pub fn add_stacks(&mut self, recorded: &EventProfile) -> flamegraph::Result<()> {
        let nodes = recorded.profile.nodes(0)?;
        let ends = nodes.filter(|node| node.depth == BELOW_THREADS && is_end_of_walk(node.name));
        let broken = ends.map(|node| node.total_value).sum();
        add(&mut self.stacks, recorded, broken, 0)
    }

    /// Of a JVM that misses large objects.
    pub fn add_objects(&mut self, recorded: &EventProfile) -> flamegraph::Result<()> {
        let profile = &recorded.profile;
        let of_size = profile.nodes(1)?.zip(profile.nodes(0)?);
        let of_size = of_size.map(|(bytes, objects)| (bytes.self_value, objects.self_value));
        let large = of_size.filter(|(bytes, objects)| *bytes / LARGE >= (*objects).max(1));
        let large = large.map(|(bytes, _)| bytes).sum();
        add(&mut self.objects, recorded, large, 1)
    }

    /// Returns the factor by which a wall-clock sample stands for more than its interval (nanoseconds), if it is to be
    /// corrected. The `busiest` thread, which lived throughout as every JVM has one, should have one sample per interval.
    pub fn add_wall(&mut self, seconds: f64, busiest: u64, interval: u64) -> Option<f64> {
        let expected = seconds * 1e9 / interval.max(1) as f64;
        if busiest == 0 || expected < FEW {
            return None;
        }
        let factor = expected / busiest as f64;
        let behind = (factor > BEHIND).then_some(factor);
        self.wall.0 += seconds;
        self.wall.1 += seconds / behind.unwrap_or(1.0);
        behind
    }

    pub fn notes(&self, plan: &Plan) -> Vec<Note> {
        let factor = self.wall.0 / self.wall.1;
        let slow = (factor > BEHIND).then(|| slow(plan.interval("wall"), factor));
        let named = plan.events.len() > 1;
        let stacks = self.stacks.iter();
        let broken = stacks.filter_map(|(event, of)| broken(event, *of, named));
        let objects = self.objects.iter();
        let large = objects.filter_map(|(event, of)| large(event, *of, plan.interval(event)));
        slow.into_iter().chain(broken).chain(large).collect()
    }
}

/// Add to an event's sums: a part, and the total of a value.
fn add(
    sums: &mut BTreeMap<String, (u64, u64)>,
    recorded: &EventProfile,
    part: i64,
    value: usize,
) -> flamegraph::Result<()> {
    let whole = recorded.profile.total(value)?;
    let (parts, wholes) = sums.entry(recorded.event.clone()).or_default();
    *parts = parts.saturating_add(part.max(0) as u64);
    *wholes = wholes.saturating_add(whole.max(0) as u64);
    Ok(())
}

fn is_end_of_walk(name: &str) -> bool {
    name.starts_with("break_") || name.starts_with("not_walkable_") || name == "unknown_Java"
}

/// A note about stacks that the profiler could not walk to their end. `named`: there are several events.
fn broken(event: &str, (broken, all): (u64, u64), named: bool) -> Option<Note> {
    let percent = share(broken, all)?;
    let of = match named {
        true => format!(" ({event})"),
        false => String::new(),
    };
    let note = Note::plain(format!(
        "{percent} of the stacks{of} are broken: async-profiler could not walk them to where their threads begin (as where a method of theirs was once recorded as an event, which changes its class)"
    ));
    Some(
        note.coded(Code::BrokenStacks)
            .with("event", event)
            .with("share", fraction(broken, all)),
    )
}

/// A note for JDK 11 to 24 (JDK-8356372): the larger the interval, the fewer samples of large objects. At 1 MiB those of
/// 64 KiB were 26 % too few, at 4 MiB 36 %; those of 512 KiB 8 and 22 %.
fn large(event: &str, (large, all): (u64, u64), interval: u64) -> Option<Note> {
    let percent = share(large, all).filter(|_| interval >= MISSING)?;
    let of = format!(
        "{event}: objects of 16 KiB or more, {percent} of all bytes, may be up to a third too few"
    );
    let remedy = "before JDK 25 they are sampled too rarely: record with --alloc-interval 128k, or on JDK 25";
    let note = Note {
        remedy: remedy.to_owned(),
        ..Note::plain(of)
    };
    Some(
        note.coded(Code::LargeObjectsMissed)
            .with("event", event)
            .with("share", fraction(large, all))
            .with("bytes", interval),
    )
}

fn slow(interval: u64, factor: f64) -> Note {
    let milliseconds = |nanoseconds: f64| (nanoseconds / 1e5).round() / 10.0;
    let interval = interval as f64;
    Note {
        degraded: factor > FAR_BEHIND,
        ..Note::of(Failure::new(
            format!(
                "the wall-clock sampler could not keep up: one sample stands for {} ms instead of {} ms",
                milliseconds(interval * factor),
                milliseconds(interval)
            ),
            "use a longer --wall-interval",
        ).coded(Code::SamplerSlow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::async_profiler::intervals::Intervals;
    use crate::engine::async_profiler::results::values;
    use flamegraph::Profile;

    const MS: u64 = 1_000_000;

    fn plan(events: &[&str], alloc: u64) -> Plan {
        let intervals = Intervals {
            cpu: MS,
            alloc,
            lock: 0,
            wall: 10 * MS,
        };
        let events = events.iter().map(|&event| event.to_owned()).collect();
        Plan::new(events, intervals, 60.0, true)
    }

    fn recorded(event: &str, stacks: &[(&[&str], [i64; 2])]) -> EventProfile {
        let mut profile = Profile::new(values(event));
        for (stack, values) in stacks {
            profile.add_stack(stack, values).unwrap();
        }
        EventProfile {
            profile,
            event: event.to_owned(),
            source: String::new(),
            interval: 1000,
            taken: 1,
            callers_unsure: false,
        }
    }

    fn shares(tally: &Tally, plan: &Plan) -> Vec<(String, Option<f64>)> {
        let notes = tally.notes(plan).into_iter();
        notes
            .map(|note| (note.text, note.parameters["share"].as_f64()))
            .collect()
    }

    #[test]
    fn a_sampler_that_falls_behind() {
        for (seconds, busiest, want) in [
            (3.0, 300, None),
            (3.0, 296, None),
            (3.0, 305, None),
            (3.0, 200, Some(1.5)),
            (0.1, 5, None),
            (3.0, 0, None),
        ] {
            let factor = Tally::default().add_wall(seconds, busiest, 10 * MS);
            assert_eq!(factor, want, "{busiest}");
        }
        let plan = plan(&["wall"], 0);
        let mut tally = Tally::default();
        tally.add_wall(3.0, 200, 10 * MS);
        let far = tally.notes(&plan).remove(0);
        assert!(far.degraded && far.text.ends_with("15 ms instead of 10 ms"));
        tally.add_wall(10.0, 1000, 10 * MS);
        let near = tally.notes(&plan).remove(0);
        assert!(!near.degraded && near.text.ends_with("10.8 ms instead of 10 ms"));
        tally.add_wall(100.0, 10_000, 10 * MS);
        assert_eq!(tally.notes(&plan), []);
    }

    #[test]
    fn large_objects_at_a_large_interval() {
        let note = |interval, size: i64| {
            let mut tally = Tally::default();
            for objects in [1, 2] {
                let small: (&[&str], _) = (&["small"], [3500, 350_000]);
                let large: (&[&str], _) = (&["large"], [objects, objects * size]);
                let recorded = recorded("alloc", &[small, large]);
                tally.add_objects(&recorded).unwrap();
            }
            let notes = shares(&tally, &plan(&["alloc"], interval));
            notes.first().map(|(_, share)| *share)
        };
        assert_eq!(note(512 << 10, 100_000), Some(Some(0.3)));
        assert_eq!(note(512 << 10, 16_000), None);
        assert_eq!(note(128 << 10, 100_000), None);
    }

    #[test]
    fn stacks_that_were_not_walked_to_their_begin() {
        let part = |all: i64, broken: i64| {
            let stacks: [(&[&str], _); 3] = [
                (&["[main]", "thread_start", "Job.run"], all - broken),
                (&["[main]", "break_interpreted", "Job.run"], broken / 2),
                (
                    &["[pool-N]", "unknown_Java", "break_of"],
                    broken - broken / 2,
                ),
            ];
            recorded(
                "cpu",
                &stacks.map(|(stack, count)| (stack, [count, count * 1000])),
            )
        };
        let (one, several) = (plan(&["cpu"], 0), plan(&["cpu", "wall"], 0));
        let mut tally = Tally::default();
        tally.add_stacks(&part(100, 93)).unwrap();
        let (text, share) = shares(&tally, &one).remove(0);
        assert!(text.starts_with("93 % of the stacks are broken: "));
        assert_eq!(share, Some(0.93));
        let (text, _) = shares(&tally, &several).remove(0);
        assert!(text.starts_with("93 % of the stacks (cpu) are broken: "));
        // A part of few samples says nothing about an hour.
        tally.add_stacks(&part(10_000, 0)).unwrap();
        assert_eq!(shares(&tally, &one), []);
    }
}
