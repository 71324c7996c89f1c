//! What is mapped where, in a process or in the kernel.
//!
//! A process that forks hands on all it has mapped, and then both go on by themselves. So mappings are kept in a
//! tree whose nodes several spaces share: a copy costs nothing, and a change makes only the nodes on its way anew.
//! The tree is a treap: its shape follows from numbers drawn for the nodes, so that no order of mappings makes it deep.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// A stretch of addresses and the module behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// What to add to an address to get the module's own (a place in its file).
    pub(crate) shift: u64,
    pub(crate) module: u32,
}

impl Mapping {
    /// The module's own address of this one.
    pub(crate) fn address(&self, ip: u64) -> u64 {
        ip.wrapping_add(self.shift)
    }
}

type Tree = Option<Arc<Node>>;

/// A mapping, and those below and above it.
#[derive(Clone, Debug)]
struct Node {
    mapping: Mapping,
    /// No node below has a greater one.
    priority: u64,
    /// How many mappings there are from here down.
    size: usize,
    below: Tree,
    above: Tree,
    /// One more holder: how many there are is how many nodes live.
    _counted: Arc<()>,
}

/// Makes nodes, and knows how many there are.
#[derive(Debug)]
pub(crate) struct Nodes {
    counter: Arc<()>,
    made: Cell<u64>,
    /// Seeded anew in each process: a recording must not choose the shape of its trees.
    hasher: RandomState,
}

impl Nodes {
    pub(crate) fn new() -> Nodes {
        Nodes {
            counter: Arc::new(()),
            made: Cell::new(0),
            hasher: RandomState::new(),
        }
    }

    /// How many nodes there are, in all spaces.
    pub(crate) fn count(&self) -> usize {
        Arc::strong_count(&self.counter) - 1
    }

    fn make(&self, mapping: Mapping) -> Tree {
        self.made.set(self.made.get() + 1);
        Some(Arc::new(Node {
            mapping,
            priority: self.hasher.hash_one(self.made.get()),
            size: 1,
            below: None,
            above: None,
            _counted: Arc::clone(&self.counter),
        }))
    }
}

impl Node {
    fn count_again(&mut self) {
        self.size = 1 + size(&self.below) + size(&self.above);
    }
}

fn size(tree: &Tree) -> usize {
    tree.as_ref().map_or(0, |node| node.size)
}

/// Mappings that do not overlap, in order. A copy shares them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    tree: Tree,
}

impl Space {
    pub(crate) fn len(&self) -> usize {
        size(&self.tree)
    }

    /// Maps over whatever was there; of older mappings stays what the new one leaves.
    pub(crate) fn insert(&mut self, new: Mapping, nodes: &Nodes) {
        if new.start >= new.end {
            return;
        }
        let (below, rest) = split(self.tree.take(), new.start);
        let (covered, above) = split(rest, new.end);
        let (below, cut) = shortened(below, new.start);
        // Over the end reaches the one that the new one cuts in two, or the last of those it covers.
        let over = |old: &Mapping| old.end > new.end;
        let covered = || covered.as_ref().map(last);
        let rest = cut.filter(over).or_else(|| covered().filter(over));
        let rest = rest.map(|old| Mapping {
            start: new.end,
            ..old
        });
        let mut tree = join(below, nodes.make(new));
        if let Some(rest) = rest {
            tree = join(tree, nodes.make(rest));
        }
        self.tree = join(tree, above);
    }

    pub(crate) fn find(&self, ip: u64) -> Option<&Mapping> {
        let mut found = None;
        let mut next = &self.tree;
        while let Some(node) = next {
            next = if node.mapping.start <= ip {
                found = Some(&node.mapping);
                &node.above
            } else {
                &node.below
            };
        }
        found.filter(|mapping| ip < mapping.end)
    }
}

/// The mapping of the highest address.
fn last(tree: &Arc<Node>) -> Mapping {
    let mut node = tree;
    while let Some(above) = &node.above {
        node = above;
    }
    node.mapping
}

/// Ends the last mapping where a new one starts, if it reaches over that; returns it as it was.
fn shortened(mut tree: Tree, end: u64) -> (Tree, Option<Mapping>) {
    let Some(old) = tree.as_ref().map(last).filter(|old| old.end > end) else {
        return (tree, None);
    };
    let mut next = &mut tree;
    while let Some(node) = next {
        let node = Arc::make_mut(node);
        if node.above.is_none() {
            node.mapping.end = end;
            break;
        }
        next = &mut node.above;
    }
    (tree, Some(old))
}

/// The mappings that start before an address, and the others. As deep as the tree, which is hardly ever
/// deeper than some dozens.
fn split(tree: Tree, at: u64) -> (Tree, Tree) {
    let Some(mut root) = tree else {
        return (None, None);
    };
    let node = Arc::make_mut(&mut root);
    if node.mapping.start < at {
        let (below, above) = split(node.above.take(), at);
        node.above = below;
        node.count_again();
        (Some(root), above)
    } else {
        let (below, above) = split(node.below.take(), at);
        node.below = above;
        node.count_again();
        (below, Some(root))
    }
}

/// Both, all mappings of the one being before those of the other.
fn join(below: Tree, above: Tree) -> Tree {
    match (below, above) {
        (None, tree) | (tree, None) => tree,
        (Some(mut low), Some(mut high)) => {
            if low.priority >= high.priority {
                let node = Arc::make_mut(&mut low);
                node.above = join(node.above.take(), Some(high));
                node.count_again();
                Some(low)
            } else {
                let node = Arc::make_mut(&mut high);
                node.below = join(Some(low), node.below.take());
                node.count_again();
                Some(high)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, module: u32) -> Mapping {
        Mapping {
            start,
            end,
            shift: 0,
            module,
        }
    }

    fn modules(space: &Space, addresses: std::ops::Range<u64>) -> Vec<Option<u32>> {
        let module = |ip| space.find(ip).map(|found| found.module);
        addresses.map(module).collect()
    }

    /// Against a table of every address.
    #[test]
    fn a_new_mapping_cuts_the_old_ones() {
        let nodes = Nodes::new();
        let mut space = Space::default();
        let mut table = vec![None; 300];
        for number in 0..400u32 {
            let start = u64::from(number * 7919 % 251);
            let end = start + u64::from(number * 31 % 40);
            space.insert(mapping(start, end, number), &nodes);
            table[start as usize..end as usize].fill(Some(number));
            assert_eq!(modules(&space, 0..300), table);
        }
        let starts = table
            .windows(2)
            .filter(|two| two[1].is_some() && two[0] != two[1]);
        assert!(space.len() >= starts.count());
        assert_eq!(nodes.count(), space.len());
    }

    #[test]
    fn a_copy_goes_its_own_way_and_shares_what_is_the_same() {
        let nodes = Nodes::new();
        let mut space = Space::default();
        for number in 0..1000 {
            space.insert(mapping(number * 10, number * 10 + 10, 1), &nodes);
        }
        let mut copies: Vec<Space> = (0..1000).map(|_| space.clone()).collect();
        for copy in &mut copies {
            copy.insert(mapping(5000, 5010, 2), &nodes);
        }
        assert_eq!(space.find(5005).map(|found| found.module), Some(1));
        assert_eq!(copies[0].find(5005).map(|found| found.module), Some(2));
        assert_eq!(copies[0].find(4999).map(|found| found.module), Some(1));
        let made = nodes.count();
        assert!(made < 1000 * 100, "{made} nodes for 1000 copies of 1000");
        drop((copies, space));
        assert_eq!(nodes.count(), 0);
    }

    /// Whatever the order, and however many copies: the work grows like the number of mappings.
    #[test]
    fn the_work_is_in_proportion() {
        let deepest = |count: u64| {
            let nodes = Nodes::new();
            let mut space = Space::default();
            for number in (0..count).rev() {
                space.insert(mapping(number * 10, number * 10 + 10, 1), &nodes);
            }
            depth(&space.tree)
        };
        let (few, many) = (deepest(4_000), deepest(64_000));
        assert!(many < few * 2 + 20, "{few} deep, then {many}");
    }

    fn depth(tree: &Tree) -> usize {
        let Some(node) = tree else { return 0 };
        1 + depth(&node.below).max(depth(&node.above))
    }
}
