//! When samples of a recording were taken, and how many.

use super::columns::{Pair, PAIRS};

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

/// How many samples of a pair were taken.
#[derive(Clone, Copy, Default)]
pub(super) struct Taken {
    pub(super) samples: u64,
    /// When the last was, in nanoseconds since the recording began.
    pub(super) last: u64,
}

#[derive(Clone, Copy, Default)]
pub(super) struct AllTaken([Taken; PAIRS]);

impl AllTaken {
    /// Counts samples of which the first was taken at a tick, the others one each `interval` nanoseconds.
    #[inline]
    pub(super) fn add(
        &mut self,
        pair: Pair,
        clock: &Clock,
        ticks: i64,
        (count, interval): (i64, i64),
    ) {
        let later = count.saturating_sub(1).max(0).saturating_mul(interval);
        let last = clock.nanoseconds(ticks).saturating_add(later);
        let taken = &mut self.0[pair as usize];
        taken.samples = taken.samples.saturating_add(count.max(0) as u64);
        taken.last = taken.last.max(last as u64);
    }

    /// Of everything.
    pub(super) fn samples(&self) -> u64 {
        let all = self.0.iter().map(|taken| taken.samples);
        all.fold(0, u64::saturating_add)
    }

    /// Of a pair. Without CPU samples, the JDK's samples of Java code took their place.
    pub(super) fn of(&self, pair: Pair) -> Taken {
        match (pair, self.0[pair as usize]) {
            (Pair::Cpu, Taken { samples: 0, .. }) => self.of(Pair::Execution),
            (_, taken) => taken,
        }
    }
}
