//! Counts of one event.

use foldhash::{HashMap, HashMapExt};

use super::stacks::StackId;

/// Most seconds, of all processes together, in timelines; later samples are in none.
const MOST_SECONDS: usize = 1 << 20;

/// Samples of one stack, and what they stand for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) samples: u64,
    pub(super) amount: u64,
}

/// Counts by stack, and samples by second.
#[derive(Default)]
pub(super) struct Tally {
    counts: HashMap<StackId, Count>,
    /// By process and second.
    seconds: HashMap<(u32, u32), u64>,
    /// What perf calls the event, once it has been seen.
    pub(super) source: Option<String>,
}

impl Tally {
    pub(super) fn add(&mut self, stack: StackId, pid: u32, amount: u64, second: Option<u32>) {
        let count = self.counts.entry(stack).or_default();
        count.samples += 1;
        count.amount = count.amount.saturating_add(amount);
        let Some(second) = second else {
            return;
        };
        let known = self.seconds.len() < MOST_SECONDS || self.seconds.contains_key(&(pid, second));
        if known {
            *self.seconds.entry((pid, second)).or_default() += 1;
        }
    }

    /// All stacks with their counts, in the order in which the stacks were first seen.
    pub(super) fn counts(&self) -> Vec<(StackId, Count)> {
        let mut all: Vec<(StackId, Count)> = self
            .counts
            .iter()
            .map(|(&stack, &count)| (stack, count))
            .collect();
        all.sort_unstable_by_key(|&(stack, _)| stack);
        all
    }

    /// Samples in each second, of one process or of all.
    pub(super) fn timeline(&self, pid: Option<u32>) -> Vec<u64> {
        let mut by_second: HashMap<u32, u64> = HashMap::new();
        for (&(of, second), &samples) in &self.seconds {
            if pid.is_none_or(|pid| pid == of) {
                *by_second.entry(second).or_default() += samples;
            }
        }
        let length = by_second.keys().max().map_or(0, |&last| last as usize + 1);
        let mut timeline = vec![0; length];
        for (second, samples) in by_second {
            timeline[second as usize] = samples;
        }
        timeline
    }
}
