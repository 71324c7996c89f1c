//! When a JVM stands still for its garbage collectors, from the times that it publishes.
//!
//! HotSpot adds the length of a pause to its collector's time when the pause ends. Collectors that work while the
//! program runs (ZGC, Shenandoah, G1's marking) publish only the time for which they stop it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::jvm::hsperf;
use crate::os::lease::since_1970;
use crate::os::proc::maps::Mapped;
use crate::os::proc::named::Named;
use crate::wire::events::Pauses;

/// How often the times are read. With more JVMs it is less often, so that reading takes a hundredth of a processor.
const EVERY: Duration = Duration::from_millis(10);
const JVMS: usize = 20;
/// A JVM has at most three.
const MOST_COLLECTORS: usize = 8;
/// The most pauses of a JVM that are kept until they are sent, and of all of a session.
const MOST: usize = 100_000;
const MOST_OF_ALL: usize = 1 << 20;
const LONGEST_NAME: usize = 200;
/// A day, in microseconds: the JVM may publish anything.
const LONGEST: u64 = 86_400_000_000;

/// What a JVM publishes of its collectors, and the pauses so far.
pub struct PauseLog {
    file: File,
    ticks_per_second: u64,
    /// By collector: where its time is, and what that was when it was last read, in microseconds.
    times: Vec<(u64, u64)>,
    pauses: Pauses,
    most: usize,
    /// The time between two calls of `look`.
    pub every: Duration,
}

impl PauseLog {
    /// None: the JVM publishes nothing. `jvms`: how many the agent records.
    pub fn open(named: &Named, mapped: &[Mapped], jvms: usize) -> Option<Self> {
        let (file, bytes) = hsperf::open(named, mapped)?;
        Self::of(file, &bytes, jvms)
    }

    fn of(file: File, bytes: &[u8], jvms: usize) -> Option<Self> {
        let ticks_per_second = hsperf::long_entry(bytes, "sun.os.hrt.frequency")?;
        let collector = |number: usize| {
            let entry = |kind| format!("sun.gc.collector.{number}.{kind}");
            let name = hsperf::text_entry(bytes, &entry("name"))?;
            let place = hsperf::place(bytes, &entry("time"))? as u64;
            Some((name.chars().take(LONGEST_NAME).collect(), (place, 0)))
        };
        let (collectors, times): (Vec<String>, Vec<(u64, u64)>) =
            (0..MOST_COLLECTORS).filter_map(collector).unzip();
        if collectors.is_empty() || ticks_per_second == 0 {
            return None;
        }
        let mut log = Self {
            file,
            ticks_per_second,
            times,
            pauses: Pauses {
                collectors,
                ..Pauses::default()
            },
            most: MOST.min(MOST_OF_ALL / jvms.max(1)),
            every: EVERY * jvms.div_ceil(JVMS).max(1) as u32,
        };
        log.begin();
        Some(log)
    }

    /// The file that the JVM publishes.
    pub fn published(&self) -> Option<File> {
        self.file.try_clone().ok()
    }

    /// Forget the pauses so far.
    pub fn begin(&mut self) {
        self.steps(|_, _| {});
    }

    /// Note the pauses since the last look. Those of one collector become one.
    pub fn look(&mut self) {
        let now = since_1970().as_micros() as i64;
        let mut pauses = std::mem::take(&mut self.pauses);
        let most = self.most;
        self.steps(|collector, duration| {
            if pauses.end.len() == most {
                pauses.left_out += 1;
                return;
            }
            pauses.collector.push(collector as u8);
            pauses.end.push(now);
            pauses.duration.push(duration);
        });
        self.pauses = pauses;
    }

    /// By how many microseconds the time of each collector has grown.
    fn steps(&mut self, mut grown: impl FnMut(usize, u64)) {
        for (number, (place, before)) in self.times.iter_mut().enumerate() {
            let mut eight = [0; 8];
            // A file that became shorter is not read any more.
            if self.file.read_exact_at(&mut eight, *place).is_err() {
                continue;
            }
            let time = hsperf::microseconds(u64::from_ne_bytes(eight), self.ticks_per_second);
            if time > *before {
                grown(number, (time - *before).min(LONGEST));
            }
            *before = time;
        }
    }

    /// What to send of the pauses since the last call. The host's clock is so many microseconds ahead. `more`: the
    /// recording goes on.
    pub fn take(&mut self, pid: i32, clock_offset: i64, more: bool) -> Pauses {
        let none = Pauses {
            collectors: self.pauses.collectors.clone(),
            ..Pauses::default()
        };
        let pauses = std::mem::replace(&mut self.pauses, none);
        let end = pauses.end.iter();
        Pauses {
            pid,
            more,
            end: end.map(|end| end - clock_offset).collect(),
            ..pauses
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::hsperf::tests::published;

    /// The times of two collectors.
    fn of_two() -> (File, Vec<u8>) {
        published(&[
            ("sun.gc.collector.0.name", b"young"),
            ("sun.gc.collector.0.time", &7_000u64.to_ne_bytes()),
            ("sun.gc.collector.2.name", b"full"),
            ("sun.gc.collector.2.time", &0u64.to_ne_bytes()),
            ("sun.os.hrt.frequency", &1_000_000_000u64.to_ne_bytes()),
        ])
    }

    fn set(file: &File, bytes: &[u8], collector: usize, nanoseconds: u64) {
        let place = hsperf::place(bytes, &format!("sun.gc.collector.{collector}.time"));
        file.write_all_at(&nanoseconds.to_ne_bytes(), place.unwrap() as u64)
            .unwrap();
    }

    #[test]
    fn a_pause_is_what_a_collectors_time_grew_by() {
        let (file, bytes) = of_two();
        let mut log = PauseLog::of(file.try_clone().unwrap(), &bytes, 1).unwrap();
        log.look();
        set(&file, &bytes, 0, 5_007_999);
        set(&file, &bytes, 2, 800_000);
        log.look();
        log.look();
        set(&file, &bytes, 0, 5_008_000);
        log.look();
        // A hostile JVM may publish anything.
        set(&file, &bytes, 0, 0);
        log.look();
        file.set_len(8).unwrap();
        log.look();
        let (first, second) = (log.pauses.end[0], log.pauses.end[2]);
        assert!(first <= second);
        let pauses = log.take(7, 1_000, true);
        assert_eq!(pauses.collectors, ["young", "full"]);
        assert_eq!(pauses.collector, [0, 1, 0]);
        assert_eq!(pauses.duration, [5_000, 800, 1]);
        assert_eq!(pauses.end, [first - 1_000, first - 1_000, second - 1_000]);
        assert_eq!((pauses.pid, pauses.left_out), (7, 0));
        let rest = log.take(7, 1_000, false);
        assert_eq!((rest.end.len(), rest.collectors.len()), (0, 2));
    }

    #[test]
    fn neither_many_jvms_nor_many_pauses_cost_much() {
        let (file, bytes) = of_two();
        let mut log = PauseLog::of(file.try_clone().unwrap(), &bytes, 512).unwrap();
        assert_eq!(log.every, 26 * EVERY);
        assert_eq!(log.most, 2048);
        log.most = 1;
        for milliseconds in 1..=3 {
            set(&file, &bytes, 0, milliseconds * 1_000_000);
            log.look();
        }
        assert_eq!((log.pauses.end.len(), log.pauses.left_out), (1, 2));
        assert!(PauseLog::of(file, &bytes[..200], 1).is_none());
    }
}
