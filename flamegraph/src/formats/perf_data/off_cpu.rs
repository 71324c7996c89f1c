//! How long threads were off the CPU: from the switch away to the switch back.

use foldhash::{HashMap, HashMapExt};

use super::stacks::StackId;

/// A thread that is off the CPU.
#[derive(Clone, Copy, Debug)]
struct Away {
    since: u64,
    stack: StackId,
    preempted: bool,
    /// Whether the switch itself was seen, not just the sample before it.
    switched: bool,
}

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waited {
    pub(super) stack: StackId,
    pub(super) tid: u32,
    pub(super) since: u64,
    pub(super) nanoseconds: u64,
}

/// Threads that are off the CPU, at most so many.
pub(super) struct OffCpu {
    away: HashMap<u32, Away>,
    most: usize,
    /// Nanoseconds in which threads were ready to run.
    pub(super) preempted: u64,
    /// Waits that were not kept.
    pub(super) left_out: u64,
}

impl OffCpu {
    pub(super) fn new(most: usize) -> OffCpu {
        OffCpu {
            away: HashMap::new(),
            most,
            preempted: 0,
            left_out: 0,
        }
    }

    /// A sample says in which stack a thread is about to leave.
    pub(super) fn leaves(&mut self, tid: u32, time: u64, stack: StackId) {
        let away = Away {
            since: time,
            stack,
            preempted: false,
            switched: false,
        };
        if self.away.len() >= self.most && !self.away.contains_key(&tid) {
            self.left_out += 1;
            return;
        }
        self.away.insert(tid, away);
    }

    /// Whether a sample had the stack in which a thread leaves.
    pub(super) fn is_leaving(&self, tid: u32) -> bool {
        self.away.get(&tid).is_some_and(|away| !away.switched)
    }

    /// A thread has left.
    pub(super) fn left(&mut self, tid: u32, time: u64, preempted: bool) {
        if let Some(away) = self.away.get_mut(&tid) {
            away.since = time;
            away.preempted = preempted;
            away.switched = true;
        }
    }

    /// A thread is back; what it waited for, if it did.
    pub(super) fn is_back(&mut self, tid: u32, time: u64) -> Option<Waited> {
        let away = self.away.remove(&tid)?;
        self.ended(tid, away, time)
    }

    fn ended(&mut self, tid: u32, away: Away, time: u64) -> Option<Waited> {
        let nanoseconds = time.saturating_sub(away.since);
        if away.preempted {
            self.preempted = self.preempted.saturating_add(nanoseconds);
            return None;
        }
        Some(Waited {
            stack: away.stack,
            tid,
            since: away.since,
            nanoseconds,
        })
    }

    /// Nobody comes back any more.
    pub(super) fn end(&mut self, time: u64) -> Vec<Waited> {
        let all = std::mem::take(&mut self.away);
        let mut waited: Vec<Waited> = all
            .into_iter()
            .filter_map(|(tid, away)| self.ended(tid, away, time))
            .collect();
        waited.sort_unstable_by_key(|waited| (waited.since, waited.stack));
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(stack: StackId, since: u64, nanoseconds: u64) -> Option<Waited> {
        Some(Waited {
            stack,
            tid: 2,
            since,
            nanoseconds,
        })
    }

    #[test]
    fn a_wait_lasts_from_switch_to_switch() {
        let mut off = OffCpu::new(9);
        off.leaves(2, 100, 7);
        off.left(2, 110, false);
        assert_eq!(off.is_back(2, 150), waited(7, 110, 40));
        assert_eq!(off.is_back(2, 160), None);
        off.leaves(2, 200, 7);
        off.left(2, 210, true);
        assert_eq!((off.is_back(2, 230), off.preempted), (None, 20));
        off.leaves(2, 300, 8);
        assert_eq!(off.end(400), Vec::from_iter(waited(8, 300, 100)));
    }

    #[test]
    fn no_more_threads_are_kept_than_may_be() {
        let mut off = OffCpu::new(1);
        off.leaves(2, 100, 7);
        off.leaves(3, 100, 7);
        assert_eq!((off.left_out, off.is_back(3, 200)), (1, None));
        assert_eq!(off.is_back(2, 200), waited(7, 100, 100));
    }
}
