//! Reading a tree without its tiers: a method seen interpreted and compiled is one method.

use crate::error::Result;
use crate::frames::{Frame, Kind};
use crate::profile::Profile;
use crate::tree::{Node, ROOT};

/// For a name or node, how much of a value each kind has.
pub(crate) type Shares = [i64; Kind::ALL.len()];

/// The kind with the largest share; the first of equals.
pub(crate) fn dominant(shares: &Shares) -> Kind {
    let mut best = Kind::Plain;
    for kind in Kind::ALL {
        if shares[kind as usize] > shares[best as usize] {
            best = kind;
        }
    }
    best
}

impl Profile {
    /// The same profile with all kinds dropped.
    pub(crate) fn without_kinds(&self) -> Result<Profile> {
        Ok(self.regrouped()?.0)
    }

    /// The same profile with one node where there were several that differ in kinds only; its kind
    /// is the one that has most of this value.
    pub(crate) fn with_tiers_merged(&self, value: usize) -> Result<Profile> {
        let (plain, nodes) = self.regrouped()?;
        let mut shares: Vec<Shares> = vec![Shares::default(); plain.tree.len()];
        for (node, total) in self
            .tree
            .nodes()
            .zip(self.node_totals(value).into_iter().skip(1))
        {
            shares[nodes[node as usize] as usize][self.tree.frame(node).kind() as usize] += total;
        }
        let (merged, _) = plain
            .reframed(|node, frame| Frame::new(frame.name(), dominant(&shares[node as usize])))?;
        Ok(merged)
    }

    fn regrouped(&self) -> Result<(Profile, Vec<Node>)> {
        self.reframed(|_, frame| Frame::new(frame.name(), Kind::Plain))
    }

    /// A copy whose nodes have other frames; also returns where each node went.
    fn reframed(&self, frame_of: impl Fn(Node, Frame) -> Frame) -> Result<(Profile, Vec<Node>)> {
        let mut copy = Profile::new(self.values().to_vec());
        copy.set_labels(self.labels().clone());
        copy.frames = self.frames.clone();
        let mut nodes = vec![ROOT; self.tree.len()];
        for node in self.tree.nodes() {
            let parent = nodes[self.tree.parent(node) as usize];
            nodes[node as usize] = copy.child(parent, frame_of(node, self.tree.frame(node)))?;
        }
        for value in 0..self.values().len() {
            for (&amount, &node) in self.selves(value).iter().zip(&nodes) {
                copy.add(node, value, amount)?;
            }
        }
        Ok((copy, nodes))
    }
}
