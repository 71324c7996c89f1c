//! The host-fair mean: every profile weighs the same, however many samples it has.

use crate::error::{Error, Result};
use crate::profile::{keep_common, Labels, Profile};
use crate::walk::{Order, Step};

/// A share of one, in fixed point: exact sums, whatever the order in which profiles come.
/// 2^44 leaves room for a quarter of a million profiles, and a resolution finer than a nanosecond in an hour.
const ONE: u128 = 1 << 44;
const MOST_PROFILES: u64 = 1 << 18;

/// Takes profiles one by one and keeps only the sums: memory grows with distinct stacks, not with profiles.
#[derive(Default)]
pub struct MeanMerger {
    /// The union of the trees, its self values being sums of shares.
    shares: Option<Profile>,
    totals: Vec<i128>,
    profiles: u64,
    /// The result if no profile has samples.
    empty: Option<Profile>,
}

impl MeanMerger {
    /// A mean of nothing yet.
    pub fn new() -> MeanMerger {
        MeanMerger::default()
    }

    /// Adds one profile; one without samples is left out.
    pub fn add(&mut self, profile: &Profile) -> Result<()> {
        if let Some(known) = self.shares.as_ref().or(self.empty.as_ref()) {
            known.check_same_values(profile.values())?;
        }
        if profile.is_empty() {
            self.empty
                .get_or_insert_with(|| Profile::new(profile.values().to_vec()));
            return Ok(());
        }
        if self.profiles == MOST_PROFILES {
            return Err(Error::Limit {
                what: "profiles of a mean",
                limit: MOST_PROFILES,
            });
        }
        let shares = self.shares.get_or_insert_with(|| {
            let mut first = Profile::new(profile.values().to_vec());
            first.set_labels(profile.labels().clone());
            first
        });
        self.totals.resize(profile.values().len(), 0);
        add_shares(shares, &mut self.totals, profile)?;
        self.profiles += 1;
        Ok(())
    }

    /// The mean: each total is the mean of the totals, rounded, and the stacks add up to it exactly.
    pub fn finish(&self) -> Result<Profile> {
        let Some(shares) = &self.shares else {
            let nothing = || Error::Empty("a mean of no profiles".to_string());
            return self.empty.clone().ok_or_else(nothing);
        };
        let profiles = i128::from(self.profiles);
        let mut mean = Profile::new(shares.values().to_vec());
        mean.set_labels(shares.labels().clone());
        mean.add_malformed_lines(shares.malformed_lines());
        let nodes = mean.graft(shares)?;
        let order = Order::of(shares);
        for (value, sum) in self.totals.iter().enumerate() {
            let total = ((sum + profiles / 2) / profiles) as i64;
            let mut split = Split::new(total, shares.total(value)?);
            for step in order.walk() {
                if let Step::Enter(node) = step {
                    let amount = split.next(shares.selves(value)[node as usize]);
                    mean.add(nodes[node as usize], value, amount)?;
                }
            }
        }
        Ok(mean)
    }
}

fn add_shares(shares: &mut Profile, totals: &mut [i128], profile: &Profile) -> Result<()> {
    let nodes = shares.graft(profile)?;
    for (value, sum) in totals.iter_mut().enumerate() {
        let total = profile.total(value)?;
        *sum += i128::from(total);
        if total == 0 {
            continue;
        }
        for (&amount, &node) in profile.selves(value).iter().zip(&nodes) {
            if amount > 0 {
                let share = (amount as u128 * ONE + total as u128 / 2) / total as u128;
                shares.add(node, value, share as i64)?;
            }
        }
    }
    let mut labels: Labels = shares.labels().clone();
    keep_common(&mut labels, profile.labels());
    shares.set_labels(labels);
    shares.add_malformed_lines(profile.malformed_lines());
    Ok(())
}

/// Deals a whole out in proportion to parts. Rounding is of the running sum, so the parts add up to the
/// whole exactly, and any run of neighbours (such as a subtree) is off by at most one.
struct Split {
    whole: u128,
    parts: u128,
    seen: u128,
    given: u128,
}

impl Split {
    fn new(whole: i64, parts: i64) -> Split {
        Split {
            whole: whole as u128,
            parts: (parts as u128).max(1),
            seen: 0,
            given: 0,
        }
    }

    fn next(&mut self, part: i64) -> i64 {
        self.seen += part as u128;
        let due = (self.seen * self.whole + self.parts / 2) / self.parts;
        let amount = due - self.given;
        self.given = due;
        amount as i64
    }
}
