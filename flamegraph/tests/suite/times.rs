//! When samples were taken: recordings made by hand, of which each sample's moment is known.

use std::sync::Arc;

use flamegraph::perf_data::{JitMaps, Live, LiveLimits, Recorded};
use flamegraph::{
    read, read_jfr, Limits, Profile, ReadOptions, Recording, Slice, SliceOf, ThreadId, Times,
};

use crate::jfr_maker::*;
use crate::perf_live::{finished, story, stream};
use crate::perf_maker::wanted;
use crate::support::text as folded;

const START: i64 = 1_600_000_000_000_000;
const MS: u64 = 1_000_000;

fn timed() -> ReadOptions {
    ReadOptions {
        off_cpu: true,
        times: true,
        ..ReadOptions::default()
    }
}

/// The profile of the event that has this value.
fn event_of(recording: &Recording, value: &str) -> Profile {
    let value = recording.profile.value_named(value).unwrap();
    let mut all = recording.sampled.iter();
    let sampled = all.find(|sampled| sampled.count == value).unwrap();
    let values: Vec<usize> = [Some(sampled.count), sampled.amount]
        .into_iter()
        .flatten()
        .collect();
    let profile = &recording.profile;
    profile
        .select_timed(&values, sampled.times.as_ref())
        .unwrap()
}

/// Bucket and number of samples.
fn buckets(times: &Times) -> Vec<(u32, u32)> {
    let mut rows: Vec<_> = times
        .rows()
        .iter()
        .map(|row| (row.bucket, row.samples))
        .collect();
    rows.sort_unstable();
    rows
}

/// A chunk with these events, and wall-clock samples of class 33, 10 ms apart.
fn of_events(events: &[Vec<u8>]) -> Vec<u8> {
    let classes = format!(
        "{CLASSES}33 profiler.WallClockSample startTime:3 sampledThread:10* stackTrace:14* state:17* samples:2 timeSpan:3\n"
    );
    let setting =
        |name: &str, value: &str| event(32, &[numbers(&[0, 30]), text(name), text(value)].concat());
    let settings = [setting("interval", "1000"), setting("wall", "10000000")];
    chunk(&[
        Metadata::event(&classes),
        settings.concat(),
        events.concat(),
        constants(),
    ])
}

fn cpu(time: u64, thread: u64, stack: u64) -> Vec<u8> {
    event(30, &numbers(&[time, thread, stack, 1]))
}

#[test]
fn each_sample_of_a_recording_is_in_its_bucket() {
    let events = [
        (0, 1),
        (20 * MS - 1, 1),
        (20 * MS, 2),
        (40 * MS - 1, 1),
        (7000 * MS, 2),
    ];
    let events: Vec<Vec<u8>> = events
        .iter()
        .map(|&(time, stack)| cpu(time, 9, stack))
        .collect();
    let recording = read_jfr(&of_events(&events)[..], &timed()).unwrap();
    let profile = event_of(&recording, "samples");
    let times = profile.times().unwrap();
    assert_eq!((times.start, times.width), (START, 20_000));
    assert_eq!(buckets(times), [(0, 2), (1, 1), (1, 1), (350, 1)]);
    let second = profile.in_range(START + 20_000, START + 40_000).unwrap();
    assert_eq!(
        folded(&second),
        "demo/Main.café_[0] 1\ndemo/Main.café_[j];demo/Main.hі_[i];leaf_[k] 1\n"
    );
    assert_eq!(second.total(1).unwrap(), 2000);
    let untimed = read_jfr(&of_events(&events)[..], &ReadOptions::default()).unwrap();
    assert!(untimed
        .sampled
        .iter()
        .all(|sampled| sampled.times.is_none()));
}

#[test]
fn later_chunks_and_other_events_have_their_times() {
    let recording = read_jfr(&recording()[..], &timed()).unwrap();
    let samples = event_of(&recording, "samples");
    assert_eq!(
        buckets(samples.times().unwrap()),
        [(0, 2), (0, 2), (100, 2)]
    );
    let waits = event_of(&recording, "contentions");
    let rows = waits.times().unwrap().rows();
    assert_eq!((rows.len(), rows[0].amount, rows[0].band), (1, 1000, 0));
    let several = read(&crate::jfr_maker::recording(), &timed())
        .err()
        .unwrap();
    assert!(several
        .to_string()
        .starts_with("times: a profile has those of one event"));
}

#[test]
fn samples_that_are_one_event_are_spread() {
    let wall = |time, samples, span| event(33, &numbers(&[time, 9, 2, 2, samples, span]));
    let spread = |samples, span| {
        let recording = read_jfr(&of_events(&[wall(10 * MS, samples, span)])[..], &timed());
        let recording = recording.unwrap();
        let [of_wall, of_waits] = ["wall_samples", "offcpu_samples"].map(|value| {
            let profile = event_of(&recording, value);
            buckets(profile.times().unwrap())
        });
        assert_eq!(of_wall, of_waits);
        of_wall
    };
    assert_eq!(spread(1, 0), [(0, 1)]);
    assert_eq!(spread(5, 80 * MS), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]);
    // Without a span, one each interval.
    assert_eq!(spread(5, 0), [(0, 1), (1, 2), (2, 2)]);
    let many = spread(1_000_000, 20_000 * MS);
    assert_eq!(
        many.iter().map(|&(_, samples)| samples).sum::<u32>(),
        1_000_000
    );
    assert!(many.iter().all(|&(_, samples)| samples < 2100), "{many:?}");
}

#[test]
fn a_wait_has_its_duration() {
    let wait = |time, lasted| event(5000, &numbers(&[time, lasted, 9, 2, 0]));
    let events = [wait(0, 3 * MS), wait(1, 3 * MS + 5), wait(50 * MS, 900)];
    let recording = read_jfr(&of_events(&events)[..], &timed()).unwrap();
    let waits = event_of(&recording, "contentions");
    let rows = waits.times().unwrap().rows().iter();
    let rows: Vec<_> = rows
        .map(|row| (row.bucket, row.band, row.samples, row.amount))
        .collect();
    // 3 ms are from 2^11 to 2^12 µs.
    assert_eq!(rows, [(0, 12, 2, 6_000_005), (2, 0, 1, 900)]);
    let long = waits.in_bands(12..13).unwrap();
    assert_eq!(
        (long.total(0).unwrap(), long.total(1).unwrap()),
        (2, 6_000_005)
    );
}

#[test]
fn more_rows_than_are_wanted_make_buckets_longer() {
    let events: Vec<Vec<u8>> = (0..1000)
        .map(|sample| cpu(sample * 20 * MS, 9, 1))
        .collect();
    let few = ReadOptions {
        limits: Limits {
            rows: 100,
            ..Limits::default()
        },
        ..timed()
    };
    let recording = read_jfr(&of_events(&events)[..], &few).unwrap();
    let profile = event_of(&recording, "samples");
    let times = profile.times().unwrap();
    assert!(times.rows().len() <= 100 && times.width == 320_000);
    assert_eq!(
        times.rows().iter().map(|row| row.samples).sum::<u32>(),
        1000
    );
}

/// Thread 1234, whose Java number is 21, works on one stage, then maybe on another.
#[derive(Debug)]
struct Stages;

impl SliceOf for Stages {
    fn slices(&self) -> Vec<Slice> {
        let slice = |(name, certain): (&str, bool)| Slice {
            name: name.to_string(),
            certain,
        };
        [("stage 0", true), ("stage 1", false)].map(slice).to_vec()
    }

    fn slice(&self, thread: ThreadId, microseconds: i64) -> u16 {
        match (thread.native, thread.java) {
            (1234, 21) if microseconds < START + 5_000 => 1,
            (1234, 21) => 2,
            _ => 0,
        }
    }
}

#[test]
fn samples_have_slices_by_thread_and_time() {
    let events = [
        cpu(0, 9, 1),
        cpu(5 * MS, 9, 1),
        cpu(6 * MS, 9, 2),
        cpu(0, 8, 2),
    ];
    let sliced = ReadOptions {
        slices: Some(Arc::new(Stages)),
        ..timed()
    };
    let recording = read_jfr(&of_events(&events)[..], &sliced).unwrap();
    let profile = event_of(&recording, "samples");
    assert_eq!(profile.times().unwrap().slices, Stages.slices());
    let of = |slice| folded(&profile.in_slice(slice).unwrap());
    let (deep, flat) = (
        "demo/Main.café_[j];demo/Main.hі_[i];leaf_[k] 1\n",
        "demo/Main.café_[0] 1\n",
    );
    assert_eq!(
        [of(0), of(1), of(2)],
        [flat.to_string(), deep.to_string(), [flat, deep].concat()]
    );
}

/// The stream of `perf_live`, whose first sample is taken 1 s after its clock began.
fn perf(slices: Option<Arc<dyn SliceOf>>, pid: Option<u32>) -> Recorded {
    let mut live = Live::new(wanted(), LiveLimits::default());
    live.keep_times(1 << 20, (500 * MS, START), slices);
    live.read(&stream(&story())[..]).unwrap();
    finished(&mut live, pid, &JitMaps::new())
}

#[test]
fn each_sample_of_perf_is_in_its_bucket() {
    let recorded = perf(None, None);
    let times = |event: usize| recorded.events[event].profile.times().unwrap();
    assert_eq!(times(0).start, START + 500_000);
    assert_eq!(buckets(times(0)), [(0, 1), (0, 1), (100, 1), (200, 1)]);
    assert!(
        times(0).has_amounts() && !times(2).has_amounts(),
        "{:?}",
        times(2)
    );
    let waits = times(1).rows().iter();
    let waits: Vec<_> = waits
        .map(|row| (row.bucket, row.band, row.amount))
        .collect();
    assert_eq!(waits, [(200, 0, 50), (50, 20, 999_999_990)]);
    let cpu = &recorded.events[0].profile;
    let second = cpu.in_range(START + 2_500_000, START + 2_520_000).unwrap();
    assert_eq!(
        (folded(&second), second.total(1).unwrap()),
        ("[other];[else] 1\n".to_string(), 300)
    );
    let of_process = perf(None, Some(7));
    let cpu = of_process.events[0].profile.times().unwrap();
    assert_eq!(buckets(cpu), [(0, 1), (0, 1), (200, 1)]);
}

/// The threads of process 7 have a stage each.
#[derive(Debug)]
struct OfThreads;

impl SliceOf for OfThreads {
    fn slices(&self) -> Vec<Slice> {
        Stages.slices()
    }

    fn slice(&self, thread: ThreadId, _: i64) -> u16 {
        thread.native.checked_sub(6).map_or(0, |slice| slice as u16) % 3
    }
}

#[test]
fn samples_and_waits_of_perf_have_slices() {
    let recorded = perf(Some(Arc::new(OfThreads)), None);
    let total = |event: usize, slice| {
        let profile = recorded.events[event].profile.in_slice(slice).unwrap();
        profile.total(1).unwrap()
    };
    assert_eq!([0, 1, 2].map(|slice| total(0, slice)), [300, 200, 200]);
    assert_eq!(
        [0, 1, 2].map(|slice| total(1, slice)),
        [0, 0, 1_000_000_040]
    );
}
