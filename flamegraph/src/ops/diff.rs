//! The difference between two profiles.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::profile::{values, Error, Node, Order, Profile, Result, ValueType, ROOT};

/// Two profiles side by side in one tree.
///
/// [`tree`](Diff::tree) is a profile of two values, `before` and `after`, in the unit of the value compared; it has
/// every path of either side. Tiers are merged, so that a method that was compiled in between does not vanish and
/// appear. If the difference is normalised, `before` is scaled to exactly the total of `after`, so that a delta is a
/// change of share, in units of `after`.
pub struct Diff {
    tree: Arc<Profile>,
    normalized: bool,
    before_total: i64,
    /// For each node whether it had a total before scaling, which can round a small one to 0.
    was_there: Vec<bool>,
    /// Totals of all nodes, before and after.
    totals: [Vec<i64>; 2],
}

/// The change of one path, or of one method in all stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The names from the root to this frame, or only the method's name.
    pub path: Vec<String>,
    /// Own value, before and after.
    pub selfs: [i64; 2],
    /// Total value, before and after; a method counts once per stack.
    pub totals: [i64; 2],
}

impl Diff {
    /// The index of the value `before` in the tree.
    pub const BEFORE: usize = 0;
    /// The index of the value `after` in the tree.
    pub const AFTER: usize = 1;

    /// Compares one value of two profiles: the one at this index of `after`, which `before` must have with the same
    /// unit. `normalize` compensates for different lengths of recording; then both must have samples.
    pub fn of(before: &Profile, after: &Profile, value: usize, normalize: bool) -> Result<Diff> {
        after.check_value(value)?;
        let compared = &after.values()[value];
        let theirs = before.values().iter().position(|value| value == compared);
        let theirs = theirs.ok_or_else(|| Error::UnlikeValues {
            ours: values::list(before.values()),
            theirs: compared.to_string(),
        })?;
        let mut tree = Profile::new(vec![
            ValueType::new("before", &compared.unit),
            ValueType::new("after", &compared.unit),
        ]);
        tree.add_column(before, theirs, Diff::BEFORE)?;
        tree.add_column(after, value, Diff::AFTER)?;
        let tree = tree.with_tiers_merged(&[Diff::BEFORE, Diff::AFTER])?;
        let measured = tree.node_totals(Diff::BEFORE);
        let tree = match normalize {
            true => normalized(&tree, compared)?,
            false => tree,
        };
        Ok(Diff {
            normalized: normalize,
            before_total: measured[0],
            was_there: measured.iter().map(|&total| total > 0).collect(),
            totals: [Diff::BEFORE, Diff::AFTER].map(|value| tree.node_totals(value)),
            tree: Arc::new(tree),
        })
    }

    /// The tree with both values.
    pub fn tree(&self) -> &Arc<Profile> {
        &self.tree
    }

    /// Whether `before` is scaled to the total of `after`.
    pub fn is_normalized(&self) -> bool {
        self.normalized
    }

    /// The total before, as measured.
    pub fn before_total(&self) -> i64 {
        self.before_total
    }

    /// The methods whose self value changed most, then by the change of their total, then by name.
    pub fn changes(&self, limit: usize) -> Result<Vec<Change>> {
        let [before, after] = [Diff::BEFORE, Diff::AFTER].map(|value| self.tree.methods(value));
        let both = before.into_iter().zip(after);
        let mut changes: Vec<_> = both
            .map(|((name, self_before, before), (_, self_after, after))| {
                (name, [self_before, self_after], [before, after])
            })
            .filter(|(_, selfs, totals)| delta(selfs) != 0 || delta(totals) != 0)
            .collect();
        changes.sort_unstable_by_key(|(name, selfs, totals)| {
            (
                Reverse(delta(selfs).abs()),
                Reverse(delta(totals).abs()),
                *name,
            )
        });
        changes.truncate(limit);
        let change = |(name, selfs, totals): (&str, _, _)| Change {
            path: vec![name.to_string()],
            selfs,
            totals,
        };
        Ok(changes.into_iter().map(change).collect())
    }

    /// The new paths, largest first; for a new subtree only its root.
    pub fn appeared(&self, limit: usize) -> Vec<Change> {
        let new = |node: Node| !self.was_there[node as usize] && self.totals_of(node)[1] > 0;
        self.outermost(new, Diff::AFTER, limit)
    }

    /// The vanished paths, largest first; for a vanished subtree only its root.
    pub fn vanished(&self, limit: usize) -> Vec<Change> {
        let gone = |node: Node| self.was_there[node as usize] && self.totals_of(node)[1] == 0;
        self.outermost(gone, Diff::BEFORE, limit)
    }

    fn outermost(&self, is: impl Fn(Node) -> bool, value: usize, limit: usize) -> Vec<Change> {
        let parent = |node: Node| self.tree.tree.parent(node);
        let begins = |&node: &Node| is(node) && (parent(node) == ROOT || !is(parent(node)));
        let mut nodes: Vec<Node> = self.tree.tree.nodes().filter(begins).collect();
        nodes.sort_by_key(|&node| Reverse(self.totals[value][node as usize]));
        nodes.truncate(limit);
        let change = |node: Node| Change {
            path: self.tree.path(node),
            selfs: self.selfs(node),
            totals: self.totals_of(node),
        };
        nodes.into_iter().map(change).collect()
    }

    fn selfs(&self, node: Node) -> [i64; 2] {
        [Diff::BEFORE, Diff::AFTER].map(|value| self.tree.selves(value)[node as usize])
    }

    fn totals_of(&self, node: Node) -> [i64; 2] {
        [&self.totals[0], &self.totals[1]].map(|totals| totals[node as usize])
    }
}

fn delta([before, after]: &[i64; 2]) -> i64 {
    after - before
}

impl Profile {
    /// Whether it has the values of a difference: before and after, in the same unit.
    pub fn is_differential(&self) -> bool {
        match self.values() {
            [before, after] => {
                before.name == "before" && after.name == "after" && before.unit == after.unit
            }
            _ => false,
        }
    }

    /// Adds a value of another profile to one of this profile.
    fn add_column(&mut self, other: &Profile, theirs: usize, ours: usize) -> Result<()> {
        let nodes = self.graft(other)?;
        self.modules.add(&other.modules);
        for (&amount, &node) in other.selves(theirs).iter().zip(&nodes) {
            self.add(node, ours, amount)?;
        }
        Ok(())
    }
}

/// The same tree with `before` scaled to the total of `after`.
fn normalized(tree: &Profile, compared: &ValueType) -> Result<Profile> {
    let [before, after] = [tree.total(Diff::BEFORE)?, tree.total(Diff::AFTER)?];
    for (total, side) in [(before, "before"), (after, "after")] {
        if total == 0 {
            return Err(Error::Empty(format!(
                "nothing to compare: no {compared} {side}"
            )));
        }
    }
    let mut scaled = tree.clone();
    scaled.set_column(
        Diff::BEFORE,
        tree.dealt(Diff::BEFORE, after, &Order::of(tree))?,
    )?;
    Ok(scaled)
}
