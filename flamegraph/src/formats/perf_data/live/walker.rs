//! From a sample's addresses to its node among the stacks.

use foldhash::{HashMap, HashMapExt};

use super::stack_tree::{Spot, SpotId, StackId, StackTree};
use crate::formats::perf_data::processes::{Mode, Processes};
use crate::formats::perf_data::resolve::{self, Pointer};

/// Threads whose last stack is remembered, and how many pointers of it: most share their callers with the one before.
const MOST_THREADS: usize = 1 << 10;
const MOST_STEPS: usize = 1 << 8;
/// Addresses whose spot is remembered. More are forgotten, and looked up anew.
const MOST_ADDRESSES: usize = 1 << 18;

/// The stack a thread was last seen in, callers first.
struct LastStack {
    root: StackId,
    path: Vec<(Pointer, StackId)>,
}

/// Finds nodes, and remembers what it found.
pub(super) struct Walker {
    spots: HashMap<(u64, u32, Mode), SpotId>,
    last: HashMap<u32, LastStack>,
    /// The sample's pointers, leaf first.
    pub(super) pointers: Vec<Pointer>,
}

impl Default for Walker {
    fn default() -> Walker {
        Walker {
            spots: HashMap::new(),
            last: HashMap::new(),
            pointers: Vec::new(),
        }
    }
}

impl Walker {
    /// The node of `pointers` below a root; `None` when there is no room for it.
    pub(super) fn node(
        &mut self,
        root: StackId,
        thread: (u32, u32),
        processes: &Processes,
        stacks: &mut StackTree,
    ) -> Option<StackId> {
        let (pid, tid) = thread;
        let mut last = self.last.remove(&tid).filter(|last| last.root == root);
        let mut path = last
            .as_mut()
            .map(|last| std::mem::take(&mut last.path))
            .unwrap_or_default();
        let same = |(new, old): &(&Pointer, &(Pointer, StackId))| **new == old.0;
        let shared = self
            .pointers
            .iter()
            .rev()
            .zip(&path)
            .take_while(same)
            .count();
        path.truncate(shared);
        let mut node = path.last().map_or(root, |&(_, node)| node);
        for place in (0..self.pointers.len() - shared).rev() {
            let pointer = self.pointers[place];
            let spot = self.spot(pointer, pid, processes, stacks)?;
            node = stacks.child(node, spot)?;
            if path.len() < MOST_STEPS {
                path.push((pointer, node));
            }
        }
        if self.last.len() >= MOST_THREADS {
            self.last.clear();
        }
        self.last.insert(tid, LastStack { root, path });
        Some(node)
    }

    fn spot(
        &mut self,
        pointer: Pointer,
        pid: u32,
        processes: &Processes,
        stacks: &mut StackTree,
    ) -> Option<SpotId> {
        let key = (pointer.ip, pointer.generation, pointer.mode);
        if let Some(&known) = self.spots.get(&key) {
            return Some(known);
        }
        let place = resolve::place(pointer, pid, processes);
        let spot = stacks.spot(Spot {
            place,
            mode: pointer.mode,
        })?;
        if self.spots.len() >= MOST_ADDRESSES {
            self.spots.clear();
        }
        self.spots.insert(key, spot);
        Some(spot)
    }
}
