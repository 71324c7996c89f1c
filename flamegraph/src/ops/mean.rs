//! The host-fair mean: every profile weighs the same, however many samples it has.

use crate::ops::split::Split;
use crate::profile::{Error, Node, Order, Profile, Result, Step, ValueType};

/// One in fixed point, for shares: sums are exact in any order of profiles.
const ONE: u128 = 1 << 64;

/// Collects profiles one by one and keeps only sums, so memory grows with distinct stacks, not with profiles.
#[derive(Default)]
pub struct MeanMerger {
    values: Option<Vec<ValueType>>,
    /// The union of all profiles with samples; None before the first one.
    union: Option<Union>,
}

/// The union of the profiles' trees, without values, and the sums.
struct Union {
    tree: Profile,
    profiles: i128,
    /// For each value the sum of its totals, and for each node the sum of its shares.
    totals: Vec<i128>,
    shares: Vec<Vec<u128>>,
}

impl MeanMerger {
    /// Starts without profiles.
    pub fn new() -> MeanMerger {
        MeanMerger::default()
    }

    /// Adds one profile; one without samples is left out.
    pub fn add(&mut self, profile: &Profile) -> Result<()> {
        let values = self.values.get_or_insert_with(|| profile.values().to_vec());
        profile.check_same_values(values)?;
        if profile.is_empty() {
            return Ok(());
        }
        self.union
            .get_or_insert_with(|| Union::new(profile))
            .add(profile)
    }

    /// The mean: each total is the mean of the totals, rounded, and the stacks add up to it exactly.
    pub fn finish(&self) -> Result<Profile> {
        let nothing = || Error::Empty("a mean of no profiles".to_string());
        let values = self.values.clone().ok_or_else(nothing)?;
        match &self.union {
            Some(union) => union.mean(&values),
            None => Ok(Profile::new(values)),
        }
    }
}

impl Union {
    fn new(first: &Profile) -> Union {
        let mut tree = Profile::new(Vec::new());
        tree.set_labels(first.labels().clone());
        let values = first.values().len();
        Union {
            tree,
            profiles: 0,
            totals: vec![0; values],
            shares: vec![Vec::new(); values],
        }
    }

    fn add(&mut self, profile: &Profile) -> Result<()> {
        let nodes = self.tree.graft(profile)?;
        for value in 0..self.totals.len() {
            self.shares[value].resize(self.tree.node_count() + 1, 0);
            self.add_value(profile, value, &nodes)?;
        }
        self.tree.absorb_facts(profile);
        self.profiles += 1;
        Ok(())
    }

    fn add_value(&mut self, profile: &Profile, value: usize, nodes: &[Node]) -> Result<()> {
        let total = profile.total(value)?;
        self.totals[value] += i128::from(total);
        for (&amount, &node) in profile.selves(value).iter().zip(nodes) {
            if amount > 0 {
                // `total` is at least `amount` here, so there is no division by zero.
                let share = (amount as u128 * ONE + total as u128 / 2) / total as u128;
                self.shares[value][node as usize] += share;
            }
        }
        Ok(())
    }

    fn mean(&self, values: &[ValueType]) -> Result<Profile> {
        let mut mean = self.tree.clone();
        let order = Order::of(&self.tree);
        for ((value, total), shares) in values.iter().zip(&self.totals).zip(&self.shares) {
            let total = (total + self.profiles / 2) / self.profiles;
            let mut split = Split::new(total as u128, shares.iter().sum());
            let mut column = vec![0; shares.len()];
            for step in order.walk() {
                if let Step::Enter(node) = step {
                    column[node as usize] = split.next(shares[node as usize]);
                }
            }
            let number = mean.push_value(value.clone(), usize::MAX)?;
            mean.set_column(number, column)?;
        }
        Ok(mean)
    }
}
