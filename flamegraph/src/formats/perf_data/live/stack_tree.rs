//! Stacks as trees of places, one for each group of threads of each process; callers stand above what they call.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt};
use hashbrown::HashTable;

use crate::formats::perf_data::processes::Mode;
use crate::formats::perf_data::resolve::Place;

/// The number of a node; those above it have smaller ones.
pub(super) type StackId = u32;
/// The number of a spot.
pub(super) type SpotId = u32;

/// What the root of a tree has for a parent.
const NO_PARENT: StackId = StackId::MAX;

/// A place in a module, and who ran there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub(super) place: Place,
    pub(super) mode: Mode,
}

/// A group of threads of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Root {
    pub(super) pid: u32,
    /// The number of the group's name.
    pub(super) group: u32,
}

/// A node: below which one it is, and its spot, or of a root the number of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Link {
    parent: StackId,
    number: u32,
}

/// All stacks.
pub(super) struct StackTree {
    nodes: Vec<Link>,
    index: HashTable<StackId>,
    hasher: RandomState,
    pub(super) spots: Vec<Spot>,
    spot_index: HashMap<Spot, SpotId>,
    pub(super) roots: Vec<Root>,
    root_index: HashMap<Root, u32>,
    most_nodes: usize,
    most_spots: usize,
}

impl StackTree {
    pub(super) fn new(most_nodes: usize, most_spots: usize) -> StackTree {
        StackTree {
            nodes: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::default(),
            spots: Vec::new(),
            spot_index: HashMap::new(),
            roots: Vec::new(),
            root_index: HashMap::new(),
            most_nodes: most_nodes.min(NO_PARENT as usize),
            most_spots,
        }
    }

    /// The node all stacks of a group start from; `None` when there is no room for it.
    pub(super) fn root(&mut self, root: Root) -> Option<StackId> {
        let number = match self.root_index.get(&root) {
            Some(&known) => known,
            None if self.nodes.len() >= self.most_nodes => return None,
            None => {
                let number = self.roots.len() as u32;
                self.roots.push(root);
                self.root_index.insert(root, number);
                number
            }
        };
        self.node(Link {
            parent: NO_PARENT,
            number,
        })
    }

    /// The number of a spot; `None` when there is no room for it.
    pub(super) fn spot(&mut self, spot: Spot) -> Option<SpotId> {
        if let Some(&known) = self.spot_index.get(&spot) {
            return Some(known);
        }
        let number = self.spots.len();
        if number >= self.most_spots {
            return None;
        }
        self.spots.push(spot);
        self.spot_index.insert(spot, number as SpotId);
        Some(number as SpotId)
    }

    /// The node below another; `None` when there is no room for it.
    pub(super) fn child(&mut self, parent: StackId, spot: SpotId) -> Option<StackId> {
        self.node(Link {
            parent,
            number: spot,
        })
    }

    fn node(&mut self, link: Link) -> Option<StackId> {
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let hash = hasher.hash_one(link);
        if let Some(&known) = self.index.find(hash, |&node| nodes[node as usize] == link) {
            return Some(known);
        }
        let number = nodes.len();
        if number >= self.most_nodes {
            return None;
        }
        let of = |&node: &StackId| hasher.hash_one(nodes[node as usize]);
        self.index.insert_unique(hash, number as StackId, of);
        self.nodes.push(link);
        Some(number as StackId)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node above and the spot here; `None` for a root.
    pub(super) fn above(&self, node: StackId) -> Option<(StackId, SpotId)> {
        let link = self.nodes[node as usize];
        (link.parent != NO_PARENT).then_some((link.parent, link.number))
    }

    /// What a root is the root of.
    pub(super) fn root_of(&self, node: StackId) -> Root {
        self.roots[self.nodes[node as usize].number as usize]
    }
}
