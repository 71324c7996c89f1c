//! Self values of some nodes, in few bytes.

use crate::profile::Node;
use crate::source::wire::{put_varint, Numbers};

/// The self values of one part of what is shown, by node; nodes without any are not in it.
pub(super) struct Column {
    /// Which of the writer's events it counts.
    pub(super) event: usize,
    /// For each entry how far its node is from the one before, and its value.
    bytes: Vec<u8>,
}

impl Column {
    /// Amounts of one node are added up.
    pub(super) fn of(event: usize, amounts: impl IntoIterator<Item = (Node, u64)>) -> Column {
        let amounts = sorted(amounts);
        let mut bytes = Vec::new();
        let mut before = 0;
        for &(node, amount) in &amounts {
            put_varint(&mut bytes, u64::from(node - before));
            put_varint(&mut bytes, amount);
            before = node;
        }
        bytes.shrink_to_fit();
        Column { event, bytes }
    }

    /// Nodes, ascending, and their values.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Node, u64)> + '_ {
        let mut numbers = Numbers::of(&self.bytes).map_while(|number| number);
        let mut node = 0;
        std::iter::from_fn(move || {
            node += numbers.next()? as Node;
            Some((node, numbers.next()?))
        })
    }

    /// The same values at other nodes: `went` says where each went, of so many as there are now.
    pub(super) fn moved(&self, went: &[Node], nodes: usize) -> Column {
        let entries = self.entries();
        let moved = entries.map(|(node, amount)| (went[node as usize], amount));
        if self.bytes.len() < nodes / 4 {
            return Column::of(self.event, moved);
        }
        // Of many nodes: to lay them out costs less than to sort them.
        let mut amounts = vec![0u64; nodes];
        for (node, amount) in moved {
            add_to(&mut amounts[node as usize], amount);
        }
        Column::of(self.event, (0..).zip(amounts))
    }
}

/// Amounts by node, ascending, each node once; nothing where there is none.
fn sorted(amounts: impl IntoIterator<Item = (Node, u64)>) -> Vec<(Node, u64)> {
    let mut amounts: Vec<_> = amounts
        .into_iter()
        .filter(|&(_, amount)| amount > 0)
        .collect();
    amounts.sort_unstable_by_key(|&(node, _)| node);
    amounts.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        if same {
            add_to(&mut sum.1, next.1);
        }
        same
    });
    amounts
}

/// A profile's total fits in 63 bits.
fn add_to(sum: &mut u64, amount: u64) {
    *sum = sum.saturating_add(amount);
}
