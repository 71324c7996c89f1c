//! Which of several profiles is unlike the others, and in what.
//!
//! Each profile is taken as a distribution of its samples over methods (by self value) and compared with what
//! is usual: for each method the median of all profiles' shares. The distance is the Jensen–Shannon divergence.
//! Whether a profile is an outlier is asked of each method: is its share farther from the usual one than
//! chance would have any share of any profile be? Chance is that of sampling, widened by how much most
//! profiles vary beyond it, as samples of real programs come in bursts; or by how much the others disagree that
//! it stands apart from. `docs/outliers.md` explains more.

mod apart;
mod compare;
#[cfg(test)]
mod few;
#[cfg(test)]
mod simulated;

use foldhash::{HashMap, HashMapExt};

use crate::profile::{Profile, Result};
use compare::Samples;

/// How far one profile is from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Distance {
    /// Jensen–Shannon divergence from what is usual, in bits: 0 where they are equal, 1 where nothing is shared.
    pub divergence: f64,
    /// What it would be on average if sampling and the spread of most profiles made it.
    pub noise: f64,
    /// Cosine of the angle between the profile's shares and the usual ones: 1 where they are equal.
    pub cosine: f64,
    /// The part of the samples that would have to be elsewhere for the two to be equal.
    pub moved: f64,
    /// Whether it is unlike the others beyond what sampling and their own spread explain.
    pub outlier: bool,
    /// Whether it differs from what is usual by more than sampling alone explains, be it an outlier or not.
    pub differs: bool,
    /// The methods that make the difference, the largest first.
    pub methods: Vec<Difference>,
}

/// A method's share of a profile's samples, and what is usual.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The method; `(rare methods)` are those with less than 5 samples a profile, together.
    pub name: String,
    /// Its part of this profile, 0 to 1.
    pub share: f64,
    /// Its usual part.
    pub usual: f64,
}

/// Takes profiles one by one and keeps their methods' samples only.
#[derive(Clone, Debug, Default)]
pub struct Outliers {
    numbers: HashMap<String, u32>,
    profiles: Vec<Samples>,
}

impl Outliers {
    /// Nothing to compare yet.
    pub fn new() -> Outliers {
        Outliers {
            numbers: HashMap::new(),
            profiles: Vec::new(),
        }
    }

    /// Adds a profile by one of its values. `samples` says how many samples the whole of it stands for, where
    /// it counts something else: chance depends on them.
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
