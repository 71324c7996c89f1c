//! A tree of no more nodes than a browser can hold, with exact totals.

use super::thinned::thinned;
use super::{Column, ViewerWriter};
use crate::ops::prune::{smaller_frames, ONE};
use crate::profile::{deal, Node, Result, ROOT};

impl ViewerWriter {
    /// Puts the nodes in order, and the thinnest subtrees together, so that there are at most this many nodes.
    pub(super) fn keep_most(&mut self, most: usize) -> Result<()> {
        self.put_in_order()?;
        if self.union.tree.len() <= most {
            return Ok(());
        }
        let shares = self.shares();
        let kept = self.largest(&shares, most);
        let (union, went) = thinned(&self.union, &shares, &kept)?;
        self.union = union;
        self.move_columns(&went);
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
        let tree = &self.union.tree;
        // What stands for others already is put together with what comes to it.
        let stands = self.union.frames.all().map(smaller_frames);
        let stands: Vec<bool> = stands.map(|count| count.is_some()).collect();
        let counts =
            |&node: &Node| shares[node as usize] > 0 && !stands[tree.frame(node).name() as usize];
        let size = |node: Node| SIZES - 1 - size_of_share(shares[node as usize]);
        let (order, _) = deal(tree.nodes().filter(counts), SIZES, size);
        let mut kept = vec![false; shares.len()];
        for &node in &order[..self.fitting(&order, most)] {
            kept[node as usize] = true;
        }
        // What is below something that stands for others goes with it.
        for node in tree.nodes() {
            let parent = tree.parent(node);
            kept[node as usize] &= parent == ROOT || kept[parent as usize];
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
        let mut nodes = 2;
        let fits = |&node: &Node| {
            nodes += 1 + usize::from(left_out[node as usize] > 0);
            let siblings = &mut left_out[tree.parent(node) as usize];
            *siblings -= 1;
            nodes -= usize::from(*siblings == 0);
            nodes <= most
        };
        // A node never makes room for another, so the first that does not fit is the end.
        order.iter().copied().take_while(fits).count()
    }
}

/// Sizes that are told apart: shares within a thousandth of one another are alike.
const SIZES: usize = 1 << 16;
/// Of a share's bits behind the first, as many as count.
const SIZE_BITS: u32 = 10;

/// Grows with the share.
fn size_of_share(share: u64) -> usize {
    let first = u64::BITS - 1 - share.max(1).leading_zeros();
    let behind = share.max(1) << (u64::BITS - 1 - first) << 1 >> (u64::BITS - SIZE_BITS);
    (first as usize) << SIZE_BITS | behind as usize
}
