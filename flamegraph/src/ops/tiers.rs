//! Merges the tiers of a tree: a method that ran interpreted and compiled is one method.

use crate::profile::{dominant, Frame, Kind, Node, Profile, Result, Shares, TierTotals, ROOT};

impl Profile {
    /// The same profile with all kinds dropped.
    pub(crate) fn without_kinds(&self) -> Result<Profile> {
        Ok(self.regrouped()?.0)
    }

    /// The same profile with nodes merged that differ only in their kind. The kind with most of this value is kept. The
    /// value of each kind stays known until the profile is changed.
    pub fn merged_tiers(&self, value: usize) -> Result<Profile> {
        self.check_value(value)?;
        let (plain, nodes) = self.regrouped()?;
        let totals: Vec<Vec<Shares>> = (0..self.values().len())
            .map(|value| {
                let mut shares = vec![Shares::default(); plain.tree.len()];
                self.add_shares(value, &nodes, &mut shares);
                shares
            })
            .collect();
        let kind = |node: Node| dominant(&totals[value][node as usize]);
        // The plain tree's nodes are in the order of copying, so their numbers stay the same.
        let (mut merged, _) = plain.reframed(|node, frame| Frame::new(frame.name(), kind(node)))?;
        merged.tiers = Some(TierTotals(totals));
        Ok(merged)
    }

    /// Like [`merged_tiers`](Profile::merged_tiers) by the sum of these values, without the values of each kind.
    pub(crate) fn with_tiers_merged(&self, values: &[usize]) -> Result<Profile> {
        let (plain, nodes) = self.regrouped()?;
        let mut shares = vec![Shares::default(); plain.tree.len()];
        for &value in values {
            self.add_shares(value, &nodes, &mut shares);
        }
        let kind = |node: Node| dominant(&shares[node as usize]);
        let (merged, _) = plain.reframed(|node, frame| Frame::new(frame.name(), kind(node)))?;
        Ok(merged)
    }

    /// The part of each kind in a node's total: several kinds if tiers were merged.
    pub(crate) fn tiers_of(&self, node: Node, value: usize, total: i64) -> Vec<(Kind, i64)> {
        let mut shares = Shares::default();
        if let Some(tiers) = &self.tiers {
            shares = *tiers.of(value, node);
        }
        if node != ROOT && shares == Shares::default() {
            shares[self.tree.frame(node).kind() as usize] = total;
        }
        let has_some = |kind: &Kind| shares[*kind as usize] != 0;
        let kinds = Kind::ALL.into_iter().filter(has_some);
        kinds.map(|kind| (kind, shares[kind as usize])).collect()
    }

    /// Adds each node's total to its kind's share of the merged node.
    fn add_shares(&self, value: usize, nodes: &[Node], shares: &mut [Shares]) {
        let totals = self.node_totals(value);
        for node in self.tree.nodes() {
            let kind = self.tree.frame(node).kind();
            let share = &mut shares[nodes[node as usize] as usize][kind as usize];
            // Totals of one value always fit. Those of several may not, but only their order matters.
            *share = share.saturating_add(totals[node as usize]);
        }
    }

    fn regrouped(&self) -> Result<(Profile, Vec<Node>)> {
        self.reframed(|_, frame| Frame::new(frame.name(), Kind::Plain))
    }

    /// A copy whose nodes have other kinds; also returns the new node of each node.
    fn reframed(&self, frame_of: impl Fn(Node, Frame) -> Frame) -> Result<(Profile, Vec<Node>)> {
        self.mapped(|copy, node, parent| copy.child(parent, frame_of(node, self.tree.frame(node))))
    }
}
