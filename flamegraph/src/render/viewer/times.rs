//! When the samples of columns were taken, in few bytes.

use std::io::Write;

use super::write::{write_number, write_piece};
use super::ViewerWriter;
use crate::profile::{Node, Result, Row};
use crate::source::wire::{put_varint, Numbers};

/// Most rows of a page.
pub(super) const MOST_ROWS: usize = 4_000_000;
/// There may be this many times as many rows before buckets are made longer.
const GROWTH: usize = 2;
/// Buckets are not made longer than this many microseconds.
const MOST_WIDTH: u64 = 80_000_000;
const HAS_AMOUNTS: u64 = 1;
const HAS_BANDS: u64 = 2;

/// The rows of one column; their slices are columns of their own.
pub(super) struct ColumnTimes {
    column: usize,
    /// Microseconds from the page's time zero to bucket 0.
    start: u64,
    /// Length of a bucket, in microseconds.
    width: u64,
    flags: u64,
    count: usize,
    /// For each row, by bucket, node and band: how far its bucket is from the one before; its node, or how far that is
    /// from the one before in the same bucket; samples; amount and band if the flags say so.
    bytes: Vec<u8>,
}

/// By bucket, node and band.
fn key(row: &Row) -> (u32, Node, u8) {
    (row.bucket, row.node, row.band)
}

impl ColumnTimes {
    /// Rows of the same place are added up.
    pub(super) fn of(column: usize, start: u64, width: u64, mut rows: Vec<Row>) -> ColumnTimes {
        rows.sort_unstable_by_key(key);
        rows.dedup_by(|row, kept| {
            let same = key(row) == key(kept);
            if same {
                kept.samples = kept.samples.saturating_add(row.samples);
                kept.amount = kept.amount.saturating_add(row.amount);
            }
            same
        });
        let amounts = rows.iter().any(|row| row.amount > 0);
        let bands = rows.iter().any(|row| row.band > 0);
        let flags = (HAS_AMOUNTS * u64::from(amounts)) | (HAS_BANDS * u64::from(bands));
        let mut bytes = Vec::new();
        let mut before = Row::default();
        for row in &rows {
            let step = row.bucket - before.bucket;
            put_varint(&mut bytes, u64::from(step));
            let from = if step == 0 { before.node } else { 0 };
            put_varint(&mut bytes, u64::from(row.node - from));
            put_varint(&mut bytes, u64::from(row.samples));
            if amounts {
                put_varint(&mut bytes, row.amount);
            }
            if bands {
                put_varint(&mut bytes, u64::from(row.band));
            }
            before = *row;
        }
        bytes.shrink_to_fit();
        ColumnTimes {
            column,
            start,
            width,
            flags,
            count: rows.len(),
            bytes,
        }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let mut numbers = Numbers::of(&self.bytes).map_while(|number| number);
        let mut row = Row::default();
        std::iter::from_fn(move || {
            let step = numbers.next()? as u32;
            let node = numbers.next()? as Node;
            row.node = if step == 0 { row.node + node } else { node };
            row.bucket += step;
            row.samples = numbers.next()? as u32;
            if self.flags & HAS_AMOUNTS > 0 {
                row.amount = numbers.next()?;
            }
            if self.flags & HAS_BANDS > 0 {
                row.band = numbers.next()? as u8;
            }
            Some(row)
        })
    }

    /// The same where nodes went to others.
    pub(super) fn moved(&self, went: &[Node]) -> ColumnTimes {
        let rows = self.rows().map(|row| Row {
            node: went[row.node as usize],
            ..row
        });
        ColumnTimes::of(self.column, self.start, self.width, rows.collect())
    }

    /// The same in longer buckets.
    fn widened(&self, width: u64) -> ColumnTimes {
        let rows = self.rows().map(|row| Row {
            bucket: (u128::from(row.bucket) * u128::from(self.width) / u128::from(width)) as u32,
            ..row
        });
        ColumnTimes::of(self.column, self.start, width, rows.collect())
    }

    /// The table as the data has it.
    pub(super) fn write(&self, out: &mut impl Write) -> Result<()> {
        let facts = [self.column as u64, self.start, self.width, self.flags];
        for number in facts.into_iter().chain([self.count as u64]) {
            write_number(out, number)?;
        }
        // A row's numbers are as the table has them, but there each kind of number stands by itself.
        let has = |flag: u64| usize::from(self.flags & flag > 0);
        let mut columns = vec![Vec::new(); 3 + has(HAS_AMOUNTS) + has(HAS_BANDS)];
        let numbers = Numbers::of(&self.bytes).map_while(|number| number);
        for (place, number) in (0..columns.len()).cycle().zip(numbers) {
            put_varint(&mut columns[place], number);
        }
        for column in &columns {
            write_piece(out, column)?;
        }
        Ok(())
    }
}

impl ViewerWriter {
    /// The length of all buckets in microseconds; None if no column has times, or they would be too many.
    pub fn bucket_width(&mut self) -> Option<u64> {
        self.fit_times();
        self.times.iter().map(|times| times.width).max()
    }

    /// Keeps the times of a column, which follow its nodes from now on.
    pub(super) fn keep_times(&mut self, times: ColumnTimes) {
        if times.count > 0 && !self.without_times {
            self.times.push(times);
        }
    }

    /// Makes buckets longer where there are far too many rows.
    pub(super) fn bound_times(&mut self) {
        if self.count_rows() > self.most_rows.saturating_mul(GROWTH) {
            self.fit_times();
        }
    }

    fn count_rows(&self) -> usize {
        self.times.iter().map(|times| times.count).sum()
    }

    /// Makes all buckets of the same length, and longer until there are at most so many rows. Where even very long ones
    /// are too many the page has no times.
    fn fit_times(&mut self) {
        let Some(mut width) = self.times.iter().map(|times| times.width).max() else {
            return;
        };
        loop {
            for times in self.times.iter_mut().filter(|times| times.width != width) {
                *times = times.widened(width);
            }
            if self.count_rows() <= self.most_rows {
                return;
            }
            if width >= MOST_WIDTH {
                self.times = Vec::new();
                self.without_times = true;
                return;
            }
            width *= 2;
        }
    }
}
