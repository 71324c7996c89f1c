//! Making a profile out of another: nodes are taken over one by one, names only as they are needed.

use crate::profile::{Frame, Kind, Node, Profile, Result, Times, ValueType, ROOT};

/// A name that has not been taken over yet.
const UNKNOWN: u32 = u32::MAX;
/// Where a node's values go that are not taken over.
const NOWHERE: Node = Node::MAX;

/// A copy in the making.
pub(crate) struct Rebuild<'a> {
    from: &'a Profile,
    copy: Profile,
    /// For each name of the original its number in the copy.
    names: Vec<u32>,
    /// The original's times. They go where self values go.
    times: Option<&'a Times>,
    /// For each node of the original the node that has its self values now; empty without times.
    went: Vec<Node>,
}

impl<'a> Rebuild<'a> {
    /// Starts a copy with the original's values and all that holds for the whole profile.
    pub(crate) fn of(from: &'a Profile) -> Rebuild<'a> {
        Rebuild::with(from, Profile::new(from.values().to_vec()))
    }

    /// A copy with other values and other times.
    pub(crate) fn with_values(
        from: &'a Profile,
        values: Vec<ValueType>,
        times: Option<&'a Times>,
    ) -> Rebuild<'a> {
        Rebuild::timed(from, Profile::new(values), times)
    }

    /// A copy into this profile, which is empty.
    pub(crate) fn with(from: &'a Profile, copy: Profile) -> Rebuild<'a> {
        Rebuild::timed(from, copy, from.times())
    }

    fn timed(from: &'a Profile, mut copy: Profile, times: Option<&'a Times>) -> Rebuild<'a> {
        copy.set_labels(from.labels().clone());
        copy.add_malformed_lines(from.malformed_lines());
        copy.set_skips_stubs(from.skips_stubs());
        copy.set_incomplete(from.is_incomplete());
        copy.set_alloc_share_error(from.alloc_share_error());
        copy.add_warnings(from.warnings().iter().cloned());
        copy.raw_names = from.raw_names.clone();
        copy.modules = from.modules.clone();
        Rebuild {
            from,
            copy,
            names: vec![UNKNOWN; from.frames.len()],
            times,
            went: times.map_or_else(Vec::new, |_| vec![NOWHERE; from.tree.len()]),
        }
    }

    /// The copy's child of `parent` with this frame of the original.
    pub(crate) fn child(&mut self, parent: Node, frame: Frame) -> Result<Node> {
        let known = self.names[frame.name() as usize];
        let name = if known == UNKNOWN {
            let text = self.from.frames.name_of(frame).as_bytes();
            let new = self.copy.frames.intern_name(text)?;
            self.names[frame.name() as usize] = new;
            new
        } else {
            known
        };
        self.copy.child(parent, Frame::new(name, frame.kind()))
    }

    /// The copy's child of `parent` with a name that need not be the original's.
    pub(crate) fn child_named(&mut self, parent: Node, name: &str, kind: Kind) -> Result<Node> {
        let name = self.copy.frames.intern_name(name.as_bytes())?;
        self.copy.child(parent, Frame::new(name, kind))
    }

    /// Adds the original's self values at `node` to those of a node of the copy.
    pub(crate) fn add_selves(&mut self, node: Node, to: Node) -> Result<()> {
        self.went(node, to);
        for value in 0..self.from.values().len() {
            self.add(to, value, self.from.selves(value)[node as usize])?;
        }
        Ok(())
    }

    /// Says that self values of the original's `node` are those of a node of the copy; so are its samples' times.
    pub(crate) fn went(&mut self, node: Node, to: Node) {
        if let Some(went) = self.went.get_mut(node as usize) {
            *went = to;
        }
    }

    /// Adds to a self value of the copy.
    pub(crate) fn add(&mut self, node: Node, value: usize, amount: i64) -> Result<()> {
        if amount == 0 {
            return Ok(());
        }
        self.copy.add(node, value, amount)
    }

    pub(crate) fn finish(mut self) -> Profile {
        if let Some(times) = self.times {
            let to = |node: Node| {
                let to = self.went.get(node as usize).copied();
                to.filter(|&to| to != NOWHERE)
            };
            self.copy.set_times(Some(times.moved(to)));
        }
        self.copy
    }
}

impl Profile {
    /// A copy of all stacks: `take` makes of each node, and of where its parent went, a node of the copy. Also returns
    /// where each went.
    pub(crate) fn mapped(
        &self,
        mut take: impl FnMut(&mut Rebuild<'_>, Node, Node) -> Result<Node>,
    ) -> Result<(Profile, Vec<Node>)> {
        let mut copy = Rebuild::of(self);
        let mut nodes = vec![ROOT; self.tree.len()];
        copy.add_selves(ROOT, ROOT)?;
        for node in self.tree.nodes() {
            let parent = nodes[self.tree.parent(node) as usize];
            nodes[node as usize] = take(&mut copy, node, parent)?;
            copy.add_selves(node, nodes[node as usize])?;
        }
        Ok((copy.finish(), nodes))
    }

    /// The nodes that are wanted, and all on the way to them: each goes under the node that `above` names.
    pub(crate) fn needed(
        &self,
        wanted: impl Fn(Node) -> bool,
        above: impl Fn(Node) -> Node,
    ) -> Vec<bool> {
        let mut needed = vec![false; self.tree.len()];
        for node in self.tree.nodes().rev() {
            needed[node as usize] |= wanted(node);
            if needed[node as usize] {
                needed[above(node) as usize] = true;
            }
        }
        needed
    }

    /// Whether any value of the node's own is not zero.
    pub(crate) fn has_self(&self, node: Node) -> bool {
        (0..self.values().len()).any(|value| self.selves(value)[node as usize] != 0)
    }
}
