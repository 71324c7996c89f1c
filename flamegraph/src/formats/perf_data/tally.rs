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
    /// By stack.
    counts: Vec<Count>,
    /// By process and second.
    seconds: HashMap<(u32, u32), u64>,
    /// What perf calls the event, once it has been seen.
    pub(super) source: Option<String>,
}

impl Tally {
    pub(super) fn add(&mut self, stack: StackId, pid: u32, amount: u64, second: Option<u32>) {
        let stack = stack as usize;
        if self.counts.len() <= stack {
            self.counts.resize(stack + 1, Count::default());
        }
        let count = &mut self.counts[stack];
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
        let all = (0..).zip(self.counts.iter().copied());
        all.filter(|(_, count)| count.samples > 0).collect()
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
