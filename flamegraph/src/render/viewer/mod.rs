//! The viewer's data: one call tree of everything a page shows, and a sparse column of self values for each
//! part of it; `viewer/FORMAT.md` describes it.

mod bound;
mod column;
mod write;

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::profile::{Frame, Node, Nodes, Profile, Result, ValueType, ROOT};
use column::Column;

/// Most nodes of the tree that is written.
const MOST_NODES: usize = 1_000_000;
/// The tree may grow to this many times that before its thin subtrees are put together.
const GROWTH: usize = 4;
/// A name that is not in the union yet.
const UNKNOWN: u32 = u32::MAX;

/// Puts profiles into one call tree and keeps the self values of each apart.
///
/// Memory grows with the union's nodes, which are bounded, and with the self values that are not zero.
pub struct ViewerWriter {
    /// Has frames and nodes, no values.
    union: Profile,
    /// What the columns count: shares of a whole are those of all columns that count the same.
    events: Vec<ValueType>,
    columns: Vec<Column>,
    most_nodes: usize,
}

/// What became of a group of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadColumn {
    /// None: of all others.
    pub name: Option<String>,
    /// Its column's number.
    pub column: usize,
    /// The sum of its column.
    pub total: u64,
}

/// Of a profile that was taken in: where its nodes are in the union.
struct Grafted {
    nodes: Vec<Node>,
    event: usize,
}

impl Default for ViewerWriter {
    fn default() -> ViewerWriter {
        ViewerWriter::new()
    }
}

impl ViewerWriter {
    /// Nothing yet.
    pub fn new() -> ViewerWriter {
        ViewerWriter::with_most(MOST_NODES)
    }

    fn with_most(most_nodes: usize) -> ViewerWriter {
        ViewerWriter {
            union: Profile::new(Vec::new()),
            events: Vec::new(),
            columns: Vec::new(),
            most_nodes,
        }
    }

    /// Adds one value of a profile as a column of its own; returns the column's number.
    pub fn add(&mut self, profile: &Profile, value: usize) -> Result<usize> {
        let grafted = self.graft(profile, value, true)?;
        let selves = profile.selves(value).iter().zip(&grafted.nodes);
        let column = Column::of(
            grafted.event,
            selves.map(|(&amount, &node)| (node, amount as u64)),
        );
        let number = self.push(column);
        self.bound()?;
        Ok(number)
    }

    /// Adds one value of a profile as a column for each group of threads: the outermost frame in brackets,
    /// `[group]`, is the group's name, and is a node only with `keep_frames`. The heaviest group is first; groups
    /// after the first `most`, and what has no such frame, are one column without a name.
    pub fn add_threads(
        &mut self,
        profile: &Profile,
        value: usize,
        most: usize,
        keep_frames: bool,
    ) -> Result<Vec<ThreadColumn>> {
        let grafted = self.graft(profile, value, keep_frames)?;
        let (groups, group_of) = heaviest_threads(profile, value, most);
        let mut amounts: Vec<Vec<(Node, u64)>> = vec![Vec::new(); groups.len() + 1];
        let selves = profile.selves(value).iter().zip(&grafted.nodes);
        for ((&amount, &node), &group) in selves.zip(&group_of) {
            if amount > 0 {
                amounts[group].push((node, amount as u64));
            }
        }
        let names = groups.into_iter().map(Some).chain([None]);
        let mut made = Vec::new();
        for (name, amounts) in names
            .zip(amounts)
            .filter(|(_, amounts)| !amounts.is_empty())
        {
            made.push(ThreadColumn {
                name,
                total: amounts.iter().map(|&(_, amount)| amount).sum(),
                column: self.push(Column::of(grafted.event, amounts)),
            });
        }
        self.bound()?;
        Ok(made)
    }

    fn push(&mut self, column: Column) -> usize {
        self.columns.push(column);
        self.columns.len() - 1
    }

    /// Numbers the nodes anew where there are too many: only once all columns of what was grafted are there.
    fn bound(&mut self) -> Result<()> {
        if self.union.tree.len() > self.most_nodes.saturating_mul(GROWTH) {
            self.keep_most(self.most_nodes)?;
        }
        Ok(())
    }

    /// Puts the union's nodes in order.
    fn put_in_order(&mut self) -> Result<()> {
        if let Some(went) = self.union.put_in_order()? {
            self.move_columns(&went);
        }
        Ok(())
    }

    /// Follows the union's nodes to where they went.
    fn move_columns(&mut self, went: &[Node]) {
        for column in &mut self.columns {
            *column = column.moved(went, self.union.tree.len());
        }
    }

    /// Makes every node that has a total exist in the union; frames of threads only with `thread_frames`.
    fn graft(&mut self, profile: &Profile, value: usize, thread_frames: bool) -> Result<Grafted> {
        profile.check_value(value)?;
        let totals = profile.node_totals(value);
        let is_first = self.union.tree.len() == 1 && self.union.frames.len() == 0;
        let nodes = if is_first && thread_frames && is_as_the_union_is(profile, &totals) {
            self.take_over(profile)
        } else {
            self.find_all(profile, &totals, thread_frames)?
        };
        let event = self.event(&profile.values()[value]);
        Ok(Grafted { nodes, event })
    }

    /// Begins the union as a copy; returns where its nodes are.
    fn take_over(&mut self, profile: &Profile) -> Vec<Node> {
        self.union.modules.clone_from(&profile.modules);
        self.union.set_nodes(Nodes {
            frames: profile.frames.clone(),
            tree: profile.tree.clone(),
            columns: Vec::new(),
        });
        (0..profile.tree.len() as Node).collect()
    }

    /// Where the nodes that have a total are in the union, in which they are made if they are not there.
    fn find_all(
        &mut self,
        profile: &Profile,
        totals: &[i64],
        thread_frames: bool,
    ) -> Result<Vec<Node>> {
        let tree = &profile.tree;
        let mut names = vec![UNKNOWN; profile.frames.len()];
        let mut nodes = vec![ROOT; tree.len()];
        for node in tree.nodes().filter(|&node| totals[node as usize] > 0) {
            let parent = nodes[tree.parent(node) as usize];
            let passed_over = !thread_frames && profile.thread_at(node).is_some();
            nodes[node as usize] = if passed_over {
                parent
            } else {
                let frame = self.frame(profile, tree.frame(node), &mut names)?;
                self.union.child(parent, frame)?
            };
        }
        Ok(nodes)
    }

    /// The union's frame for one of a profile, with what is known of its names so far.
    fn frame(&mut self, profile: &Profile, frame: Frame, names: &mut [u32]) -> Result<Frame> {
        let name = &mut names[frame.name() as usize];
        if *name == UNKNOWN {
            let text = profile.frames.name_of(frame);
            *name = self.union.frames.intern_name(text.as_bytes())?;
            self.union.modules.copy(text, &profile.modules, text);
        }
        Ok(Frame::new(*name, frame.kind()))
    }

    fn event(&mut self, value: &ValueType) -> usize {
        let known = self.events.iter().position(|event| event == value);
        known.unwrap_or_else(|| {
            self.events.push(value.clone());
            self.events.len() - 1
        })
    }
}

/// Whether the nodes stand in order, every one has a total, and every name a node.
fn is_as_the_union_is(profile: &Profile, totals: &[i64]) -> bool {
    let mut used = vec![false; profile.frames.len()];
    for node in profile.tree.nodes() {
        used[profile.tree.frame(node).name() as usize] = true;
    }
    let has_totals = totals.iter().skip(1).all(|&total| total > 0);
    has_totals && used.into_iter().all(|used| used) && profile.is_ordered()
}

/// The names of the `most` heaviest groups, and for each node the index of its group: one more than the last is
/// that of all others.
fn heaviest_threads(profile: &Profile, value: usize, most: usize) -> (Vec<String>, Vec<usize>) {
    let totals = profile.node_totals(value);
    let mut weights: HashMap<&str, i64, RandomState> = HashMap::default();
    for node in profile.tree.nodes() {
        if let Some(thread) = profile.thread_at(node) {
            *weights.entry(thread).or_default() += totals[node as usize];
        }
    }
    let mut groups: Vec<(&str, i64)> = weights.into_iter().collect();
    groups.sort_unstable_by_key(|&(name, weight)| (std::cmp::Reverse(weight), name));
    groups.truncate(most);
    let places = groups
        .iter()
        .zip(0..)
        .map(|(&(name, _), place)| (name, place));
    let places: HashMap<&str, usize, RandomState> = places.collect();
    let mut group_of = vec![groups.len(); profile.tree.len()];
    for node in profile.tree.nodes() {
        group_of[node as usize] = match profile.thread_at(node) {
            Some(thread) => places.get(thread).copied().unwrap_or(groups.len()),
            None => group_of[profile.tree.parent(node) as usize],
        };
    }
    let names = groups.into_iter().map(|(name, _)| name.to_string());
    (names.collect(), group_of)
}

#[cfg(test)]
mod tests;
