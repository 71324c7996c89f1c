//! Finds profiles that differ from the others, and the methods in which they do.
//!
//! Each profile is a distribution of its samples over methods (by self value). It is compared with the usual one: for
//! each method the median of all profiles' shares. The distance is the Jensen–Shannon divergence. A profile is an
//! outlier if the share of any method is farther from the usual one than chance explains for any share of any profile.
//! Chance is that of sampling, widened by the spread of most profiles, because samples of real programs come in bursts;
//! or by the disagreement of the other profiles. `docs/outliers.md` explains more.

mod apart;
mod compare;
#[cfg(test)]
mod few;
#[cfg(test)]
mod simulated;

use foldhash::{HashMap, HashMapExt};

use crate::profile::{Profile, Result};
use compare::Samples;

/// The distance of one profile from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Distance {
    /// Jensen–Shannon divergence from the usual profile, in bits: 0 if they are equal, 1 if they share nothing.
    pub divergence: f64,
    /// The average divergence from sampling and the spread of most profiles alone.
    pub noise: f64,
    /// Cosine of the angle between the profile's shares and the usual ones: 1 if they are equal.
    pub cosine: f64,
    /// The fraction of the samples that would have to move to make the two equal.
    pub moved: f64,
    /// Whether it differs from the others by more than sampling and their spread explain.
    pub outlier: bool,
    /// Whether it differs from the usual profile by more than sampling alone explains, even if it is not an outlier.
    pub differs: bool,
    /// The methods that make the difference, the largest first.
    pub methods: Vec<Difference>,
}

/// A method's share of a profile's samples, and the usual share.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The method; `(rare methods)` combines those with fewer than 5 samples per profile.
    pub name: String,
    /// Its part of this profile, 0 to 1.
    pub share: f64,
    /// Its usual part.
    pub usual: f64,
}

/// Collects profiles one by one, and keeps only their samples per method.
#[derive(Clone, Debug, Default)]
pub struct Outliers {
    numbers: HashMap<String, u32>,
    profiles: Vec<Samples>,
}

impl Outliers {
    /// Starts without profiles.
    pub fn new() -> Outliers {
        Outliers {
            numbers: HashMap::new(),
            profiles: Vec::new(),
        }
    }

    /// Adds a profile by one of its values. `samples` is its number of samples if the value counts something else:
    /// chance depends on it.
    pub fn add(&mut self, profile: &Profile, value: usize, samples: Option<u64>) -> Result<()> {
        let total = profile.total(value)? as f64;
        let weight = match samples {
            Some(samples) if total > 0.0 => (samples as f64 / total).min(1.0),
            _ => 1.0,
        };
        let methods = profile.methods(value).into_iter();
        let own = methods
            .filter(|&(_, own, _)| own > 0)
            .map(|(name, own, _)| (self.number_of(name), own as f64 * weight))
            .collect();
        self.profiles.push(own);
        Ok(())
    }

    fn number_of(&mut self, name: &str) -> u32 {
        match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                let number = self.numbers.len() as u32;
                self.numbers.insert(name.to_string(), number);
                number
            }
        }
    }

    /// The distance of each profile, in the order in which they were added; one without samples has none.
    pub fn distances(&self) -> Vec<Option<Distance>> {
        let mut names = vec![""; self.numbers.len()];
        for (name, &number) in &self.numbers {
            names[number as usize] = name;
        }
        compare::distances(&names, &self.profiles)
    }
}
