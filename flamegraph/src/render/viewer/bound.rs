//! A tree of no more nodes than a browser can hold, with exact totals.

use super::{Column, ViewerWriter};
use crate::ops::prune::{largest, smaller_frames, ONE};
use crate::profile::{Result, ROOT};

impl ViewerWriter {
    /// Puts the nodes in order, and the thinnest subtrees together, so that there are at most this many nodes.
    pub(super) fn keep_most(&mut self, most: usize) -> Result<()> {
        self.put_in_order()?;
        if self.union.tree.len() <= most {
            return Ok(());
        }
        let shares = self.shares();
        let kept = self.largest(&shares, most);
        let (union, went) = self.union.with_remainders(&shares, &kept)?;
        self.union = union;
        self.move_columns(&went);
        self.put_in_order()
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

    /// The nodes with the largest shares: half as many as there may be, for each may need a frame beside it that
    /// stands for the rest.
    fn largest(&self, shares: &[u64], most: usize) -> Vec<bool> {
        let tree = &self.union.tree;
        let mut kept = largest(shares, most.saturating_sub(2) / 2);
        kept[ROOT as usize] = true;
        for node in tree.nodes() {
            let place = node as usize;
            // What stands for others already is put together with what comes to it, and with it all that is below.
            let stands = smaller_frames(self.union.frames.name_of(tree.frame(node))).is_some();
            kept[place] &= shares[place] > 0 && !stands && kept[tree.parent(node) as usize];
        }
        kept
    }
}
