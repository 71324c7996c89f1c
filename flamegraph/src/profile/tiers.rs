//! What each kind of frame had where nodes of several kinds were merged into one.

use crate::profile::{Kind, Node};

/// For a name or node, how much of a value each kind has.
pub(crate) type Shares = [i64; Kind::ALL.len()];

/// For each value and each node the total of each kind that was merged into it.
#[derive(Clone)]
pub(crate) struct TierTotals(pub(crate) Vec<Vec<Shares>>);

impl TierTotals {
    pub(crate) fn of(&self, value: usize, node: Node) -> &Shares {
        &self.0[value][node as usize]
    }

    /// The same for a tree made of some of the nodes: `from` holds for each new node the one it was, if
    /// it was one.
    pub(crate) fn taken_over(&self, from: &[Option<Node>]) -> TierTotals {
        let take = |column: &[Shares], node: &Option<Node>| {
            node.map_or(Shares::default(), |node| column[node as usize])
        };
        let columns = self.0.iter();
        let taken = columns.map(|column| from.iter().map(|node| take(column, node)).collect());
        TierTotals(taken.collect())
    }
}

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
