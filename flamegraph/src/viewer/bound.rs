//! A tree of no more nodes than a browser can hold, with exact totals.

use std::cmp::Reverse;

use super::{Column, ViewerWriter};
use crate::error::Result;
use crate::ops::prune::{smaller_frames, ONE};
use crate::tree::{Node, ROOT};

impl ViewerWriter {
    /// Puts the thinnest subtrees together, so that there are at most this many nodes.
    pub(super) fn keep_most(&mut self, most: usize) -> Result<()> {
        if self.union.tree.len() <= most {
            return Ok(());
        }
        let shares = self.shares();
        let kept = self.largest(&shares, most);
        let (union, went) = self.union.with_remainders(&shares, &kept)?;
        for column in &mut self.columns {
            *column = column.moved(&went);
        }
        self.union = union;
        Ok(())
    }

    /// For each node the part its total is of the whole, in the event in which that is largest.
    fn shares(&self) -> Vec<u64> {
        let tree = &self.union.tree;
        let mut shares = vec![0u64; tree.len()];
        for event in 0..self.events.len() {
            let mut totals = vec![0u64; tree.len()];
            let columns = self.columns.iter().filter(|column| column.event == event);
            for (node, amount) in columns.flat_map(Column::entries) {
                let total = &mut totals[node as usize];
                *total = total.saturating_add(amount);
            }
            for node in tree.nodes().rev() {
                let parent = tree.parent(node) as usize;
                totals[parent] = totals[parent].saturating_add(totals[node as usize]);
            }
            let whole = u128::from(totals[ROOT as usize].max(1));
            for (share, total) in shares.iter_mut().zip(totals) {
                // At least 1 where there is anything: what has no share at all is dropped.
                let part = (u128::from(total) * u128::from(ONE) / whole) as u64;
                *share = (*share).max(part).max(u64::from(total > 0));
            }
        }
        shares
    }

    /// The nodes with the largest shares: as many as there is room for beside the frames that stand for the rest.
    fn largest(&self, shares: &[u64], most: usize) -> Vec<bool> {
        let mut order: Vec<Node> = self.union.tree.nodes().collect();
        // What stands for others already is put together with what comes to it.
        order.retain(|&node| !self.stands_for_others(node));
        // Each node brings at most one frame for what is left out below it, so half as many as there is room for
        // fit in any case, and more than there is room for never do: the order matters only between.
        let by_share = |&node: &Node| (Reverse(shares[node as usize]), node);
        let sure = most.saturating_sub(2) / 2;
        if most < order.len() {
            order.select_nth_unstable_by_key(most, by_share);
            order.truncate(most);
        }
        if sure < order.len() {
            order.select_nth_unstable_by_key(sure, by_share);
            order[sure..].sort_unstable_by_key(by_share);
            order[..sure].sort_unstable();
        }
        let mut kept = vec![false; shares.len()];
        for &node in &order[..self.fitting(&order, most)] {
            kept[node as usize] = true;
        }
        kept
    }

    /// How many of the nodes, in this order, there is room for. A parent must come before its children.
    fn fitting(&self, order: &[Node], most: usize) -> usize {
        let tree = &self.union.tree;
        let mut left_out = vec![0u32; tree.len()];
        for node in tree.nodes() {
            left_out[tree.parent(node) as usize] += 1;
        }
        // The root, and one frame for what is left out below it.
        let (mut nodes, mut fitting) = (2, 0);
        for (&node, count) in order.iter().zip(1..) {
            nodes += 1 + usize::from(left_out[node as usize] > 0);
            let siblings = &mut left_out[tree.parent(node) as usize];
            *siblings -= 1;
            nodes -= usize::from(*siblings == 0);
            if nodes <= most {
                fitting = count;
            }
        }
        fitting
    }

    fn stands_for_others(&self, node: Node) -> bool {
        let frame = self.union.tree.frame(node);
        smaller_frames(self.union.frames.name_of(frame)).is_some()
    }
}
