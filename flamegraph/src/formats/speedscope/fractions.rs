//! What weights with fractions add up to: every stack has the whole number at or below its sum, and what is then
//! missing of the total goes to the stacks with the largest fractions left.

use std::collections::hash_map::Entry;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::profile::{Node, Profile, Result};

/// Stacks whose fractions are remembered; of more each weight is rounded by itself.
const MOST: usize = 1 << 20;

/// The fraction, below 1, that is left of each stack and value.
#[derive(Default)]
pub(super) struct Fractions {
    left: HashMap<(usize, Node), f64, RandomState>,
}

impl Fractions {
    /// Adds a fraction below 1; returns what became a whole number.
    pub(super) fn take(&mut self, leaf: Node, value: usize, fraction: f64) -> i64 {
        if fraction == 0.0 {
            return 0;
        }
        let full = self.left.len() >= MOST;
        let left = match self.left.entry((value, leaf)) {
            Entry::Vacant(_) if full => return i64::from(fraction >= 0.5),
            entry => entry.or_insert(0.0),
        };
        *left += fraction;
        let whole = left.floor();
        *left -= whole;
        whole as i64
    }

    /// Gives what is missing of the totals to those with the largest fractions.
    pub(super) fn share_out(self, profile: &mut Profile) -> Result<()> {
        for value in 0..profile.values().len() {
            let of_value = self.left.iter().filter(|((of, _), _)| *of == value);
            let mut left: Vec<(Node, f64)> =
                of_value.map(|(&(_, leaf), &left)| (leaf, left)).collect();
            // By node where they are alike, so that a file is always read alike; summed up in that order, too.
            left.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
            let missing = left.iter().map(|&(_, left)| left).sum::<f64>().round();
            for &(leaf, _) in left.iter().take(missing as usize) {
                profile.add(leaf, value, 1)?;
            }
        }
        Ok(())
    }
}
