//! The shape of a call tree: nodes by number, a parent always before its children.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::hash_table::{Entry, HashTable};

use crate::error::{Error, Result};
use crate::frames::Frame;

/// A node's number. Parents have smaller numbers than their children, so that a sweep over the
/// numbers replaces every recursion.
pub(crate) type Node = u32;

/// The node all stacks start from.
pub(crate) const ROOT: Node = 0;

#[derive(Clone)]
pub(crate) struct Tree {
    parents: Vec<Node>,
    frames: Vec<Frame>,
    index: HashTable<Node>,
    hasher: RandomState,
}

impl Tree {
    pub(crate) fn new() -> Tree {
        Tree {
            parents: vec![ROOT],
            frames: vec![Frame::ROOT],
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
        let (parents, frames, hasher) = (&self.parents, &self.frames, &self.hasher);
        let key = |parent: Node, frame: Frame| {
            hasher.hash_one((parent as u64) << 32 | frame.index() as u64)
        };
        let entry = self.index.entry(
            key(parent, frame),
            |&node| parents[node as usize] == parent && frames[node as usize] == frame,
            |&node| key(parents[node as usize], frames[node as usize]),
        );
        match entry {
            Entry::Occupied(found) => Ok(*found.get()),
            Entry::Vacant(vacant) => {
                let node = parents.len();
                if node >= most.min(Node::MAX as usize) {
                    return Err(Error::Limit {
                        what: "nodes of the call tree",
                        limit: most as u64,
                    });
                }
                vacant.insert(node as Node);
                self.parents.push(parent);
                self.frames.push(frame);
                Ok(node as Node)
            }
        }
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
