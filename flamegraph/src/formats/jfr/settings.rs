//! The settings of a recording: events and the intervals between samples.

use super::bytes::Cursor;
use super::chunk::Event;
use super::columns::{pair_of, Pair};
use super::events::{Kinds, Source};
use super::layout::Slots;
use super::pools::Pools;

/// async-profiler's intervals in nanoseconds by default.
const CPU_INTERVAL: i64 = 10_000_000;
const WALL_INTERVAL: i64 = 50_000_000;
/// async-profiler's bytes between two sampled allocations by default.
const ALLOC_INTERVAL: i64 = 524_287;
/// The events of async-profiler whose samples stand for time.
const TIMED: [&str; 7] = [
    "cpu",
    "wall",
    "cpu-clock",
    "task-clock",
    "itimer",
    "ctimer",
    "cpu_clock",
];

/// Events that have values of their own, whatever way they were asked for.
const NO_COUNT: [&str; 4] = ["alloc", "live", "lock", "nativemem"];

/// The settings of a recording so far. A setting is valid until a later chunk changes it: async-profiler writes them into
/// the first one only.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    event: Option<String>,
    interval: Option<i64>,
    wall: Option<i64>,
    period: Option<i64>,
    engine: Option<String>,
    alloc: Option<i64>,
    lock: Option<i64>,
    native: Option<i64>,
    live: bool,
    /// The JDK's version, such as 17.
    jdk: Option<u32>,
    /// What the JDK can record.
    declared: Vec<Pair>,
}

impl Settings {
    /// Takes in an event of the kind `jdk.ActiveSetting`.
    pub(super) fn take(&mut self, event: Event, kinds: &Kinds, pools: &Pools<'_>, bytes: &[u8]) {
        let mut slots = Slots::default();
        let mut cursor = Cursor::new(&bytes[..event.end], event.fields);
        let read = kinds
            .setting
            .as_ref()
            .map(|(_, layout)| layout.read(&mut cursor, &mut slots));
        if read.flatten().is_none() {
            return;
        }
        let [id, name, value, ..] = slots;
        let (name, value) = (pools.text(name).utf8(), pools.text(value).utf8());
        let value = String::from_utf8_lossy(&value);
        let of_samples = kinds.cpu_samples.contains(&Some(id));
        match &*name {
            b"event" if kinds.active_recording == Some(id) && !value.is_empty() => {
                self.event = Some(value.into_owned());
            }
            b"engine" if kinds.active_recording == Some(id) && !value.is_empty() => {
                self.engine = Some(value.into_owned());
            }
            // Only async-profiler has these.
            b"alloc" => self.alloc = value.parse().ok(),
            b"lock" => self.lock = value.parse().ok(),
            b"nativemem" => self.native = value.parse().ok(),
            b"live" => self.live = value == "true",
            b"interval" if kinds.wall_samples == Some(id) => self.wall = value.parse().ok(),
            b"interval" if of_samples => self.interval = value.parse().ok(),
            b"wall" if of_samples => self.wall = value.parse().ok(),
            b"period" if of_samples => self.period = nanoseconds(&value),
            _ => {}
        }
    }

    /// Takes in an event of the kind `jdk.JVMInformation`: `OpenJDK 64-Bit Server VM (17.0.15+6-Debian) for linux`.
    pub(super) fn take_jvm(
        &mut self,
        event: Event,
        kinds: &Kinds,
        pools: &Pools<'_>,
        bytes: &[u8],
    ) {
        let mut slots = Slots::default();
        let mut cursor = Cursor::new(&bytes[..event.end], event.fields);
        let read = kinds
            .jvm
            .as_ref()
            .and_then(|(_, layout)| layout.read(&mut cursor, &mut slots));
        if read.is_some() {
            let version = pools.text(slots[0]).utf8();
            let version = String::from_utf8_lossy(&version);
            let number = version.split_once(" (").map_or("", |(_, number)| number);
            let end = number.find(|char: char| !char.is_ascii_digit());
            self.jdk = number[..end.unwrap_or(number.len())].parse().ok();
        }
    }

    /// Whether the JDK's samples of Java code leave out threads whose top frame is a stub, such as those that copy arrays
    /// and compute hashes. JDK 25 can walk their stacks.
    pub(super) fn skips_stubs(&self) -> bool {
        self.jdk.is_none_or(|jdk| jdk < 25)
    }

    /// Takes in what the JDK can record. It does not always write which of that it was told to record.
    pub(super) fn declare(&mut self, kinds: &Kinds) {
        for source in kinds.sources() {
            let pair = pair_of(source, (None, true), self);
            let pairs = [Some(pair), pair.bytes()].into_iter().flatten();
            if !self.declared.contains(&pair) {
                self.declared.extend(pairs);
            }
        }
    }

    /// What the samples of an async-profiler before 3.0 are, which took one kind of them only.
    pub(super) fn pair_of_event(&self) -> Pair {
        match self.event.as_deref() {
            None => Pair::Execution,
            Some("wall") => Pair::Wall,
            Some(_) if self.counted_event().is_some() => Pair::Counted,
            Some(_) => Pair::Cpu,
        }
    }

    /// What async-profiler counted, if it was not time.
    pub(super) fn counted_event(&self) -> Option<&str> {
        self.event.as_deref().filter(|event| !TIMED.contains(event))
    }

    /// What was to be sampled, and whether a sample has an amount.
    pub(super) fn sampled(&self) -> impl Iterator<Item = (Pair, bool)> + '_ {
        let event = self.event.as_deref().filter(|_| self.interval.is_some());
        let asked = |interval: Option<i64>| interval.is_some_and(|interval| interval >= 0);
        let of_event = match event {
            None => None,
            Some("wall") => Some((Pair::Wall, self.wall_interval().is_some())),
            Some(event) if TIMED.contains(&event) => {
                Some((Pair::Cpu, self.cpu_interval().is_some()))
            }
            Some(event) if NO_COUNT.contains(&event) => None,
            Some(_) => Some((Pair::Counted, false)),
        };
        let others = [
            (Pair::Wall, asked(self.wall)),
            (Pair::Alloc, asked(self.alloc)),
            (Pair::Live, self.live),
            (Pair::Lock, asked(self.lock)),
            (Pair::Malloc, asked(self.native)),
        ];
        let others = others.into_iter().filter(|&(_, asked)| asked);
        // Beside async-profiler, the JDK takes no samples.
        let is_else = move |pair: &&Pair| **pair != Pair::Execution || event.is_none();
        let declared = self
            .declared
            .iter()
            .filter(is_else)
            .map(|&pair| match pair {
                Pair::Native | Pair::SocketBytes | Pair::FileBytes => (pair, false),
                Pair::Execution => (pair, self.period.is_some()),
                _ => (pair, true),
            });
        of_event.into_iter().chain(others).chain(declared)
    }

    /// Nanoseconds that a CPU sample of async-profiler stands for.
    pub(super) fn cpu_interval(&self) -> Option<i64> {
        let of_time = self.counted_event().is_none();
        of_time
            .then(|| or_default(self.interval?, CPU_INTERVAL))
            .flatten()
    }

    /// Nanoseconds that a wall-clock sample of async-profiler stands for.
    pub(super) fn wall_interval(&self) -> Option<i64> {
        let alone = self.event.as_deref() == Some("wall");
        let interval = if alone {
            self.interval
        } else {
            self.wall.or(self.interval)
        };
        or_default(interval?, WALL_INTERVAL)
    }

    /// What async-profiler says it sampled CPU time by.
    pub(super) fn engine(&self) -> Option<&str> {
        self.engine.as_deref()
    }

    /// How much lies between two samples of these events, in bytes or nanoseconds; `None`: each was recorded.
    pub(super) fn sampling_interval(&self, source: Source) -> Option<i64> {
        match source {
            Source::Live | Source::Tlab => or_default(self.alloc?, ALLOC_INTERVAL),
            Source::OutsideTlab => self.alloc.filter(|&interval| interval > 0),
            Source::Lock => self.lock.filter(|&interval| interval > 0),
            Source::Malloc => self.native.filter(|&interval| interval > 0),
            _ => None,
        }
    }

    /// Nanoseconds between two samples of the JDK.
    pub(super) fn period(&self) -> Option<i64> {
        self.period
    }
}

fn or_default(interval: i64, default: i64) -> Option<i64> {
    match interval {
        0 => Some(default),
        given => Some(given).filter(|&given| given > 0),
    }
}

/// `20 ms` as nanoseconds. `None`: it is not a time span.
fn nanoseconds(span: &str) -> Option<i64> {
    let digits = span.trim().trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match span.trim()[digits.len()..].trim() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        _ => return None,
    };
    digits
        .parse::<i64>()
        .ok()?
        .checked_mul(unit)
        .filter(|&span| span > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        assert_eq!(nanoseconds("20 ms"), Some(20_000_000));
        assert_eq!(nanoseconds("1s"), Some(1_000_000_000));
        for span in [
            "everyChunk",
            "",
            "0 ms",
            "-1 ms",
            "5",
            "99999999999999999 s",
        ] {
            assert_eq!(nanoseconds(span), None, "{span}");
        }
    }

    #[test]
    fn intervals_of_async_profiler() {
        let mut settings = Settings {
            interval: Some(0),
            ..Settings::default()
        };
        assert_eq!(settings.cpu_interval(), Some(10_000_000));
        settings.event = Some("wall".into());
        assert_eq!(settings.wall_interval(), Some(50_000_000));
        settings.event = Some("page-faults".into());
        assert_eq!(settings.cpu_interval(), None);
        settings.wall = Some(7);
        assert_eq!(settings.wall_interval(), Some(7));
    }
}
