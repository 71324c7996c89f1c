//! The profile: a call tree with typed values and labels.

use std::collections::BTreeMap;
use std::sync::Arc;

mod error;
mod frames;
mod limits;
mod merge;
mod modules;
mod parts;
mod raw_names;
mod tiers;
mod times;
mod tree;
mod unknown;
pub(crate) mod values;
mod walk;

pub use error::{Error, Result};
pub use frames::Kind;
pub(crate) use frames::{Frame, Frames};
pub(crate) use limits::Bounded;
pub use limits::Limits;
pub(crate) use limits::MOST_PERIOD;
pub use merge::Merger;
pub(crate) use merge::Nodes;
pub(crate) use modules::{module_of, ModuleTable};
pub use parts::of_parts;
pub(crate) use raw_names::RawNames;
pub(crate) use tiers::{dominant, Shares, TierTotals};
pub use times::{band_of, LeftOut, Row, Slice, SliceOf, ThreadId, Times, TimesBuilder, BUCKET};
pub(crate) use tree::{Node, Tree, ROOT};
pub use unknown::Unknown;
pub use values::ValueType;
pub(crate) use walk::{deal, Order, Step};

/// Most warnings that are kept.
const MOST_WARNINGS: usize = 20;

/// What holds for a whole profile: host, pid, process ...
pub type Labels = BTreeMap<String, String>;

/// Stacks and how often each was seen.
///
/// A node of the tree is a frame under a parent, a frame is a name and a [`Kind`](crate::Kind); each
/// node has one self value for each [`ValueType`]. Values are never negative, and the sum of a value
/// always fits in an `i64`, therefore so does every total of a subtree.
#[derive(Clone)]
pub struct Profile {
    values: Vec<ValueType>,
    labels: Labels,
    malformed_lines: u64,
    skips_stubs: bool,
    incomplete: bool,
    alloc_share_error: u32,
    warnings: Vec<String>,
    pub(crate) frames: Frames,
    pub(crate) tree: Tree,
    /// Self values: one column for each value type, one entry for each node.
    columns: Vec<Vec<i64>>,
    totals: Vec<i64>,
    most_nodes: usize,
    /// The numbers of names and nodes when they were last known to be in order.
    ordered: Option<(usize, usize)>,
    pub(crate) raw_names: RawNames,
    pub(crate) modules: ModuleTable,
    /// What each tier had, if tiers were merged.
    pub(crate) tiers: Option<TierTotals>,
    /// When samples were taken, if that is known; a merged profile does not know it.
    times: Option<Arc<Times>>,
    /// What could not be named; only of a perf.data file.
    unknown: Option<Unknown>,
}

impl Profile {
    /// An empty profile of these values.
    pub fn new(values: Vec<ValueType>) -> Profile {
        Profile {
            columns: vec![vec![0]; values.len()],
            totals: vec![0; values.len()],
            values,
            labels: Labels::new(),
            malformed_lines: 0,
            skips_stubs: false,
            incomplete: false,
            alloc_share_error: 0,
            warnings: Vec::new(),
            frames: Frames::default(),
            tree: Tree::new(),
            most_nodes: usize::MAX,
            ordered: None,
            raw_names: RawNames::default(),
            modules: ModuleTable::default(),
            tiers: None,
            times: None,
            unknown: None,
        }
    }

    /// An empty profile whose nodes times values stay within `cells`.
    pub(crate) fn bounded(values: Vec<ValueType>, cells: usize) -> Profile {
        let most_nodes = cells / values.len().max(1);
        Profile {
            most_nodes,
            ..Profile::new(values)
        }
    }

    /// How many nodes there may be, the root among them.
    pub(crate) fn most_nodes(&self) -> usize {
        self.most_nodes
    }

    /// What the values mean, in their order.
    pub fn values(&self) -> &[ValueType] {
        &self.values
    }

    /// The same for people: `samples (count), cpu (nanoseconds)`.
    pub fn value_list(&self) -> String {
        values::list(&self.values)
    }

    /// Adds a value, which is zero everywhere, and returns its index. Nodes times values stay within `cells`.
    pub(crate) fn push_value(&mut self, value: ValueType, cells: usize) -> Result<usize> {
        self.most_nodes = cells / (self.values.len() + 1);
        if self.tree.len() > self.most_nodes {
            return Err(Error::Limit {
                what: "nodes of the call tree",
                limit: self.most_nodes as u64,
            });
        }
        self.values.push(value);
        self.totals.push(0);
        self.columns.push(vec![0; self.tree.len()]);
        Ok(self.values.len() - 1)
    }

    /// Renames a value, for readers that learn its meaning late.
    pub(crate) fn rename_value(&mut self, value: usize, meaning: ValueType) {
        self.values[value] = meaning;
    }

    /// Keeps only these values, in this order. Nodes stay as they are.
    pub(crate) fn keep_values(&mut self, order: &[usize]) {
        self.values = order
            .iter()
            .map(|&value| self.values[value].clone())
            .collect();
        self.totals = order.iter().map(|&value| self.totals[value]).collect();
        let take = |&value: &usize| std::mem::take(&mut self.columns[value]);
        self.columns = order.iter().map(take).collect();
    }

    /// The names, the nodes, and how many nodes there may be if they have two values at least: for a reader that
    /// makes names and nodes apart. [`grown`](Profile::grown) has to follow.
    pub(crate) fn parts(&mut self, cells: usize) -> (&mut Frames, &mut Tree, usize) {
        (
            &mut self.frames,
            &mut self.tree,
            self.most_nodes.min(cells / 2),
        )
    }

    /// Gives new nodes no values.
    pub(crate) fn grown(&mut self) {
        for column in &mut self.columns {
            column.resize(self.tree.len(), 0);
        }
    }

    /// What holds for the whole profile.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Sets a label.
    pub fn set_label(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.labels.insert(name.into(), value.into());
    }

    pub(crate) fn set_labels(&mut self, labels: Labels) {
        self.labels = labels;
    }

    /// When samples were taken, if that is known.
    pub fn times(&self) -> Option<&Times> {
        self.times.as_deref()
    }

    /// Sets when samples were taken; the rows' nodes are this profile's.
    pub fn set_times(&mut self, times: Option<Times>) {
        self.times = times.map(Arc::new);
    }

    /// Says which value amounts of rows are of.
    pub(crate) fn set_amounts_of(&mut self, value: usize) {
        let is_last = value + 1 == self.values.len();
        if let Some(times) = &mut self.times {
            Arc::make_mut(times).set_amounts_of((!is_last).then_some(value));
        }
    }

    /// Lines of folded text that were counted and left out.
    pub fn malformed_lines(&self) -> u64 {
        self.malformed_lines
    }

    pub(crate) fn add_malformed_lines(&mut self, lines: u64) {
        self.malformed_lines += lines;
    }

    /// Whether the CPU samples are those of a JDK that leaves out threads in stubs, such as array copies and hashes:
    /// shares of all else are too large.
    pub fn skips_stubs(&self) -> bool {
        self.skips_stubs
    }

    pub(crate) fn set_skips_stubs(&mut self, skips: bool) {
        self.skips_stubs |= skips;
    }

    /// By how many percentage points shares of allocated bytes may be off, because the JDK dropped most samples of
    /// allocations; 0 if it did not.
    pub fn alloc_share_error(&self) -> u32 {
        self.alloc_share_error
    }

    pub(crate) fn set_alloc_share_error(&mut self, points: u32) {
        self.alloc_share_error = self.alloc_share_error.max(points);
    }

    /// Whether a part of the file was left out, or it may be no profile at all. The warnings say which.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    pub(crate) fn set_incomplete(&mut self, incomplete: bool) {
        self.incomplete |= incomplete;
    }

    /// Adds warnings of what is missing.
    pub(crate) fn add_incomplete(&mut self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            self.incomplete = true;
            self.add_warnings([warning]);
        }
    }

    /// What could not be named; only perf.data counts it.
    pub fn unknown(&self) -> Option<&Unknown> {
        self.unknown.as_ref()
    }

    pub(crate) fn set_unknown(&mut self, unknown: Unknown) {
        self.unknown = Some(unknown);
    }

    /// What a reader left out, and why. Only the first few warnings are kept.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn add_warnings(&mut self, warnings: impl IntoIterator<Item = String>) {
        let room = MOST_WARNINGS.saturating_sub(self.warnings.len());
        self.warnings.extend(warnings.into_iter().take(room));
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Number of nodes of the tree, without the root.
    pub fn node_count(&self) -> usize {
        self.tree.len() - 1
    }

    /// The sum of one value over all stacks.
    pub fn total(&self, value: usize) -> Result<i64> {
        self.check_value(value)?;
        Ok(self.totals[value])
    }

    /// True when no stack has any value.
    pub fn is_empty(&self) -> bool {
        self.totals.iter().all(|&total| total == 0)
    }

    /// Adds a stack of annotated names, root first, with one amount for each value. Returns the node of its leaf.
    pub fn add_stack<S: AsRef<[u8]>>(&mut self, stack: &[S], amounts: &[i64]) -> Result<Node> {
        let mut node = ROOT;
        for name in stack {
            let frame = self.frames.intern(name.as_ref())?;
            node = self.child(node, frame)?;
        }
        for (value, &amount) in amounts.iter().enumerate() {
            self.add(node, value, amount)?;
        }
        Ok(node)
    }

    /// Adds another profile by sum. Labels that are not the same in both are dropped.
    pub fn merge(&mut self, other: &Profile) -> Result<()> {
        self.check_sums(other)?;
        // A walk costs all nodes of both trees. Look-ups cost more each, but only for the nodes of the other tree.
        let alike = self.tree.len() / 8 <= other.tree.len();
        if alike && self.is_ordered() && other.is_ordered() {
            self.set_nodes(merge::union(&[self, other])?);
            self.absorb(other);
            return Ok(());
        }
        // That limit was one reader's, for one file.
        self.most_nodes = usize::MAX;
        let nodes = self.graft(other)?;
        for (column, theirs) in self.columns.iter_mut().zip(&other.columns) {
            for (&amount, &node) in theirs.iter().zip(&nodes) {
                column[node as usize] += amount;
            }
        }
        self.absorb(other);
        Ok(())
    }

    /// Adds a part of the same recording; returns for each of its nodes the node here. The first one has its facts.
    pub(crate) fn add_part(&mut self, part: &Profile, first: bool) -> Result<Vec<Node>> {
        let nodes = self.graft(part)?;
        for (column, theirs) in self.columns.iter_mut().zip(&part.columns) {
            for (&amount, &node) in theirs.iter().zip(&nodes) {
                column[node as usize] += amount;
            }
        }
        if first {
            self.labels = part.labels.clone();
        }
        self.absorb(part);
        Ok(nodes)
    }

    /// Before anything is changed: a merge that fails leaves the profile as it was.
    pub(crate) fn check_sums(&self, other: &Profile) -> Result<()> {
        self.check_same_values(&other.values)?;
        let totals = self.totals.iter().zip(&other.totals).zip(&self.values);
        for ((ours, theirs), value) in totals {
            let sum = ours.checked_add(*theirs);
            sum.ok_or_else(|| Error::MergeOverflow(value.to_string()))?;
        }
        Ok(())
    }

    /// Adds everything of another profile but its tree. The sums were checked.
    pub(crate) fn absorb(&mut self, other: &Profile) {
        for (total, theirs) in self.totals.iter_mut().zip(&other.totals) {
            *total += theirs;
        }
        self.absorb_facts(other);
        if let Some(theirs) = &other.unknown {
            self.unknown.get_or_insert_default().merge(theirs);
        }
    }

    /// Adds what holds for the whole of another profile, whatever its values. Labels that are not the same in both are
    /// dropped: the only rule under which merging associates.
    pub(crate) fn absorb_facts(&mut self, other: &Profile) {
        let theirs = &other.labels;
        self.labels
            .retain(|name, value| theirs.get(name) == Some(value));
        self.malformed_lines += other.malformed_lines;
        self.skips_stubs |= other.skips_stubs;
        self.incomplete |= other.incomplete;
        self.set_alloc_share_error(other.alloc_share_error);
        self.add_warnings(other.warnings.iter().cloned());
        self.raw_names.add(&other.raw_names);
        self.modules.add(&other.modules);
        self.tiers = None;
        self.times = None;
    }

    /// Whether the nodes stand as every writer wants them: names and frames numbered in name order, each
    /// node followed by its descendants, children in the order of their frames.
    pub(crate) fn is_ordered(&self) -> bool {
        let now = (self.frames.len(), self.tree.len());
        // Names and nodes are only ever added, so equal numbers mean that nothing changed.
        self.ordered == Some(now) || (self.frames.is_sorted() && self.tree.is_preorder())
    }

    /// Checks the limit again after several readers of one file were merged.
    pub(crate) fn check_cells(&self, cells: usize) -> Result<()> {
        let most = cells / self.values.len().max(1);
        if self.tree.len() <= most {
            return Ok(());
        }
        Err(Error::Limit {
            what: "nodes of the call tree",
            limit: most as u64,
        })
    }

    /// Replaces the nodes by others that are in order. The totals of the values must be the same.
    pub(crate) fn set_nodes(&mut self, nodes: Nodes) {
        self.frames = nodes.frames;
        self.tree = nodes.tree;
        self.columns = nodes.columns;
        self.ordered = Some((self.frames.len(), self.tree.len()));
        self.most_nodes = usize::MAX;
    }

    /// The same profile with ordered nodes, as [`is_ordered`](Profile::is_ordered) means it.
    pub(crate) fn into_ordered(mut self) -> Result<Profile> {
        self.put_in_order()?;
        Ok(self)
    }

    /// Puts the nodes in order. Returns where each went, unless they were in order already.
    pub(crate) fn put_in_order(&mut self) -> Result<Option<Vec<Node>>> {
        if self.is_ordered() {
            self.ordered = Some((self.frames.len(), self.tree.len()));
            return Ok(None);
        }
        let (nodes, went) = Nodes::in_order(self)?;
        if let Some(times) = self.times.take() {
            self.times = Some(Arc::new(
                times.moved(|node| went.get(node as usize).copied()),
            ));
        }
        self.set_nodes(nodes);
        self.tiers = None;
        Ok(Some(went))
    }

    /// Adds every node of `other`; returns for each of its nodes the node here.
    pub(crate) fn graft(&mut self, other: &Profile) -> Result<Vec<Node>> {
        let mut names = Vec::with_capacity(other.frames.len());
        for name in 0..other.frames.len() as u32 {
            names.push(
                self.frames
                    .intern_name(other.frames.name(name).as_bytes())?,
            );
        }
        let mut nodes = vec![ROOT; other.tree.len()];
        for node in other.tree.nodes() {
            let parent = nodes[other.tree.parent(node) as usize];
            let frame = other.tree.frame(node);
            let frame = Frame::new(names[frame.name() as usize], frame.kind());
            nodes[node as usize] = self.child(parent, frame)?;
        }
        Ok(nodes)
    }

    pub(crate) fn child(&mut self, parent: Node, frame: Frame) -> Result<Node> {
        let node = self.tree.child(parent, frame, self.most_nodes)?;
        if node as usize == self.columns.first().map_or(0, Vec::len) {
            for column in &mut self.columns {
                column.push(0);
            }
        }
        Ok(node)
    }

    /// Adds to the self value of a node.
    pub(crate) fn add(&mut self, node: Node, value: usize, amount: i64) -> Result<()> {
        if amount < 0 {
            return Err(Error::Usage(format!(
                "{}: {amount} is negative",
                self.values[value]
            )));
        }
        self.totals[value] = self.sum(value, amount)?;
        // A self value is never more than the total, which was just checked.
        self.columns[value][node as usize] += amount;
        Ok(())
    }

    fn sum(&self, value: usize, amount: i64) -> Result<i64> {
        self.totals[value]
            .checked_add(amount)
            .ok_or_else(|| Error::Overflow(self.values[value].to_string()))
    }

    /// Replaces a value's self values, one for each node, none of them negative.
    pub(crate) fn set_column(&mut self, value: usize, column: Vec<i64>) -> Result<()> {
        let mut amounts = column.iter();
        let total = amounts.try_fold(0i64, |sum, &amount| sum.checked_add(amount));
        self.totals[value] =
            total.ok_or_else(|| Error::Overflow(self.values[value].to_string()))?;
        self.columns[value] = column;
        self.tiers = None;
        Ok(())
    }

    /// Self values of all nodes.
    pub(crate) fn selves(&self, value: usize) -> &[i64] {
        &self.columns[value]
    }

    /// Totals of all nodes: own value and that of everything below.
    pub(crate) fn node_totals(&self, value: usize) -> Vec<i64> {
        self.tree.sum_up(&self.columns[value])
    }

    /// The frames some node has.
    pub(crate) fn used_frames(&self) -> Vec<Frame> {
        let mut used = vec![false; self.frames.index_len()];
        for node in self.tree.nodes() {
            used[self.tree.frame(node).index()] = true;
        }
        (0..used.len())
            .filter(|&index| used[index])
            .map(Frame::from_index)
            .collect()
    }

    /// The same by name, then by kind.
    pub(crate) fn frames_in_order(&self) -> Vec<Frame> {
        let (mut frames, ranks) = (self.used_frames(), self.frames.ranks());
        frames.sort_unstable_by_key(|frame| (ranks[frame.name() as usize], frame.kind()));
        frames
    }

    pub(crate) fn check_value(&self, value: usize) -> Result<()> {
        if value < self.values.len() {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "no value {value} in this profile; there are: {}",
            self.value_list()
        )))
    }

    pub(crate) fn check_same_values(&self, theirs: &[ValueType]) -> Result<()> {
        if self.values == theirs {
            return Ok(());
        }
        Err(Error::UnlikeValues {
            ours: values::list(&self.values),
            theirs: values::list(theirs),
        })
    }
}
