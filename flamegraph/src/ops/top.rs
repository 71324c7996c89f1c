//! The hottest methods.

use std::cmp::Reverse;

use crate::profile::{dominant, Kind, Node, Order, Profile, Result, Shares, Step, ROOT};

/// The cost of one method, with all its tiers or in one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name without annotation.
    pub name: String,
    /// The kind with the most self value, or with the most total if it has no self value.
    pub kind: Kind,
    /// The value of stacks that end in it.
    pub self_value: i64,
    /// The value of stacks that contain it; a recursive stack counts once.
    pub total_value: i64,
}

/// Sums of one name.
#[derive(Clone, Default)]
struct Sums {
    self_shares: Shares,
    total_shares: Shares,
    total: i64,
    /// How many of its nodes are on the path being walked.
    open: u32,
}

impl Profile {
    /// The methods with the most self value, largest first, then by total, then by name.
    pub fn top(&self, limit: usize, value: usize) -> Result<Vec<Method>> {
        self.check_value(value)?;
        let sums = self.sums_by_name(value, |_| true);
        let mut methods: Vec<(u32, i64)> = (0..)
            .zip(&sums)
            .map(|(name, sum)| (name, sum.self_value()))
            .collect();
        methods.retain(|&(name, _)| sums[name as usize].total > 0);
        methods.sort_unstable_by_key(|&(name, self_value)| {
            (
                Reverse(self_value),
                Reverse(sums[name as usize].total),
                self.frames.name(name),
            )
        });
        methods.truncate(limit);
        Ok(methods
            .into_iter()
            .map(|(name, _)| sums[name as usize].method(self.frames.name(name)))
            .collect())
    }

    /// For each name, in the order of their numbers: self value, and total counted once per stack.
    pub(crate) fn methods(&self, value: usize) -> Vec<(&str, i64, i64)> {
        self.methods_of(value, |_| true)
    }

    /// The same without frames of threads.
    pub(crate) fn methods_below_threads(&self, value: usize) -> Vec<(&str, i64, i64)> {
        self.methods_of(value, |node| self.thread_at(node).is_none())
    }

    fn methods_of(&self, value: usize, counts: impl Fn(Node) -> bool) -> Vec<(&str, i64, i64)> {
        let sums = self.sums_by_name(value, counts).into_iter();
        (0..)
            .zip(sums)
            .map(|(name, sum)| (self.frames.name(name), sum.self_value(), sum.total))
            .collect()
    }

    fn sums_by_name(&self, value: usize, counts: impl Fn(Node) -> bool) -> Vec<Sums> {
        let (selves, totals) = (self.selves(value), self.node_totals(value));
        let mut sums = vec![Sums::default(); self.frames.len()];
        for step in Order::of(self).walk() {
            let (Step::Enter(node) | Step::Leave(node)) = step;
            if node == ROOT || !counts(node) {
                continue;
            }
            let frame = self.tree.frame(node);
            let sum = &mut sums[frame.name() as usize];
            if let Step::Leave(_) = step {
                sum.open -= 1;
                continue;
            }
            sum.self_shares[frame.kind() as usize] += selves[node as usize];
            if sum.open == 0 {
                sum.total += totals[node as usize];
                sum.total_shares[frame.kind() as usize] += totals[node as usize];
            }
            sum.open += 1;
        }
        sums
    }
}

impl Sums {
    fn self_value(&self) -> i64 {
        self.self_shares.iter().sum()
    }

    fn method(&self, name: &str) -> Method {
        let shares = if self.self_value() > 0 {
            &self.self_shares
        } else {
            &self.total_shares
        };
        Method {
            name: name.to_string(),
            kind: dominant(shares),
            self_value: self.self_value(),
            total_value: self.total,
        }
    }
}
