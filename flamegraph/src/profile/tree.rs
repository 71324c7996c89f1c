//! The shape of a call tree: nodes by number, a parent always before its children.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::hash_table::HashTable;

use crate::profile::{Error, Frame, Result};

/// A node's number. Parents have smaller numbers than their children, so that a sweep over the
/// numbers replaces every recursion.
pub(crate) type Node = u32;

/// The node all stacks start from.
pub(crate) const ROOT: Node = 0;

/// Most children that are searched one by one. A node with more children uses the index.
const FEW: usize = 8;

/// The nodes, and for those that have been asked for children what finds them: the child made last, from
/// each child the one made before it, and of nodes with many children an index. Most nodes have one or two
/// children, which lie near them; an index of all nodes would cost a distant access for every step.
#[derive(Clone)]
pub(crate) struct Tree {
    parents: Vec<Node>,
    frames: Vec<Frame>,
    /// For each node what finds it and its children; made up for the nodes behind its end when it is needed.
    kin: Vec<Kin>,
    index: HashTable<Node>,
    hasher: RandomState,
}

/// What a search reads of a node, in one place, to save cache misses.
#[derive(Clone, Copy)]
struct Kin {
    frame: Frame,
    family: Family,
    /// The one that was its parent's newest child before.
    elder: Node,
}

/// The newest child of a node, and two things to know of all its children.
#[derive(Clone, Copy)]
struct Family(u32);

impl Family {
    const EMPTY: Family = Family(ROOT);
    /// The children were not made in the order of their frames.
    const MIXED: u32 = 1 << 31;
    /// The children are in the index.
    const INDEXED: u32 = 1 << 30;

    /// [`ROOT`] if there is none.
    fn newest(self) -> Node {
        self.0 & !(Family::MIXED | Family::INDEXED)
    }

    fn is_mixed(self) -> bool {
        self.0 & Family::MIXED != 0
    }

    fn is_indexed(self) -> bool {
        self.0 & Family::INDEXED != 0
    }

    fn indexed(self) -> Family {
        Family(self.0 | Family::INDEXED)
    }

    fn with(self, child: Node, in_order: bool) -> Family {
        let mixed = if in_order { 0 } else { Family::MIXED };
        Family(self.0 & (Family::MIXED | Family::INDEXED) | mixed | child)
    }
}

impl Tree {
    /// Nodes have 30 bits, because `Family` uses two of 32 for flags.
    pub(crate) const MOST: usize = (1 << 30) - 1;

    pub(crate) fn new() -> Tree {
        Tree::of(vec![ROOT], vec![Frame::ROOT])
    }

    /// A tree of these nodes: the root and, each behind its parent, all others; no two children of one
    /// parent have the same frame.
    pub(crate) fn of(parents: Vec<Node>, frames: Vec<Frame>) -> Tree {
        Tree {
            parents,
            frames,
            kin: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::default(),
        }
    }

    /// Number of nodes, the root among them.
    pub(crate) fn len(&self) -> usize {
        self.parents.len()
    }

    /// The parent; the root is its own.
    pub(crate) fn parent(&self, node: Node) -> Node {
        self.parents[node as usize]
    }

    pub(crate) fn frame(&self, node: Node) -> Frame {
        self.frames[node as usize]
    }

    /// All nodes but the root, parents first.
    pub(crate) fn nodes(&self) -> std::ops::Range<Node> {
        1..self.len() as Node
    }

    /// The child of `parent` with this frame, made if there is none; `most` bounds the number of nodes.
    pub(crate) fn child(&mut self, parent: Node, frame: Frame, most: usize) -> Result<Node> {
        self.know_all();
        match self.find(parent, frame) {
            Some(child) => Ok(child),
            None => self.add(parent, frame, most),
        }
    }

    fn find(&mut self, parent: Node, frame: Frame) -> Option<Node> {
        let family = self.kin[parent as usize].family;
        let mut child = family.newest();
        let mut kin = self.kin[child as usize];
        if child == ROOT || kin.frame == frame {
            return (child != ROOT).then_some(child);
        }
        if !family.is_mixed() && kin.frame < frame {
            return None;
        }
        if family.is_indexed() {
            return self.find_indexed(parent, frame);
        }
        for _ in 0..FEW {
            child = kin.elder;
            kin = self.kin[child as usize];
            if child == ROOT || kin.frame == frame {
                return (child != ROOT).then_some(child);
            }
        }
        self.index_children(parent);
        self.find_indexed(parent, frame)
    }

    fn find_indexed(&self, parent: Node, frame: Frame) -> Option<Node> {
        let hash = key_hash(&self.hasher, parent, frame);
        let is_it = |&node: &Node| {
            self.parents[node as usize] == parent && self.frames[node as usize] == frame
        };
        self.index.find(hash, is_it).copied()
    }

    fn add(&mut self, parent: Node, frame: Frame, most: usize) -> Result<Node> {
        let node = self.parents.len();
        if node >= most.min(Tree::MOST) {
            return Err(Error::Limit {
                what: "nodes of the call tree",
                limit: most as u64,
            });
        }
        self.parents.push(parent);
        self.frames.push(frame);
        self.know(node as Node);
        Ok(node as Node)
    }

    /// Fills in the search data for nodes that have none yet.
    fn know_all(&mut self) {
        if self.kin.is_empty() {
            self.kin.push(Kin {
                frame: Frame::ROOT,
                family: Family::EMPTY,
                elder: ROOT,
            });
        }
        for node in self.kin.len()..self.parents.len() {
            self.know(node as Node);
        }
    }

    /// Makes the next node its parent's newest child.
    fn know(&mut self, node: Node) {
        let (parent, frame) = (self.parents[node as usize], self.frames[node as usize]);
        let family = self.kin[parent as usize].family;
        let elder = family.newest();
        let in_order = elder == ROOT || self.kin[elder as usize].frame < frame;
        self.kin[parent as usize].family = family.with(node, in_order);
        self.kin.push(Kin {
            frame,
            family: Family::EMPTY,
            elder,
        });
        if family.is_indexed() {
            self.insert(node);
        }
    }

    fn index_children(&mut self, parent: Node) {
        let family = self.kin[parent as usize].family;
        self.kin[parent as usize].family = family.indexed();
        let mut child = family.newest();
        while child != ROOT {
            self.insert(child);
            child = self.kin[child as usize].elder;
        }
    }

    fn insert(&mut self, node: Node) {
        let (parents, frames, hasher) = (&self.parents, &self.frames, &self.hasher);
        let hash = |node: Node| key_hash(hasher, parents[node as usize], frames[node as usize]);
        self.index
            .insert_unique(hash(node), node, |&node| hash(node));
    }

    /// Whether every node is followed by its descendants, and the children of each have ascending frames.
    pub(crate) fn is_preorder(&self) -> bool {
        let mut path = vec![ROOT];
        for node in self.nodes() {
            let mut elder = None;
            while path.last().is_some_and(|&last| last != self.parent(node)) {
                elder = path.pop();
            }
            let ascends = elder.is_none_or(|elder| self.frame(elder) < self.frame(node));
            if path.is_empty() || !ascends {
                return false;
            }
            path.push(node);
        }
        true
    }

    /// Adds every node's value to its parent's: self values become totals.
    pub(crate) fn sum_up(&self, values: &[i64]) -> Vec<i64> {
        let mut totals = values.to_vec();
        for node in self.nodes().rev() {
            totals[self.parent(node) as usize] += totals[node as usize];
        }
        totals
    }
}

fn key_hash(hasher: &RandomState, parent: Node, frame: Frame) -> u64 {
    hasher.hash_one((parent as u64) << 32 | frame.index() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Kind;

    fn frame(name: u32) -> Frame {
        Frame::new(name, Kind::Plain)
    }

    #[test]
    fn a_child_is_found_however_many_there_are_and_in_whichever_order_they_came() {
        let ascending: Vec<u32> = (0..100).collect();
        let mixed: Vec<u32> = (0..100).map(|name| name * 37 % 100).collect();
        for names in [ascending, mixed] {
            let mut tree = Tree::new();
            let made: Vec<Node> = names
                .iter()
                .map(|&name| tree.child(ROOT, frame(name), 1000).unwrap())
                .collect();
            for (&name, &node) in names.iter().zip(&made).rev() {
                assert_eq!(tree.child(ROOT, frame(name), 1000).unwrap(), node);
            }
            assert_eq!(tree.len(), 101);
        }
    }

    #[test]
    fn a_tree_made_of_nodes_finds_them() {
        let parents = vec![ROOT, ROOT, 1, 1, ROOT];
        let frames = [0, 1, 1, 3, 2].map(frame).to_vec();
        let mut tree = Tree::of(parents, frames);
        assert_eq!(tree.child(1, frame(3), 9).unwrap(), 3);
        assert_eq!(tree.child(ROOT, frame(2), 9).unwrap(), 4);
        assert_eq!(tree.child(4, frame(2), 9).unwrap(), 5);
        assert!(tree.is_preorder());
    }

    #[test]
    fn only_preorder_with_ascending_children_is_in_order() {
        for (parents, names, expected) in [
            (vec![0, 0, 1, 2, 1, 0], [0, 1, 5, 5, 6, 2], true),
            (vec![0, 0, 0, 1, 1, 2], [0, 1, 2, 3, 4, 5], false),
            (vec![0, 0, 1, 2, 1, 0], [0, 1, 6, 5, 5, 2], false),
        ] {
            let tree = Tree::of(parents, names.map(frame).to_vec());
            assert_eq!(tree.is_preorder(), expected);
        }
    }
}
