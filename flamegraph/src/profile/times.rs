//! When samples were taken: for each stack, how many in each short span of time.

use std::collections::HashMap;

use crate::profile::{Error, Node, Profile, Result};

/// The usual length of a bucket, in microseconds.
pub const BUCKET: u64 = 20_000;
/// Buckets become so long before slices or bands are left out.
const LONG: u64 = 64 * BUCKET;

/// The samples of one stack in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The node whose self value it is part of.
    pub node: Node,
    /// Half-open: from `bucket * width` to `(bucket + 1) * width` microseconds after the start.
    pub bucket: u32,
    /// 0: of none; else one more than the slice's index in [`Times::slices`].
    pub slice: u16,
    /// How long each lasted: 0 if unknown or below 1 µs, else from 2^(band - 1) to 2^band microseconds.
    pub band: u8,
    /// How many there are.
    pub samples: u32,
    /// What they amount to, in the unit of the value that [`Times::amounts_of`] says; 0 in all rows where each sample
    /// stands for the same.
    pub amount: u64,
}

impl Row {
    /// Whether each of the samples amounts to `each`.
    pub(crate) fn is_worth(&self, each: u64) -> bool {
        u64::from(self.samples).checked_mul(each) == Some(self.amount)
    }

    /// All but what is counted.
    fn key(&self) -> (Node, u32, u16, u8) {
        (self.node, self.bucket, self.slice, self.band)
    }
}

/// A part of the job to which samples belong, such as a stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Such as `stage 3.0`.
    pub name: String,
    /// Whether the samples belong to it for certain, or only likely.
    pub certain: bool,
}

/// A thread by the numbers that the kernel and the JVM gave it; 0 where one is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadId {
    /// The kernel's number, as the process sees it.
    pub native: u64,
    /// What `Thread.getId` returns.
    pub java: u64,
}

/// Finds the slice of a sample.
pub trait SliceOf: std::fmt::Debug + Send + Sync {
    /// The slices there are.
    fn slices(&self) -> Vec<Slice>;

    /// The slice of a thread at a moment, in microseconds since 1970 on the host's clock: a number as in [`Row::slice`].
    fn slice(&self, thread: ThreadId, microseconds: i64) -> u16;
}

/// The times of a profile's samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// When bucket 0 begins, in microseconds since 1970.
    pub start: i64,
    /// Length of a bucket, in microseconds.
    pub width: u64,
    /// What rows refer to by number.
    pub slices: Vec<Slice>,
    /// By node, bucket, slice and band, each once.
    rows: Vec<Row>,
    /// The profile's value that amounts are of, if it is not the last.
    value: Option<usize>,
    /// What rows do not say because there would be too many; known only where they were collected.
    left_out: LeftOut,
}

/// What was left out of the rows of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// To which slices samples belong.
    pub slices: bool,
    /// How long each sample lasted.
    pub bands: bool,
}

/// The band of a duration in nanoseconds.
pub fn band_of(nanoseconds: u64) -> u8 {
    (u64::BITS - (nanoseconds / 1000).leading_zeros()) as u8
}

impl Times {
    /// Puts rows in order, and those of the same place together.
    pub fn new(start: i64, width: u64, slices: Vec<Slice>, mut rows: Vec<Row>) -> Times {
        add_up(&mut rows);
        Times {
            start,
            width,
            slices,
            rows,
            value: None,
            left_out: LeftOut::default(),
        }
    }

    /// What was left out when they were collected.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Which of a profile's values amounts are of: the last, unless values were selected.
    pub fn amounts_of(&self, profile: &Profile) -> usize {
        self.value
            .unwrap_or(profile.values().len().saturating_sub(1))
    }

    /// Says which value amounts are of; None: the last.
    pub(crate) fn set_amounts_of(&mut self, value: Option<usize>) {
        self.value = value;
    }

    /// By node, bucket, slice and band, each once.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether samples differ in what they amount to.
    pub fn has_amounts(&self) -> bool {
        self.rows.iter().any(|row| row.amount > 0)
    }

    /// The same times of a profile in which a node became another; rows of a node that is none now are left out.
    pub(crate) fn moved(&self, to: impl Fn(Node) -> Option<Node>) -> Times {
        self.with_rows(self.rows.iter().filter_map(|row| {
            let node = to(row.node)?;
            Some(Row { node, ..*row })
        }))
    }

    /// Other rows of the same buckets and slices.
    pub(crate) fn with_rows(&self, rows: impl Iterator<Item = Row>) -> Times {
        Times {
            value: self.value,
            left_out: self.left_out,
            ..Times::new(self.start, self.width, self.slices.clone(), rows.collect())
        }
    }

    /// The same times without the buckets before `first`, which becomes the first one.
    pub(crate) fn beginning_at(&self, first: u32) -> Times {
        let rows = self.rows.iter().filter(|row| row.bucket >= first);
        let rows = rows.map(|row| Row {
            bucket: row.bucket - first,
            ..*row
        });
        let skipped =
            i64::try_from(self.width.saturating_mul(u64::from(first))).unwrap_or(i64::MAX);
        Times {
            start: self.start.saturating_add(skipped),
            ..self.with_rows(rows)
        }
    }

    /// The same times where each sample stands for the same.
    pub(crate) fn without_amounts(&self) -> Times {
        self.with_rows(self.rows.iter().map(|row| Row { amount: 0, ..*row }))
    }

    /// The same times where slices have other names; those that become the same are one, those without a name none.
    pub(crate) fn renamed(&self, name: impl Fn(&str) -> Option<String>) -> Times {
        let mut slices: Vec<Slice> = Vec::new();
        let mut places: HashMap<Slice, u16> = HashMap::new();
        let mut numbers = vec![0];
        for slice in &self.slices {
            let name = name(&slice.name).unwrap_or_else(|| slice.name.clone());
            if name.is_empty() {
                numbers.push(0);
                continue;
            }
            let certain = slice.certain;
            let slice = Slice { name, certain };
            numbers.push(*places.entry(slice).or_insert_with_key(|slice| {
                slices.push(slice.clone());
                slices.len() as u16
            }));
        }
        let rows = self.rows.iter().map(|row| Row {
            slice: numbers[usize::from(row.slice)],
            ..*row
        });
        Times {
            slices,
            ..self.with_rows(rows)
        }
    }

    /// The same times where rows of some nodes get slices by their buckets: `ranges` are half-open, in order and apart,
    /// each with a number in `slices`, counted from 1. A row that has a slice keeps it, unless only the new one is certain.
    pub(crate) fn assigned(
        &self,
        nodes: &[bool],
        slices: &[Slice],
        ranges: &[(u32, u32, u16)],
    ) -> Result<Times> {
        let mut all = self.slices.clone();
        let mut places: HashMap<Slice, usize> = all.iter().cloned().zip(1..).collect();
        let mut numbers = vec![0];
        for slice in slices {
            numbers.push(*places.entry(slice.clone()).or_insert_with(|| {
                all.push(slice.clone());
                all.len()
            }));
        }
        if all.len() > usize::from(u16::MAX) {
            return Err(Error::Usage("too many slices".to_string()));
        }
        let is_certain = |number: u16| number > 0 && all[usize::from(number) - 1].certain;
        let mut rows = self.rows.clone();
        for row in rows.iter_mut().filter(|row| nodes[row.node as usize]) {
            let after = ranges.partition_point(|range| range.0 <= row.bucket);
            let covering = after.checked_sub(1).map(|place| ranges[place]);
            let Some((_, _, number)) = covering.filter(|range| row.bucket < range.1) else {
                continue;
            };
            let number = numbers.get(usize::from(number)).copied().unwrap_or(0) as u16;
            if row.slice == 0 || (is_certain(number) && !is_certain(row.slice)) {
                row.slice = number;
            }
        }
        Ok(Times {
            slices: all,
            ..self.with_rows(rows.into_iter())
        })
    }

    /// The buckets in a half-open range of microseconds since 1970: those that begin in it.
    pub fn buckets(&self, from: i64, to: i64) -> std::ops::Range<u32> {
        let bucket = |time: i64| {
            let since = i128::from(time) - i128::from(self.start);
            let width = i128::from(self.width);
            let above = since.div_euclid(width) + i128::from(since.rem_euclid(width) > 0);
            above.clamp(0, i128::from(u32::MAX)) as u32
        };
        bucket(from)..bucket(to)
    }
}

/// Sorts rows and adds up those of the same place.
fn add_up(rows: &mut Vec<Row>) {
    let mut pairs = rows.windows(2);
    if pairs.all(|pair| pair[0].key() < pair[1].key()) {
        return;
    }
    deal_by_node(rows);
    for of_node in rows.chunk_by_mut(|row, next| row.node == next.node) {
        of_node.sort_unstable_by_key(Row::key);
    }
    rows.dedup_by(|row, kept| {
        let same = row.key() == kept.key();
        if same {
            kept.samples = kept.samples.saturating_add(row.samples);
            kept.amount = kept.amount.saturating_add(row.amount);
        }
        same
    });
}

/// Puts the rows of each node together, in the order of nodes; much faster than to sort them all by comparing.
fn deal_by_node(rows: &mut Vec<Row>) {
    let nodes = rows.iter().map(|row| row.node as usize + 1).max();
    let nodes = nodes.unwrap_or(0);
    if nodes > 4 * rows.len() + 1024 {
        return rows.sort_unstable_by_key(|row| row.node);
    }
    let mut places = vec![0u32; nodes + 1];
    for row in rows.iter() {
        places[row.node as usize + 1] += 1;
    }
    for node in 0..nodes {
        places[node + 1] += places[node];
    }
    let mut dealt = vec![Row::default(); rows.len()];
    for row in rows.iter() {
        let place = &mut places[row.node as usize];
        dealt[*place as usize] = *row;
        *place += 1;
    }
    *rows = dealt;
}

/// Collects rows of several events in bounded memory: where there are too many, buckets become twice as long. Where long
/// buckets do not help, because each stack has many slices or bands, these are left out.
pub struct TimesBuilder {
    most: usize,
    /// How many rows were added, those of the same place not yet put together.
    rows: usize,
    events: Vec<Collected>,
}

/// The rows of an event.
struct Collected {
    width: u64,
    rows: Vec<Row>,
    left_out: LeftOut,
}

impl TimesBuilder {
    /// Keeps at most `most` rows of so many events, and for a moment twice as many.
    pub fn new(most: usize, events: usize) -> TimesBuilder {
        let collected = || Collected {
            width: BUCKET,
            rows: Vec::new(),
            left_out: LeftOut::default(),
        };
        TimesBuilder {
            most: most.max(1),
            rows: 0,
            events: std::iter::repeat_with(collected).take(events).collect(),
        }
    }

    /// For rows of one event that are of buckets already.
    pub(crate) fn of_width(most: usize, width: u64) -> TimesBuilder {
        let mut builder = TimesBuilder::new(most, 1);
        builder.events[0].width = width.max(1);
        builder
    }

    /// Adds samples of one moment, in microseconds since the start. `row.bucket` is set here.
    #[inline]
    pub fn add(&mut self, event: usize, microseconds: i64, row: Row) {
        let collected = &mut self.events[event];
        let bucket = microseconds.max(0) as u64 / collected.width;
        collected.rows.push(collected.left_out.of(Row {
            bucket: u32::try_from(bucket).unwrap_or(u32::MAX),
            ..row
        }));
        self.rows += 1;
        if self.rows >= self.most.saturating_mul(2) {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        for collected in &mut self.events {
            add_up(&mut collected.rows);
        }
        loop {
            self.rows = self.events.iter().map(|event| event.rows.len()).sum();
            // Without anything else there are as many rows as stacks, which are bounded elsewhere.
            let events = self.events.iter_mut().filter(|event| event.can_shrink());
            match events.max_by_key(|event| event.rows.len()) {
                Some(largest) if self.rows > self.most => largest.shrink(),
                _ => return,
            }
        }
    }

    /// Whether an event has no rows.
    pub fn is_empty(&self, event: usize) -> bool {
        self.events[event].rows.is_empty()
    }

    /// Gives the rows' nodes other numbers.
    pub fn renumber(&mut self, node: impl Fn(Node) -> Node) {
        for row in self.events.iter_mut().flat_map(|event| &mut event.rows) {
            row.node = node(row.node);
        }
    }

    /// The times of an event; `node` finds the node of what was added as one, None to leave it out.
    pub fn times(
        &mut self,
        event: usize,
        start: i64,
        slices: Vec<Slice>,
        node: impl Fn(Node) -> Option<Node>,
    ) -> Times {
        if self.rows > self.most {
            self.shrink();
        }
        let collected = &self.events[event];
        let rows = collected.rows.iter().filter_map(|row| {
            let node = node(row.node)?;
            Some(Row { node, ..*row })
        });
        let times = Times {
            left_out: collected.left_out,
            ..Times::new(start, collected.width, slices, rows.collect())
        };
        let sum: u128 = times.rows.iter().map(|row| u128::from(row.amount)).sum();
        // A value, whose sum fits, was cut off there.
        match i64::try_from(sum) {
            Ok(_) => times,
            Err(_) => times.without_amounts(),
        }
    }
}

impl LeftOut {
    fn of(self, row: Row) -> Row {
        Row {
            slice: if self.slices { 0 } else { row.slice },
            band: if self.bands { 0 } else { row.band },
            ..row
        }
    }
}

impl Collected {
    fn can_shrink(&self) -> bool {
        let says_more = |row: &Row| row.bucket > 0 || row.slice > 0 || row.band > 0;
        self.rows.iter().any(says_more)
    }

    /// Makes rows fewer. Slices, then bands, are left out if at most half of the rows stay, or nothing else helps.
    fn shrink(&mut self) {
        let is_one_bucket = self.rows.iter().all(|row| row.bucket == 0);
        let LeftOut { slices, bands } = self.left_out;
        let parts = [
            LeftOut {
                slices: true,
                bands,
            },
            LeftOut {
                slices,
                bands: true,
            },
        ];
        let has = |part: &LeftOut| self.rows.iter().any(|&row| part.of(row) != row);
        let may_leave_out = self.width >= LONG || is_one_bucket;
        for left_out in parts.into_iter().filter(|part| may_leave_out && has(part)) {
            let mut rows: Vec<Row> = self.rows.iter().map(|&row| left_out.of(row)).collect();
            add_up(&mut rows);
            if is_one_bucket || rows.len() <= self.rows.len() / 2 {
                self.rows = rows;
                self.left_out = left_out;
                return;
            }
        }
        self.widen();
    }

    fn widen(&mut self) {
        self.width *= 2;
        for row in &mut self.rows {
            row.bucket /= 2;
        }
        add_up(&mut self.rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(node: Node, samples: u32) -> Row {
        Row {
            node,
            samples,
            ..Row::default()
        }
    }

    #[test]
    fn a_bucket_is_half_open() {
        let mut times = TimesBuilder::new(9, 1);
        for moment in [0, 19_999, 20_000, 39_999, -5] {
            times.add(0, moment, row(1, 1));
        }
        let times = times.times(0, 1000, Vec::new(), Some);
        let counts: Vec<(u32, u32)> = times
            .rows()
            .iter()
            .map(|row| (row.bucket, row.samples))
            .collect();
        assert_eq!(counts, [(0, 3), (1, 2)]);
        assert_eq!(times.buckets(1000, 21_000), 0..1);
        assert_eq!(times.buckets(1001, 21_001), 1..2);
        assert_eq!(times.buckets(-9, i64::MAX), 0..u32::MAX);
    }

    #[test]
    fn buckets_become_longer_where_there_are_too_many() {
        let mut builder = TimesBuilder::new(9, 2);
        builder.add(1, 20_000, row(1, 1));
        for moment in 0..64 {
            builder.add(0, moment * 20_000, row(1, 1));
        }
        let mut times = |event| builder.times(event, 0, Vec::new(), Some);
        assert_eq!(times(0).width, 8 * BUCKET);
        assert_eq!(times(0).rows().len(), 8);
        assert!(times(0).rows().iter().all(|row| row.samples == 8));
        assert_eq!(
            times(1).width,
            BUCKET,
            "those of the event with few rows stay"
        );
    }

    #[test]
    fn many_slices_and_bands_are_left_out_and_the_times_stay() {
        // Each sample of a stack belongs to another task, as in Spark before 3.1.
        let by_task: fn(u16) -> Row = |number| Row {
            slice: number,
            ..row(1, 1)
        };
        let by_band: fn(u16) -> Row = |number| Row {
            band: number as u8 % 40,
            ..row(1, 1)
        };
        for (of, slices, bands) in [(by_task, true, false), (by_band, false, true)] {
            let mut builder = TimesBuilder::new(100, 1);
            for number in 0..4000 {
                builder.add(0, i64::from(number) * 20_000, of(number));
            }
            let times = builder.times(0, 0, Vec::new(), Some);
            assert_eq!(times.left_out(), LeftOut { slices, bands });
            assert_eq!(times.width, LONG);
            assert!(times.rows().len() <= 100);
            assert!(times.rows()[..62].iter().all(|row| row.samples == 64));
        }
        let mut builder = TimesBuilder::new(100, 1);
        for number in 0..1000 {
            builder.add(0, 0, by_task(number));
        }
        let times = builder.times(0, 0, Vec::new(), Some);
        assert_eq!(times.rows(), [row(1, 1000)]);
    }

    #[test]
    fn slices_that_get_the_same_name_are_one() {
        let slice = |name: &str| Slice {
            name: name.to_string(),
            certain: true,
        };
        let rows = (0..5).map(|slice| Row { slice, ..row(1, 1) });
        let known = ["task 1", "task 2", "unknown", "other"].map(slice);
        let times = Times::new(0, 10, known.to_vec(), rows.collect());
        let times = times.renamed(|name| match name {
            "unknown" => Some(String::new()),
            _ => name.starts_with("task").then(|| "stage".to_string()),
        });
        assert_eq!(times.slices, ["stage", "other"].map(slice));
        let counts: Vec<(u16, u32)> = times
            .rows()
            .iter()
            .map(|row| (row.slice, row.samples))
            .collect();
        assert_eq!(counts, [(0, 2), (1, 2), (2, 1)]);
    }

    #[test]
    fn rows_get_slices_by_their_buckets() {
        let slice = |name: &str, certain| Slice {
            name: name.to_string(),
            certain,
        };
        let at = |node, bucket, slice| Row {
            bucket,
            slice,
            ..row(node, 1)
        };
        let rows = [0, 2, 4, 5].map(|bucket| at(1, bucket, 0));
        let named = [at(1, 3, 1), at(1, 9, 1), at(2, 2, 0), at(1, 10, 2)];
        let known = vec![slice("b", false), slice("c", true)];
        let times = Times::new(0, 10, known, [rows, named].concat());
        let slices = [slice("a", true), slice("b", false)];
        let ranges = [(2, 4, 1), (4, 5, 2), (9, 11, 1)];
        let times = times.assigned(&[true, true, false], &slices, &ranges);
        let times = times.unwrap();
        assert_eq!(times.slices.len(), 3);
        let found: Vec<(u32, &str)> = times
            .rows()
            .iter()
            .filter(|row| row.node == 1 && row.slice > 0)
            .map(|row| (row.bucket, &*times.slices[usize::from(row.slice) - 1].name))
            .collect();
        assert_eq!(found, [(2, "a"), (3, "a"), (4, "b"), (9, "a"), (10, "c")]);
        assert!(times
            .rows()
            .iter()
            .all(|row| row.node == 1 || row.slice == 0));
    }

    #[test]
    fn bands_are_powers_of_two_of_microseconds() {
        let bands = [0, 999, 1000, 1999, 2000, 4000, 1_000_000].map(band_of);
        assert_eq!(bands, [0, 0, 1, 1, 2, 3, 10]);
    }
}
