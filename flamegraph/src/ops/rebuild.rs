//! Making a profile out of another: nodes are taken over one by one, names only as they are needed.

use crate::profile::{Frame, Kind, Node, Profile, Result, ValueType};

/// A name that has not been taken over yet.
const UNKNOWN: u32 = u32::MAX;

/// A copy in the making.
pub(crate) struct Rebuild<'a> {
    from: &'a Profile,
    copy: Profile,
    /// For each name of the original its number in the copy.
    names: Vec<u32>,
}

impl<'a> Rebuild<'a> {
    /// Starts a copy with the original's values and all that holds for the whole profile.
    pub(crate) fn of(from: &'a Profile) -> Rebuild<'a> {
        Rebuild::with(from, Profile::new(from.values().to_vec()))
    }

    /// A copy with other values.
    pub(crate) fn with_values(from: &'a Profile, values: Vec<ValueType>) -> Rebuild<'a> {
        Rebuild::with(from, Profile::new(values))
    }

    /// A copy into this profile, which is empty.
    pub(crate) fn with(from: &'a Profile, mut copy: Profile) -> Rebuild<'a> {
        copy.set_labels(from.labels().clone());
        copy.add_malformed_lines(from.malformed_lines());
        copy.add_warnings(from.warnings().iter().cloned());
        copy.raw_names = from.raw_names.clone();
        copy.modules = from.modules.clone();
        Rebuild {
            from,
            copy,
            names: vec![UNKNOWN; from.frames.len()],
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
        for value in 0..self.from.values().len() {
            self.add(to, value, self.from.selves(value)[node as usize])?;
        }
        Ok(())
    }

    /// Adds to a self value of the copy.
    pub(crate) fn add(&mut self, node: Node, value: usize, amount: i64) -> Result<()> {
        if amount == 0 {
            return Ok(());
        }
        self.copy.add(node, value, amount)
    }

    pub(crate) fn finish(self) -> Profile {
        self.copy
    }
}

impl Profile {
    /// Whether any value of the node's own is not zero.
    pub(crate) fn has_self(&self, node: Node) -> bool {
        (0..self.values().len()).any(|value| self.selves(value)[node as usize] != 0)
    }
}
