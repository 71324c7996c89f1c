//! The viewer's data: one call tree of everything a page shows, and a sparse column of self values for each
//! part of it; `viewer/FORMAT.md` describes it.

mod bound;
mod column;
mod times;
mod write;

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use crate::ops::split::Split;
use crate::ops::waiting::counts_waits;
use crate::profile::{Frame, Node, Nodes, Profile, Result, Row, Slice, Times, ValueType, ROOT};
use column::Column;
use times::{ColumnTimes, MOST_ROWS};

/// Most nodes of the tree that is written.
const MOST_NODES: usize = 1_000_000;
/// The tree may grow to this many times that before its thin subtrees are put together.
const GROWTH: usize = 4;
/// A name that is not in the union yet.
const UNKNOWN: u32 = u32::MAX;
/// The index of no slice.
const NO_SLICE: u16 = u16::MAX;

/// Puts profiles into one call tree and keeps the self values of each apart.
///
/// Memory grows with the union's nodes, which are bounded, and with the self values that are not zero.
pub struct ViewerWriter {
    /// Has frames and nodes, no values.
    union: Profile,
    /// What the columns count: shares of a whole are those of all columns that count the same.
    events: Vec<ValueType>,
    columns: Vec<Column>,
    /// Of the columns that have any.
    times: Vec<ColumnTimes>,
    most_nodes: usize,
    most_rows: usize,
    /// There were too many rows.
    without_times: bool,
}

/// What became of a group of threads, or of a slice of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartColumn {
    /// None: of all other threads.
    pub thread: Option<String>,
    /// None: of no slice.
    pub slice: Option<Slice>,
    /// Its column's number.
    pub column: usize,
    /// The sum of its column.
    pub total: u64,
    /// The same without threads that wait for work.
    pub busy: u64,
}

/// Self values and rows of a column in the making; nodes are the union's.
#[derive(Default)]
struct Part {
    amounts: Vec<(Node, u64)>,
    rows: Vec<Row>,
    busy: u64,
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
        ViewerWriter::with_most(MOST_NODES, MOST_ROWS)
    }

    fn with_most(most_nodes: usize, most_rows: usize) -> ViewerWriter {
        ViewerWriter {
            union: Profile::new(Vec::new()),
            events: Vec::new(),
            columns: Vec::new(),
            times: Vec::new(),
            most_nodes,
            most_rows,
            without_times: false,
        }
    }

    /// Adds one value of a profile as a column of its own; returns the column's number. `start` is when the page's time
    /// begins for it, in microseconds since 1970; without, the column has no times.
    pub fn add(&mut self, profile: &Profile, value: usize, start: Option<i64>) -> Result<usize> {
        let grafted = self.graft(profile, value, true)?;
        let selves = profile.selves(value).iter().zip(&grafted.nodes);
        let amounts = selves.map(|(&amount, &node)| (node, amount as u64));
        let number = self.push(Column::of(grafted.event, amounts));
        if let Some((times, start)) = profile.times().zip(start) {
            let selves = profile.selves(value);
            let rows = times.rows().chunk_by(|one, other| one.node == other.node);
            let rows = rows.filter(|rows| selves[rows[0].node as usize] > 0);
            let rows = rows.flat_map(|rows| {
                rows_at(profile, value, rows, grafted.nodes[rows[0].node as usize])
            });
            self.push_times(number, times, start, rows.collect());
        }
        self.bound()?;
        Ok(number)
    }

    /// Adds one value of a profile as a column for each group of threads, and for each slice of it: the outermost frame
    /// in brackets, `[group]`, is the group's name, and is a node only with `keep_frames`. The heaviest group is first;
    /// groups after the first `most`, and what has no such frame, are one without a name. For `start` see
    /// [`add`](ViewerWriter::add).
    pub fn add_threads(
        &mut self,
        profile: &Profile,
        value: usize,
        most: usize,
        keep_frames: bool,
        start: Option<i64>,
    ) -> Result<Vec<PartColumn>> {
        let grafted = self.graft(profile, value, keep_frames)?;
        let idle = match counts_waits(&profile.values()[value]) {
            true => profile.idle_nodes(),
            false => vec![false; profile.tree.len()],
        };
        let (groups, group_of) = heaviest_threads(profile, value, most, &idle);
        let mut made = Vec::new();
        for ((group, slice), part) in parts_of(profile, value, &grafted.nodes, &group_of, &idle) {
            let (total, busy) = (
                part.amounts.iter().map(|&(_, amount)| amount).sum(),
                part.busy,
            );
            let column = self.push(Column::of(grafted.event, part.amounts));
            let times = profile.times();
            made.push(PartColumn {
                thread: groups.get(group).cloned(),
                slice: times.and_then(|times| times.slices.get(usize::from(slice)).cloned()),
                column,
                total,
                busy,
            });
            if let Some((times, start)) = times.zip(start) {
                self.push_times(column, times, start, part.rows);
            }
        }
        self.bound()?;
        Ok(made)
    }

    fn push(&mut self, column: Column) -> usize {
        self.columns.push(column);
        self.columns.len() - 1
    }

    fn push_times(&mut self, column: usize, times: &Times, start: i64, rows: Vec<Row>) {
        let since = times.start.saturating_sub(start).max(0) as u64;
        self.keep_times(ColumnTimes::of(column, since, times.width, rows));
    }

    /// Numbers the nodes anew where there are too many: only once all columns of what was grafted are there.
    fn bound(&mut self) -> Result<()> {
        self.bound_times();
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
        for times in &mut self.times {
            *times = times.moved(went);
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

/// Self values and rows by group of threads and slice. That of no slice is a group's last.
fn parts_of(
    profile: &Profile,
    value: usize,
    nodes: &[Node],
    group_of: &[usize],
    idle: &[bool],
) -> BTreeMap<(usize, u16), Part> {
    let mut rest = profile.times().map_or(&[][..], Times::rows);
    let mut parts: BTreeMap<(usize, u16), Part> = BTreeMap::new();
    for (place, &amount) in profile.selves(value).iter().enumerate() {
        let own = rest.iter().take_while(|row| row.node as usize <= place);
        let (rows, others) = rest.split_at(own.count());
        rest = others;
        if amount == 0 {
            continue;
        }
        let (node, group) = (nodes[place], group_of[place]);
        let rows: Vec<Row> = rows_at(profile, value, rows, node).collect();
        for (slice, amount) in by_slice(amount, &rows) {
            let part = parts.entry((group, slice)).or_default();
            if amount > 0 {
                part.amounts.push((node, amount as u64));
                part.busy += if idle[place] { 0 } else { amount as u64 };
            }
        }
        for row in rows {
            let part = parts.entry((group, slice_index(&row))).or_default();
            part.rows.push(row);
        }
    }
    parts
}

/// The index of a row's slice; that of none is the largest.
fn slice_index(row: &Row) -> u16 {
    row.slice.wrapping_sub(1)
}

/// What each slice has of a node's value, in proportion to the node's rows.
fn by_slice(amount: i64, rows: &[Row]) -> Vec<(u16, i64)> {
    let has_amounts = rows.iter().any(|row| row.amount > 0);
    let mut weights: BTreeMap<u16, u128> = BTreeMap::new();
    for row in rows {
        let weight = if has_amounts {
            row.amount
        } else {
            u64::from(row.samples)
        };
        *weights.entry(slice_index(row)).or_default() += u128::from(weight);
    }
    let whole: u128 = weights.values().sum();
    if whole == 0 {
        return vec![(NO_SLICE, amount)];
    }
    let mut split = Split::new(amount as u128, whole);
    let weights = weights.into_iter();
    weights
        .map(|(slice, weight)| (slice, split.next(weight)))
        .collect()
}

/// Rows of a value, at a node of the union.
fn rows_at<'a>(
    profile: &Profile,
    value: usize,
    rows: &'a [Row],
    node: Node,
) -> impl Iterator<Item = Row> + 'a {
    let of = profile.times().map(|times| times.amounts_of(profile));
    let has_amounts = of == Some(value);
    rows.iter()
        .filter(|row| row.samples > 0)
        .map(move |row| Row {
            node,
            amount: if has_amounts { row.amount } else { 0 },
            ..*row
        })
}

/// The names of the `most` heaviest groups, and for each node the index of its group: one more than the last is
/// that of all others. First are those that are not idle all the time.
fn heaviest_threads(
    profile: &Profile,
    value: usize,
    most: usize,
    idle: &[bool],
) -> (Vec<String>, Vec<usize>) {
    let selves = profile.selves(value);
    let mut weights: HashMap<&str, (i64, i64), RandomState> = HashMap::default();
    let mut thread_of = vec![None; profile.tree.len()];
    for node in profile.tree.nodes() {
        let own = profile.thread_at(node);
        let thread = own.or(thread_of[profile.tree.parent(node) as usize]);
        thread_of[node as usize] = thread;
        if let Some(thread) = thread {
            let amount = selves[node as usize];
            let (busy, all) = weights.entry(thread).or_default();
            *busy += if idle[node as usize] { 0 } else { amount };
            *all += amount;
        }
    }
    let mut groups: Vec<(&str, (i64, i64))> = weights.into_iter().collect();
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
