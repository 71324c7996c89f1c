//! Counts of one event.

use super::stacks::StackId;

/// Samples of one stack, and what they stand for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) samples: u64,
    pub(super) amount: u64,
}

/// Counts by stack.
#[derive(Default)]
pub(super) struct Tally {
    counts: Vec<Count>,
    /// What perf calls the event, once it has been seen.
    pub(super) source: Option<String>,
}

impl Tally {
    pub(super) fn add(&mut self, stack: StackId, amount: u64) {
        let stack = stack as usize;
        if self.counts.len() <= stack {
            self.counts.resize(stack + 1, Count::default());
        }
        let count = &mut self.counts[stack];
        count.samples += 1;
        count.amount = count.amount.saturating_add(amount);
    }

    /// All stacks with their counts, in the order in which the stacks were first seen.
    pub(super) fn counts(&self) -> Vec<(StackId, Count)> {
        let all = (0..).zip(self.counts.iter().copied());
        all.filter(|(_, count)| count.samples > 0).collect()
    }
}
