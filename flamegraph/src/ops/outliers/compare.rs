//! The statistics: shares of profiles, the usual shares, and which differences are significant.

use super::apart::Peers;
use super::{Difference, Distance};

/// Methods with fewer samples per profile are combined, because their shares are far from normally distributed.
const FEWEST_SAMPLES: f64 = 5.0;
const RARE: &str = "(rare methods)";
/// The probability of an outlier among equal profiles, for each of the two tests.
pub(super) const FALSE_ALARMS: f64 = 5e-5;
/// Smaller differences of a share are ignored, even if significant.
pub(super) const SMALLEST_EFFECT: f64 = 0.03;
/// With fewer profiles there are no outliers.
pub(super) const FEWEST_PROFILES: usize = 3;
/// The variance of a median relative to that of a mean.
const MEDIAN_VARIANCE: f64 = std::f64::consts::FRAC_PI_2;
/// The median of the square of a standard normal variable.
const MEDIAN_SQUARE: f64 = 0.454_936;
/// The weight, in degrees of freedom, of the spread of all methods in that of one.
const SHRINKAGE: f64 = 5.0;
const METHODS_NAMED: usize = 5;

/// A profile's samples: (number of the method, how many), each method once.
pub(super) type Samples = Vec<(u32, f64)>;

/// The distance of each profile; one without samples has none.
pub(super) fn distances(names: &[&str], samples: &[Samples]) -> Vec<Option<Distance>> {
    let methods = Methods::of(names, samples);
    let all: Vec<Option<Shares>> = samples.iter().map(|own| methods.shares(own)).collect();
    let present: Vec<&Shares> = all.iter().flatten().collect();
    let usual = Usual::of(&present, methods.names.len());
    let compared: Vec<Compared> = present.iter().map(|own| usual.compare(own)).collect();
    let spread = Spread::of(&compared, methods.names.len());
    let comparisons: usize = compared.iter().map(|one| one.methods.len()).sum();
    let (sampling, limit) = limits(comparisons as f64, compared.len());
    let peers = Peers::of(&present, methods.names.len());
    let mut judged = present
        .iter()
        .zip(&compared)
        .map(|(own, compared)| Distance {
            divergence: compared.divergence.clamp(0.0, 1.0),
            noise: (spread.all * compared.expected()).min(1.0),
            cosine: cosine(&own.shares, &usual.shares),
            moved: compared.moved.min(1.0),
            outlier: compared.is_beyond(limit, &spread.methods)
                || peers.stands_apart(own, comparisons as f64),
            differs: compared.is_beyond(sampling, &[]),
            methods: usual.differences(own, &methods.names),
        });
    let each = all
        .iter()
        .map(|one| one.as_ref().and_then(|_| judged.next()));
    each.collect()
}

/// The compared methods by name. The first one combines all rare methods.
struct Methods<'a> {
    names: Vec<&'a str>,
    /// The index into `names` of each method's number.
    places: Vec<usize>,
}

impl<'a> Methods<'a> {
    fn of(names: &[&'a str], samples: &[Samples]) -> Methods<'a> {
        let mut sums = vec![0.0; names.len()];
        for &(method, count) in samples.iter().flatten() {
            sums[method as usize] += count;
        }
        let present = samples.iter().filter(|own| !own.is_empty()).count();
        let fewest = FEWEST_SAMPLES * present as f64;
        let mut kept: Vec<usize> = (0..names.len())
            .filter(|&method| sums[method] >= fewest)
            .collect();
        // The order of profiles must not matter, not even for the rounding of sums.
        kept.sort_unstable_by_key(|&method| names[method]);
        let mut places = vec![0; names.len()];
        for (place, &method) in (1..).zip(&kept) {
            places[method] = place;
        }
        let named = kept.into_iter().map(|method| names[method]);
        let names = std::iter::once(RARE).chain(named).collect();
        Methods { names, places }
    }

    fn shares(&self, samples: &Samples) -> Option<Shares> {
        let mut shares = vec![0.0; self.names.len()];
        for &(method, count) in samples {
            shares[self.places[method as usize]] += count;
        }
        let total: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= total);
        (total > 0.0).then_some(Shares { total, shares })
    }
}

/// A profile's samples per method, as fractions of all.
pub(super) struct Shares {
    pub(super) total: f64,
    pub(super) shares: Vec<f64>,
}

/// The usual share of each method: the median of all profiles', which one outlier does not move.
struct Usual {
    shares: Vec<f64>,
    /// The variance of such a share p is p (1 - p) times this.
    variance: f64,
}

impl Usual {
    fn of(present: &[&Shares], methods: usize) -> Usual {
        let mut column = vec![0.0; present.len()];
        let mut median_of = |share: &dyn Fn(&Shares) -> f64| {
            for (place, one) in column.iter_mut().zip(present) {
                *place = share(one);
            }
            median(&mut column)
        };
        let mut shares: Vec<f64> = (0..methods)
            .map(|method| median_of(&|one| one.shares[method]))
            .collect();
        let sum: f64 = shares.iter().sum();
        if sum > 0.0 {
            shares.iter_mut().for_each(|share| *share /= sum);
        }
        let typical = median_of(&|one| 1.0 / one.total);
        let variance = MEDIAN_VARIANCE * typical / present.len().max(1) as f64;
        Usual { shares, variance }
    }

    fn compare(&self, own: &Shares) -> Compared {
        let mut compared = Compared::new(1.0 / own.total + self.variance);
        for (method, (&share, &usual)) in own.shares.iter().zip(&self.shares).enumerate() {
            compared.add(method, share, usual);
        }
        compared
    }

    /// The methods whose shares differ most.
    fn differences(&self, own: &Shares, names: &[&str]) -> Vec<Difference> {
        let pairs = own.shares.iter().zip(&self.shares);
        let mut all: Vec<(usize, f64, f64)> = (0..)
            .zip(pairs)
            .filter(|(_, (share, usual))| share != usual)
            .map(|(method, (&share, &usual))| (method, share, usual))
            .collect();
        let size = |one: &(usize, f64, f64)| (one.1 - one.2).abs();
        all.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let named = all.into_iter().take(METHODS_NAMED);
        named
            .map(|(method, share, usual)| Difference {
                name: names[method].to_string(),
                share,
                usual,
            })
            .collect()
    }
}

/// A profile compared with the usual one, before its verdict.
struct Compared {
    divergence: f64,
    moved: f64,
    /// The variance of a share p, by sampling alone, is p (1 - p) times this.
    variance: f64,
    /// For each method in either profile the difference of the shares, also in standard deviations of sampling.
    methods: Vec<(usize, f64, f64)>,
}

impl Compared {
    fn new(variance: f64) -> Compared {
        Compared {
            divergence: 0.0,
            moved: 0.0,
            variance,
            methods: Vec::new(),
        }
    }

    fn add(&mut self, method: usize, share: f64, usual: f64) {
        let middle = (share + usual) / 2.0;
        if middle <= 0.0 {
            return;
        }
        let part = |share: f64| match share > 0.0 {
            true => share * (share / middle).log2() / 2.0,
            false => 0.0,
        };
        self.divergence += part(share) + part(usual);
        let difference = (share - usual).abs();
        self.moved += difference / 2.0;
        let deviation = (middle * (1.0 - middle).max(0.0) * self.variance).sqrt();
        let deviations = if difference > 0.0 {
            difference / deviation
        } else {
            0.0
        };
        self.methods.push((method, difference, deviations));
    }

    /// The average divergence from sampling alone: each method that is free to vary adds an eighth of its variance.
    fn expected(&self) -> f64 {
        let free = self.methods.len().saturating_sub(1).max(1) as f64;
        free * self.variance / (8.0 * std::f64::consts::LN_2)
    }

    /// Whether a method's share differs by more than `limit` deviations, widened by the method's spread.
    fn is_beyond(&self, limit: f64, spread: &[f64]) -> bool {
        let spread_of = |method: usize| spread.get(method).map_or(1.0, |spread| spread.sqrt());
        self.methods
            .iter()
            .any(|&(method, difference, deviations)| {
                difference > SMALLEST_EFFECT && deviations > limit * spread_of(method)
            })
    }
}

/// The variance of most profiles relative to sampling alone, at least 1.
struct Spread {
    all: f64,
    methods: Vec<f64>,
}

impl Spread {
    fn of(compared: &[Compared], methods: usize) -> Spread {
        if compared.len() < FEWEST_PROFILES {
            // With two profiles the spread cannot be separated from the difference.
            return Spread {
                all: 1.0,
                methods: vec![1.0; methods],
            };
        }
        let excess = |one: &Compared| one.divergence / one.expected();
        let all = median(&mut compared.iter().map(excess).collect::<Vec<f64>>()).max(1.0);
        let mut squares = vec![Vec::new(); methods];
        for &(method, _, deviations) in compared.iter().flat_map(|one| &one.methods) {
            squares[method].push(deviations * deviations);
        }
        // A few profiles say little about one method, so its spread is weighted with that of all.
        let own = degrees_of_freedom(compared.len());
        let of_method = |squares: &mut Vec<f64>| {
            let spread = median(squares) / MEDIAN_SQUARE;
            ((own * spread + SHRINKAGE * all) / (own + SHRINKAGE)).max(all)
        };
        Spread {
            all,
            methods: squares.iter_mut().map(of_method).collect(),
        }
    }
}

/// The degrees of freedom of a median of this many profiles.
fn degrees_of_freedom(profiles: usize) -> f64 {
    profiles.saturating_sub(1) as f64 / MEDIAN_VARIANCE
}

/// The deviations that any of all comparisons exceeds by chance with probability `FALSE_ALARMS`, if the deviation is
/// known, and if it is measured. At most `exp(-z²/2) / z * sqrt(2/π)` of a normal distribution is beyond z. That is
/// solved for z, which is widened to a quantile of Student's distribution.
fn limits(comparisons: f64, profiles: usize) -> (f64, f64) {
    let chances = comparisons.max(1.0) / FALSE_ALARMS;
    let step = |z: f64| (2.0 * (chances * std::f64::consts::FRAC_2_PI.sqrt() / z).ln()).sqrt();
    let z = (0..5).fold(4.0, |z, _| step(z));
    if profiles < FEWEST_PROFILES {
        return (z, f64::INFINITY);
    }
    let others = comparisons / profiles as f64 - 1.0;
    let free = others * degrees_of_freedom(profiles);
    (z, (free * ((z * z / free).exp() - 1.0)).sqrt())
}

/// The median of finite values; 0 of none.
fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

fn cosine(left: &[f64], right: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let lengths = (dot(left, left) * dot(right, right)).sqrt();
    match lengths > 0.0 {
        true => (dot(left, right) / lengths).min(1.0),
        false => 0.0,
    }
}
