//! A profile as tables: stacks, nodes, methods by tier.

use crate::ops::Method;
use crate::profile::{Kind, Node, Order, Profile, Result, Step, ROOT};

/// One node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow<'a> {
    /// The number of the parent: nodes are numbered from 0, the root, and parents come before children.
    pub parent: u32,
    /// The root has depth 0.
    pub depth: u32,
    /// The name of the frame, empty for the root.
    pub name: &'a str,
    /// How the frame ran.
    pub kind: Kind,
    /// What ends in it.
    pub self_value: i64,
    /// What ends in it and below.
    pub total_value: i64,
    /// What each kind has of the total: several have some where tiers were merged.
    pub tiers: Vec<(Kind, i64)>,
}

impl Profile {
    /// Calls `each` with every stack that has any value, in name order.
    pub fn each_stack<'a, E>(
        &'a self,
        mut each: impl FnMut(&[(&'a str, Kind)], &[i64]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut frames = Vec::new();
        let mut amounts = vec![0; self.values().len()];
        for step in Order::of(self).walk() {
            let Step::Enter(node) = step else {
                frames.pop();
                continue;
            };
            frames.extend(self.frame_of(node));
            if self.has_self(node) {
                for (value, amount) in amounts.iter_mut().enumerate() {
                    *amount = self.selves(value)[node as usize];
                }
                each(&frames, &amounts)?;
            }
        }
        Ok(())
    }

    /// Every node, the root first, parents before their children.
    pub fn nodes(&self, value: usize) -> Result<impl Iterator<Item = NodeRow<'_>>> {
        self.check_value(value)?;
        let totals = self.node_totals(value);
        let mut depths = vec![0u32; self.tree.len()];
        for node in self.tree.nodes() {
            depths[node as usize] = depths[self.tree.parent(node) as usize] + 1;
        }
        Ok((ROOT..self.tree.len() as Node).map(move |node| {
            let frame = self.frame_of(node);
            let total = totals[node as usize];
            NodeRow {
                parent: self.tree.parent(node),
                depth: depths[node as usize],
                name: frame.map_or("", |(name, _)| name),
                kind: frame.map_or(Kind::Plain, |(_, kind)| kind),
                self_value: self.selves(value)[node as usize],
                total_value: total,
                tiers: self.tiers_of(node, value, total),
            }
        }))
    }

    /// Every method in every tier it has a value in, by name, then by tier.
    pub fn tiers(&self, value: usize) -> Result<Vec<Method>> {
        self.check_value(value)?;
        let totals = self.node_totals(value);
        let mut sums = vec![(0, 0, 0u32); self.frames.index_len()];
        for step in Order::of(self).walk() {
            let (Step::Enter(node) | Step::Leave(node)) = step;
            if node == ROOT {
                continue;
            }
            let (selfs, total, open) = &mut sums[self.tree.frame(node).index()];
            if let Step::Leave(_) = step {
                *open -= 1;
                continue;
            }
            *selfs += self.selves(value)[node as usize];
            if *open == 0 {
                *total += totals[node as usize];
            }
            *open += 1;
        }
        let frames = self.frames_in_order().into_iter();
        let tiers = frames.map(|frame| {
            let (self_value, total_value, _) = sums[frame.index()];
            Method {
                name: self.frames.name_of(frame).to_string(),
                kind: frame.kind(),
                self_value,
                total_value,
            }
        });
        Ok(tiers.filter(|tier| tier.total_value > 0).collect())
    }

    /// Name and kind of a node's frame; the root has none.
    pub(crate) fn frame_of(&self, node: Node) -> Option<(&str, Kind)> {
        let frame = self.tree.frame(node);
        (node != ROOT).then(|| (self.frames.name_of(frame), frame.kind()))
    }

    /// The names from the root to this node.
    pub(crate) fn path(&self, mut node: Node) -> Vec<String> {
        let mut path = Vec::new();
        while let Some((name, _)) = self.frame_of(node) {
            path.push(name.to_string());
            node = self.tree.parent(node);
        }
        path.reverse();
        path
    }
}
