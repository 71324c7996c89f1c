//! Finds profiles that differ from all others while the others agree.
//!
//! The spread of all profiles is a good measure if there are many. With three profiles, or two methods, it says little.
//! So each profile is left out in turn, and the disagreement of the others bounds the samples of one burst. If that is
//! unknown too, a burst is assumed to be a small part of a recording: a profile that does something else all the time
//! is an outlier.

use super::compare::{Shares, FALSE_ALARMS, FEWEST_PROFILES, SMALLEST_EFFECT};

/// A burst has at most `LONGEST_BURST` samples, or one in `BURSTS` of a recording if that is more.
const LONGEST_BURST: f64 = 50.0;
const BURSTS: f64 = 30.0;

/// All profiles together, for each method.
pub(super) struct Peers<'a> {
    profiles: &'a [&'a Shares],
    total: f64,
    counts: Vec<f64>,
    /// Squares of counts, divided by their profile's samples.
    squares: Vec<f64>,
}

/// All profiles but one, and how they vary.
struct Others {
    /// For each method its samples, and the variance of its share relative to sampling alone.
    methods: Vec<(f64, f64)>,
    total: f64,
    spread: f64,
    /// The upper bound of the spread, exceeded with probability `FALSE_ALARMS`.
    widest: f64,
}

impl Peers<'_> {
    pub(super) fn of<'a>(profiles: &'a [&'a Shares], methods: usize) -> Peers<'a> {
        let (mut counts, mut squares) = (vec![0.0; methods], vec![0.0; methods]);
        for one in profiles {
            for (method, share) in one.shares.iter().enumerate() {
                counts[method] += share * one.total;
                squares[method] += share * share * one.total;
            }
        }
        Peers {
            profiles,
            total: profiles.iter().map(|one| one.total).sum(),
            counts,
            squares,
        }
    }

    /// Whether a method's share in this profile differs from the others' by more than chance.
    pub(super) fn stands_apart(&self, own: &Shares, comparisons: f64) -> bool {
        if self.profiles.len() < FEWEST_PROFILES {
            return false;
        }
        let others = self.without(own);
        let samples = others.independent(own);
        let rest = self.independent_without(own, &others);
        let limit = (comparisons / FALSE_ALARMS).ln();
        let pairs = own.shares.iter().zip(&others.methods);
        pairs.into_iter().any(|(&share, &(count, spread))| {
            let usual = count / others.total;
            let left = samples.min(own.total / spread).max(1.0);
            let right = rest.min(others.total / spread).max(1.0);
            // The penalty for fitting both shares: the most that the best fit gains by chance.
            let price = 4f64.ln() + (left * right).ln() / 2.0;
            (share - usual).abs() > SMALLEST_EFFECT
                && evidence(share, left, usual, right) > limit + price
        })
    }

    fn without(&self, own: &Shares) -> Others {
        let total = self.total - own.total;
        let free = (self.profiles.len() - 2) as f64;
        let mut methods = Vec::with_capacity(self.counts.len());
        // Samples are whole, so shares that agree exactly agree to within one sample.
        let (mut sum, mut rounding, mut present) = (0.0, 0.0, 0.0);
        for (method, &share) in own.shares.iter().enumerate() {
            let count = self.counts[method] - share * own.total;
            let usual = count / total;
            if count < 0.5 {
                methods.push((count.max(0.0), 1.0));
                continue;
            }
            let squares = self.squares[method] - share * share * own.total;
            let distance = (squares / usual - count).max(0.0);
            let of_method = distance / (1.0 - usual).max(f64::EPSILON) / free;
            methods.push((count, of_method.max(1.0)));
            sum += distance;
            rounding += (free + 1.0) * (free + 1.0) / count;
            present += 1.0;
        }
        let free = free * f64::max(present - 1.0, 0.0);
        let (spread, widest) = match free > 0.0 {
            true => (sum / free, (sum + rounding) / free / least_part(free)),
            false => (1.0, f64::INFINITY),
        };
        Others {
            methods,
            total,
            spread: spread.max(1.0),
            widest: widest.max(1.0),
        }
    }

    /// The number of independent samples that the others' shares are worth, each profile with its own number.
    fn independent_without(&self, own: &Shares, others: &Others) -> f64 {
        let variance = |one: &Shares| one.total * one.total / others.independent(one);
        let all: f64 = self.profiles.iter().map(|one| variance(one)).sum();
        others.total * others.total / (all - variance(own)).max(f64::MIN_POSITIVE)
    }
}

impl Others {
    /// The least number of independent samples that a profile is worth.
    fn independent(&self, one: &Shares) -> f64 {
        let by_spread = one.total / self.widest;
        let by_bursts = (one.total / LONGEST_BURST).min(BURSTS);
        by_spread.max(by_bursts).min(one.total / self.spread)
    }
}

/// The log-likelihood ratio of two separate shares to one common share, for these numbers of samples.
fn evidence(left: f64, of_left: f64, right: f64, of_right: f64) -> f64 {
    let both = (left * of_left + right * of_right) / (of_left + of_right);
    of_left * gain(left, both) + of_right * gain(right, both)
}

/// The Kullback–Leibler divergence of a share from another, in nats.
fn gain(share: f64, from: f64) -> f64 {
    let part = |share: f64, from: f64| match share > 0.0 && from > 0.0 {
        true => share * (share / from).ln(),
        false => 0.0,
    };
    part(share, from) + part(1.0 - share, 1.0 - from)
}

/// The fraction t of its mean that a chi-square with `free` degrees of freedom falls below with probability
/// `FALSE_ALARMS`. That probability is at most (t exp(1 - t)) to the power of half the degrees, which is solved for t.
fn least_part(free: f64) -> f64 {
    let exponent = 2.0 * FALSE_ALARMS.ln() / free - 1.0;
    (0..50).fold(0.0, |part: f64, _| (exponent + part).exp())
}
