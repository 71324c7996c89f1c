//! How many samples an event is, and what they amount to.

use super::columns::{nanoseconds, Pair, PAIRS};
use super::events::{self, Kind, Source};
use super::layout::Slots;
use super::settings::Settings;
use crate::profile::{Error, Result};

/// A count, and what it amounts to where that is known.
pub(super) type Weight = (i64, Option<i64>);

/// Weighs samples; keeps the fractions of estimated counts, so that their sum is right.
pub(super) struct Weights {
    estimate: bool,
    fractions: [f64; PAIRS],
}

impl Weights {
    pub(super) fn new(estimate: bool) -> Weights {
        Weights {
            estimate,
            fractions: [0.0; PAIRS],
        }
    }

    #[inline]
    pub(super) fn of(
        &mut self,
        kind: &Kind,
        pair: Pair,
        slots: &Slots,
        settings: &Settings,
        ticks_per_second: i64,
    ) -> Result<Weight> {
        let amount = slots[events::AMOUNT] as i64;
        let size = slots[events::SIZE] as i64;
        match kind.source {
            _ if matches!(pair, Pair::SocketBytes | Pair::FileBytes) => Ok((size.max(0), None)),
            Source::Lasting(_) => Ok((1, Some(nanoseconds(amount, ticks_per_second)?))),
            Source::Old if !kind.layout.has(events::AMOUNT) => Ok((1, None)),
            Source::Old => Ok((1, Some(amount))),
            Source::CpuWeighted => times(amount.max(1), settings.cpu_interval()),
            Source::Weighted(_) => {
                let weight = f64::from(f32::from_bits(slots[events::AMOUNT] as u32));
                // Without a weight it stands for itself.
                let weight = if weight >= 1.0 { weight } else { 1.0 };
                let bytes = (size.max(0) as f64 * weight).round() as i64;
                Ok((self.whole(pair, weight), Some(bytes)))
            }
            Source::Execution if pair == Pair::Execution => times(1, settings.period()),
            Source::Execution if pair == Pair::Wall => times(1, settings.wall_interval()),
            Source::Execution => times(1, settings.cpu_interval()),
            Source::Native => Ok((1, None)),
            Source::Wall if kind.layout.has(events::AMOUNT) => {
                times(amount, settings.wall_interval())
            }
            Source::Wall => times(1, settings.wall_interval()),
            Source::CpuTime => Ok((1, Some(nanoseconds(amount, ticks_per_second)?))),
            Source::Lock => {
                let nanoseconds = nanoseconds(amount, ticks_per_second)?;
                Ok(self.estimated(kind, pair, (nanoseconds, nanoseconds), settings))
            }
            _ => {
                let size = match kind.layout.has(events::SIZE) {
                    true => size,
                    false => amount,
                };
                Ok(self.estimated(kind, pair, (amount, size), settings))
            }
        }
    }

    /// What a sampled event of this amount and size stands for, if that is asked for.
    fn estimated(
        &mut self,
        kind: &Kind,
        pair: Pair,
        (amount, size): (i64, i64),
        settings: &Settings,
    ) -> Weight {
        // The JDK weighs its samples itself and does not record their size: each counts as one.
        if !self.estimate || kind.source == Source::Allocation || size <= 0 {
            return (1, Some(amount));
        }
        let whole = match (kind.source, settings.sampling_interval(kind.source)) {
            (_, None) => amount,
            (Source::Live, Some(interval)) => sampled(size, interval),
            (Source::Tlab, Some(interval)) if amount == size.max(interval) => {
                sampled(size, interval)
            }
            // An amount below the interval stands for the whole interval.
            (_, Some(interval)) => amount.max(interval),
        };
        (self.whole(pair, whole as f64 / size as f64), Some(whole))
    }

    /// A count without its fraction, which is added to the next one.
    fn whole(&mut self, pair: Pair, count: f64) -> i64 {
        let fraction = &mut self.fractions[pair as usize];
        *fraction += count;
        let whole = fraction.floor();
        *fraction -= whole;
        whole as i64
    }
}

/// The bytes that an object of this size stands for, sampled each `interval` bytes on average: its size by
/// how likely it was to be sampled.
fn sampled(size: i64, interval: i64) -> i64 {
    let size = size as f64;
    let likely = -(-size / interval.max(1) as f64).exp_m1();
    (size / likely).round() as i64
}

fn times(count: i64, interval: Option<i64>) -> Result<Weight> {
    let product = interval.map(|interval| count.checked_mul(interval));
    match product {
        Some(None) => Err(Error::Overflow("samples times the interval".into())),
        known => Ok((count, known.flatten())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_objects_stand_for_the_interval_and_large_ones_for_themselves() {
        assert_eq!(sampled(2, 1 << 20), (1 << 20) + 1);
        assert_eq!(sampled(24, 524_288), 524_300);
        assert_eq!(sampled(524_288, 524_288), 829_411);
        assert_eq!(sampled(1 << 30, 524_288), 1 << 30);
        assert_eq!(sampled(i64::MAX, 1), i64::MAX);
    }
}
