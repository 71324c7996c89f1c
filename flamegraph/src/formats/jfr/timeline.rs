//! How many samples were taken in each second of a recording.

use super::columns::{Pair, PAIRS};

/// A day and a minute: longer recordings are not shown by the second.
const MOST_SECONDS: usize = 86_460;
const NANOSECONDS: i64 = 1_000_000_000;

/// Where the ticks of a chunk stand in the time of the recording.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    /// When the chunk began, in nanoseconds since the recording did, and in ticks.
    pub(super) chunk: i64,
    pub(super) ticks: i64,
    pub(super) ticks_per_second: i64,
}

impl Clock {
    /// Nanoseconds since the recording began; none before it did.
    #[inline]
    pub(super) fn nanoseconds(&self, ticks: i64) -> i64 {
        if self.ticks_per_second == NANOSECONDS {
            let since = ticks.saturating_sub(self.ticks);
            return since.saturating_add(self.chunk).max(0);
        }
        let since = i128::from(ticks) - i128::from(self.ticks);
        let since = since * i128::from(NANOSECONDS) / i128::from(self.ticks_per_second);
        let since = since + i128::from(self.chunk);
        since.clamp(0, i128::from(i64::MAX)) as i64
    }
}

/// Samples by pair and second.
#[derive(Default)]
pub(super) struct Timeline {
    seconds: [Vec<u64>; PAIRS],
}

impl Timeline {
    /// Counts samples of which the first was taken at a tick, the others one each `interval` nanoseconds.
    #[inline]
    pub(super) fn add(
        &mut self,
        pair: Pair,
        clock: &Clock,
        ticks: i64,
        (count, interval): (i64, i64),
    ) {
        let first = clock.nanoseconds(ticks);
        if count == 1 {
            return self.put(pair, first / NANOSECONDS, 1);
        }
        let (mut left, mut at) = (count.max(0), first);
        while left > 0 {
            let second = at / NANOSECONDS;
            let room = (second + 1).saturating_mul(NANOSECONDS) - at;
            let here = match interval {
                1.. if second < MOST_SECONDS as i64 => left.min((room - 1) / interval + 1),
                _ => left,
            };
            self.put(pair, second, here as u64);
            at = at.saturating_add(here.saturating_mul(interval));
            left -= here;
        }
    }

    fn put(&mut self, pair: Pair, second: i64, count: u64) {
        let second = second as usize;
        if second >= MOST_SECONDS {
            return;
        }
        let seconds = &mut self.seconds[pair as usize];
        if seconds.len() <= second {
            seconds.resize(second + 1, 0);
        }
        seconds[second] = seconds[second].saturating_add(count);
    }

    /// The seconds of a pair. Without CPU samples, the JDK's samples of Java code took their place.
    pub(super) fn take(&mut self, pair: Pair) -> Vec<u64> {
        let seconds = std::mem::take(&mut self.seconds[pair as usize]);
        match pair {
            Pair::Cpu if seconds.is_empty() => self.take(Pair::Execution),
            _ => seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock {
        chunk: 500_000_000,
        ticks: 7,
        ticks_per_second: 1000,
    };

    fn seconds(ticks: i64, samples: (i64, i64)) -> Vec<u64> {
        let mut timeline = Timeline::default();
        timeline.add(Pair::Wall, &CLOCK, ticks, samples);
        timeline.take(Pair::Wall)
    }

    #[test]
    fn samples_are_in_the_second_they_were_taken_in() {
        assert_eq!(seconds(7, (1, 0)), [1]);
        assert_eq!(seconds(506, (1, 0)), [1]);
        assert_eq!(seconds(507, (1, 0)), [0, 1]);
        assert_eq!(seconds(-9_000, (1, 0)), [1], "before the beginning");
    }

    #[test]
    fn what_was_counted_together_is_spread() {
        assert_eq!(seconds(7, (10, 100_000_000)), [5, 5]);
        assert_eq!(seconds(507, (25, 100_000_000)), [0, 10, 10, 5]);
        assert_eq!(seconds(7, (3, 0)), [3], "no interval is known");
        assert_eq!(seconds(7, (2, 3_000_000_000)), [1, 0, 0, 1]);
        assert!(seconds(7, (0, 1)).is_empty());
    }

    #[test]
    fn the_end_of_time_is_no_place_to_be() {
        assert!(seconds(i64::MAX, (1, 1)).is_empty());
        let spread = seconds(7, (i64::MAX, 1_000_000_000));
        assert_eq!(spread.len(), MOST_SECONDS);
        assert_eq!(spread.iter().sum::<u64>(), MOST_SECONDS as u64);
    }
}
