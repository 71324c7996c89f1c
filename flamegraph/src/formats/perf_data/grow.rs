//! Samples whose addresses are named become a tree.

use std::sync::mpsc::Receiver;

use super::modules::ModuleId;
use crate::profile::{Frame, Node, Profile, Result, ValueType, ROOT};

/// No module: the frame has a name.
pub(super) const KNOWN: ModuleId = ModuleId::MAX;

/// What an address was found to be.
pub(super) struct Named {
    /// The outermost frame; nearly always the only one.
    pub(super) frame: Frame,
    /// Frames inlined into it, callers first.
    pub(super) inlined: Vec<Frame>,
    /// The module, if its symbol is not known.
    pub(super) unknown: Option<ModuleId>,
}

/// One sample: what its thread's stack before has not, and what it counts to.
pub(super) struct Sampled {
    /// Numbers of the thread's stack and of its root.
    pub(super) stack: u32,
    pub(super) root: u32,
    /// How many pointers, callers first, are those of the stack before, and how many come below.
    pub(super) shared: usize,
    pub(super) pointers: usize,
    /// The value that counts samples; the one behind it is of periods.
    pub(super) value: usize,
    pub(super) period: i64,
}

/// Samples on their way to the tree, and what is new in them.
#[derive(Default)]
pub(super) struct Batch {
    /// What the samples count to, where that was found out by now.
    pub(super) values: Option<Vec<ValueType>>,
    /// Numbers of names begin anew.
    pub(super) forget: bool,
    /// Numbered on from those before.
    pub(super) named: Vec<Named>,
    /// The frames of roots, numbered on from those before.
    pub(super) roots: Vec<Vec<Frame>>,
    pub(super) samples: Vec<Sampled>,
    /// The numbers of the names of all these samples' own pointers.
    pub(super) pointers: Vec<u32>,
}

/// The stack a thread was last seen in: the node of each pointer, root first.
#[derive(Default)]
struct LastStack {
    root: u32,
    path: Vec<Node>,
}

/// The tree as it grows.
pub(super) struct Grown {
    pub(super) profile: Profile,
    /// Of the nodes whose frames are not known the modules; [`KNOWN`] for others.
    pub(super) unknown: Vec<ModuleId>,
    named: Vec<Named>,
    roots: Vec<Node>,
    stacks: Vec<LastStack>,
    cells: usize,
}

impl Grown {
    /// Takes in all that comes; the profile has no names yet.
    pub(super) fn of(batches: &Receiver<Batch>, cells: usize) -> Result<Grown> {
        let mut grown = Grown {
            profile: Profile::bounded(Vec::new(), cells),
            unknown: Vec::new(),
            named: Vec::new(),
            roots: Vec::new(),
            stacks: Vec::new(),
            cells,
        };
        for batch in batches {
            grown.take(batch)?;
        }
        Ok(grown)
    }

    fn take(&mut self, batch: Batch) -> Result<()> {
        if let Some(values) = batch.values {
            self.profile = Profile::bounded(values, self.cells);
        }
        if batch.forget {
            self.named.clear();
        }
        self.named.extend(batch.named);
        for frames in batch.roots {
            let below = |node, frame| self.profile.child(node, frame);
            self.roots.push(frames.into_iter().try_fold(ROOT, below)?);
        }
        let mut rest = &batch.pointers[..];
        for sample in &batch.samples {
            let (pointers, others) = rest.split_at(sample.pointers);
            let node = self.leaf(sample, pointers)?;
            self.profile.add(node, sample.value, 1)?;
            self.profile.add(node, sample.value + 1, sample.period)?;
            rest = others;
        }
        Ok(())
    }

    fn leaf(&mut self, sample: &Sampled, pointers: &[u32]) -> Result<Node> {
        let number = sample.stack as usize;
        if self.stacks.len() <= number {
            self.stacks.resize_with(number + 1, LastStack::default);
        }
        let mut path = std::mem::take(&mut self.stacks[number].path);
        if self.stacks[number].root != sample.root {
            self.stacks[number].root = sample.root;
            path.clear();
        }
        let root = self.roots[sample.root as usize];
        let mut node = sample.shared.checked_sub(1).map_or(root, |last| path[last]);
        // Behind another address of the same function everything may still be the same.
        let mut on_path = true;
        for (depth, &named) in (sample.shared..).zip(pointers) {
            let before = path.get(depth).copied().filter(|_| on_path);
            let next = self.below(node, named as usize, before)?;
            on_path = before == Some(next);
            match path.get_mut(depth) {
                Some(place) => *place = next,
                None => path.push(next),
            }
            node = next;
        }
        path.truncate(sample.shared + pointers.len());
        self.stacks[number].path = path;
        Ok(node)
    }

    /// The node of what was found at an address, below a node; `before` is one below it that may be it.
    fn below(&mut self, parent: Node, named: usize, before: Option<Node>) -> Result<Node> {
        let named = &self.named[named];
        let tree = &self.profile.tree;
        let is_it = |&before: &Node| named.inlined.is_empty() && tree.frame(before) == named.frame;
        let mut node = match before.filter(is_it) {
            Some(before) => before,
            None => self.profile.child(parent, named.frame)?,
        };
        for &frame in &named.inlined {
            node = self.profile.child(node, frame)?;
        }
        if let Some(module) = named.unknown {
            let place = node as usize;
            if self.unknown.len() <= place {
                self.unknown.resize(place + 1, KNOWN);
            }
            if self.unknown[place] == KNOWN {
                self.unknown[place] = module;
            }
        }
        Ok(node)
    }
}
