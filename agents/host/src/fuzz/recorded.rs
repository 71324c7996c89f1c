//! What a profiler recorded.

use flamegraph::{read, read_jfr, Format, Limits, ReadOptions};

use crate::engine::api::{EventProfile, Folded, Stopped};
use crate::engine::async_profiler::intervals::Intervals;
use crate::engine::async_profiler::plan::Plan;
use crate::engine::async_profiler::results;
use crate::engine::async_profiler::tally::Tally;

const EVENTS: [&str; 9] = [
    "cpu",
    "wall",
    "offcpu",
    "alloc",
    "live",
    "lock",
    "nativemem",
    "nativelive",
    "page-faults",
];
const INTERVALS: Intervals = Intervals {
    cpu: 3_333_333,
    alloc: 512 << 10,
    lock: 10_000,
    wall: 10_000_000,
};
const SECONDS: f64 = 5.0;

/// A recording of async-profiler, and the profiles that are sent.
pub fn recording(bytes: &[u8]) {
    let limits = Limits {
        cells: 1 << 18,
        names_bytes: 1 << 20,
        rows: 1 << 16,
        ..Limits::default()
    };
    let Ok(recording) = read_jfr(bytes, &results::wanted(limits, true)) else {
        return;
    };
    let plan = Plan::new(EVENTS.map(str::to_owned).to_vec(), INTERVALS, SECONDS, true);
    for stopped in [Stopped::OnRequest, Stopped::Early] {
        let (used, tally) = (&plan.choices[0], &mut Tally::default());
        let folded = results::of_recording(&recording, stopped, &plan, used, SECONDS, tally);
        let Ok(Folded { profiles, .. }) = folded else {
            continue;
        };
        let events: Vec<&str> = profiles.iter().map(|sent| sent.event.as_str()).collect();
        assert_eq!(events, EVENTS);
        profiles.iter().for_each(can_be_sent);
    }
}

/// Its numbers agree, and the coordinator reads what was written.
pub fn can_be_sent(sent: &EventProfile) {
    let mut written = Vec::new();
    let done = sent.profile.write_compact(&mut written);
    done.expect("there is memory");
    let copy = read(&written, &ReadOptions::of(Some(Format::Compact)));
    let copy = copy.unwrap_or_else(|error| panic!("{}: {error}", sent.event));
    assert_eq!(copy.values(), sent.profile.values());
    let samples = |profile: &flamegraph::Profile| {
        let times = profile.times().map(|times| times.rows().iter());
        times.map(|rows| rows.map(|row| u64::from(row.samples)).sum::<u64>())
    };
    assert_eq!(samples(&copy), samples(&sent.profile));
    for value in 0..copy.values().len() {
        let folded = |profile: &flamegraph::Profile| {
            let mut out = Vec::new();
            let done = profile.write_folded(&mut out, value, true);
            done.map(|()| out).expect("there is memory")
        };
        assert!(
            folded(&copy) == folded(&sent.profile),
            "{}, value {value}",
            sent.event
        );
    }
}
