//! What one sample stands for: as requested, or chosen by what the JVM does.
//!
//! No allocation interval fits all JVMs: 512 KiB costs a JVM that allocates several GB/s a tenth of its throughput, and
//! 16 MiB shows nothing of one that allocates 10 MB/s. So the interval follows the allocation rate, which the JVM's
//! performance data show.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::engine::api::Note;
use crate::jvm::hsperf;
use crate::os::proc::maps::Mapped;
use crate::os::proc::named::Named;
use crate::wire::outcome::Code;
use crate::wire::sampling::Sampling;

/// The least time between two readings of the performance data.
const WHILE: Duration = Duration::from_millis(400);
/// Enough samples per second.
const SAMPLES: f64 = 200.0;
const LEAST: u64 = 512 << 10;
const MOST: u64 = 16 << 20;
/// The interval if the JVM publishes nothing.
const UNKNOWN: u64 = 2 << 20;
/// Bytes used, capacity and collections of the young generation, or of the heap if there is only one generation.
const YOUNG: [&str; 3] = [
    "sun.gc.generation.0.space.0.used",
    "sun.gc.generation.0.space.0.capacity",
    "sun.gc.collector.0.invocations",
];

/// Published if there is an old generation. Large objects may be allocated there and are not counted.
const OLD: [&str; 1] = ["sun.gc.generation.1.space.0.capacity"];

/// Nanoseconds of waiting for each sample of `lock`.
const LOCK_THRESHOLD: u64 = 10_000;
/// The interval of native allocations without heap events, in bytes.
const NATIVE_ALLOC: u64 = 512 << 10;
const MILLISECOND: u64 = 1_000_000;
/// With more threads the wall clock is sampled less often.
const MANY_THREADS: u64 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// Nanoseconds of CPU time.
    pub cpu: u64,
    /// Allocated bytes.
    pub alloc: u64,
    /// Nanoseconds of waiting. Waits are added up, and the one that completes an interval is recorded.
    pub lock: u64,
    /// Nanoseconds of each thread.
    pub wall: u64,
}

impl Intervals {
    /// `alloc` chooses the allocation interval; `threads` are the JVM's. The notes say what was chosen, and why.
    pub fn choose(
        sampling: &Sampling,
        events: &[String],
        threads: u64,
        alloc: impl FnOnce() -> (u64, Note),
    ) -> (Self, Vec<Note>) {
        let has = |wanted: [&str; 2]| events.iter().any(|event| wanted.contains(&event.as_str()));
        let mut notes = Vec::new();
        let mut chosen = |(interval, note): (u64, Note)| {
            notes.push(note);
            interval
        };
        let alloc = match sampling.alloc_interval {
            None if has(["alloc", "live"]) => chosen(alloc()),
            given => given.unwrap_or(NATIVE_ALLOC),
        };
        let wall = match sampling.wall_interval {
            None if has(["wall", "offcpu"]) && threads > MANY_THREADS => {
                let why = format!("wall interval 50 ms ({threads} threads)");
                let note = Note::plain(why).coded(Code::IntervalChosen);
                chosen((
                    50 * MILLISECOND,
                    note.with("event", "wall").with("seconds", 0.05),
                ))
            }
            given => given.unwrap_or(10 * MILLISECOND),
        };
        let intervals = Self {
            cpu: (1e9 / f64::from(sampling.frequency)).round() as u64,
            alloc,
            lock: sampling.lock_threshold.unwrap_or(LOCK_THRESHOLD),
            wall,
        };
        (intervals, notes)
    }
}

/// The first reading of the performance data.
pub struct Rate {
    at: Instant,
    first: Option<Young>,
}

#[derive(Debug, Clone, Copy)]
struct Young {
    used: u64,
    capacity: u64,
    collections: u64,
}

impl Young {
    fn look(named: &Named, data: &[Mapped]) -> Option<Self> {
        let [used, capacity, collections] = hsperf::numbers(named, data, YOUNG)?;
        Some(Self {
            used,
            capacity,
            collections,
        })
    }

    /// Bytes allocated since an earlier reading, if the generation was full at each collection.
    fn since(&self, earlier: &Self) -> u64 {
        let collections = self.collections.saturating_sub(earlier.collections);
        let Some(between) = collections.checked_sub(1) else {
            return self.used.saturating_sub(earlier.used);
        };
        earlier
            .capacity
            .saturating_sub(earlier.used)
            .saturating_add(between.saturating_mul(self.capacity))
            .saturating_add(self.used)
    }
}

impl Rate {
    pub fn begin(named: &Named, data: &[Mapped]) -> Self {
        Self {
            at: Instant::now(),
            first: Young::look(named, data),
        }
    }

    /// The interval in bytes, and why. Waits until enough time has passed since the first reading.
    pub fn interval(self, named: &Named, data: &[Mapped]) -> (u64, Note) {
        let second = self.first.and_then(|first| {
            sleep(WHILE.saturating_sub(self.at.elapsed()));
            Some((first, Young::look(named, data)?))
        });
        let Some((first, second)) = second else {
            let why = "the JVM does not publish how much it allocates";
            return (UNKNOWN, note(UNKNOWN, why));
        };
        let rate = second.since(&first) as f64 / self.at.elapsed().as_secs_f64();
        let interval = interval(rate);
        let beside = hsperf::numbers(named, data, OLD).is_some();
        (interval, note(interval, &seen(rate, beside)))
    }
}

/// `beside`: whether allocations may have been missed. Some collectors publish what was allocated only when they
/// collect.
fn seen(rate: f64, beside: bool) -> String {
    if rate < 1e6 {
        return String::from("the JVM showed almost no allocations before the recording");
    }
    let least = if beside { "at least " } else { "" };
    format!("{least}{} allocated", amount(rate))
}

fn note(bytes: u64, why: &str) -> Note {
    let interval = match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mebibytes => format!("{mebibytes} MiB"),
    };
    Note::plain(format!("allocation interval {interval} ({why})"))
        .coded(Code::IntervalChosen)
        .with("event", "alloc")
        .with("bytes", bytes)
}

/// The least power of two that gives no more than enough samples, at this rate in bytes per second.
fn interval(rate: f64) -> u64 {
    let least = (rate / SAMPLES).clamp(LEAST as f64, MOST as f64);
    (least as u64).next_power_of_two().min(MOST)
}

fn amount(rate: f64) -> String {
    match rate {
        rate if rate >= 1e9 => format!("{:.1} GB/s", rate / 1e9),
        rate => format!("{:.0} MB/s", rate / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_tell_what_was_allocated_between() {
        let young = |used, collections| Young {
            used,
            capacity: 100,
            collections,
        };
        for (earlier, later, want) in [
            (young(10, 3), young(40, 3), 30),
            (young(10, 3), young(40, 4), 130),
            (young(10, 3), young(40, 6), 330),
            // A hostile JVM may publish anything.
            (young(40, 3), young(10, 3), 0),
            (young(40, 3), young(10, 1), 0),
            (young(0, 0), young(0, u64::MAX), u64::MAX),
        ] {
            assert_eq!(later.since(&earlier), want, "{earlier:?} {later:?}");
        }
    }

    #[test]
    fn intervals_follow_the_rate() {
        for (rate, want) in [
            (0.0, 512 << 10),
            (50e6, 512 << 10),
            (150e6, 1 << 20),
            (1.3e9, 8 << 20),
            (1e12, 16 << 20),
        ] {
            assert_eq!(interval(rate), want, "{rate}");
        }
        assert_eq!(
            note(1 << 20, &seen(1.26e9, true)).text,
            "allocation interval 1 MiB (at least 1.3 GB/s allocated)"
        );
        assert!(seen(3e5, true).ends_with("before the recording"));
        assert!(note(LEAST, &seen(12e6, false))
            .text
            .contains("512 KiB (12 MB/s"));
    }
}
