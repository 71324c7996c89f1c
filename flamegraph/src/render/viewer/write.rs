//! The tree and the columns as bytes.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::Compression;

use super::{Column, ViewerWriter};
use crate::formats::put_modules;
use crate::formats::shared::shared_prefix;
use crate::ops::waits::waits_of_nodes;
use crate::profile::Result;
use crate::source::wire::put_varint;
use crate::source::write_by_thread;

const MAGIC: &[u8] = b"HPV4";
/// 6 makes the data 1 % smaller, and its writing a third longer.
const LEVEL: u32 = 4;
/// Values of stacks that say what a thread waits for.
const OF_WAITS: [&str; 2] = ["wall", "offcpu"];

impl ViewerWriter {
    /// Writes the data, the same bytes for the same profiles in the same order. If there are too many nodes the
    /// thinnest subtrees are put together first, each parent's into one frame `(N smaller frames)`; totals stay
    /// exact.
    pub fn finish(&mut self, mut out: impl Write) -> Result<()> {
        self.keep_most(self.most_nodes)?;
        self.bucket_width();
        let deflated = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
        let deflated = write_by_thread(deflated, |mut pieces| self.write(&mut pieces))?;
        out.write_all(&deflated.finish()?)?;
        out.flush()?;
        Ok(())
    }

    fn write(&self, out: &mut impl Write) -> Result<()> {
        let mut head = MAGIC.to_vec();
        let (frames, mut modules) = self.put_tables(&mut head);
        out.write_all(&head)?;
        self.write_tree(&frames, out)?;
        self.write_columns(out)?;
        self.write_times(out)?;
        let waits = self
            .events
            .iter()
            .any(|event| OF_WAITS.contains(&event.name.as_str()));
        if waits && modules.is_empty() {
            put_varint(&mut modules, 0);
        }
        out.write_all(&modules)?;
        if waits {
            write_piece(out, &self.waits())?;
        }
        Ok(())
    }

    /// What the stacks that end in each node wait for.
    fn waits(&self) -> Vec<u8> {
        let mut ends = vec![false; self.union.tree.len()];
        for (node, _) in self.columns.iter().flat_map(Column::entries) {
            ends[node as usize] = true;
        }
        waits_of_nodes(&self.union.frames, &self.union.tree, &ends)
    }

    /// Names and frames in name order; returns each frame's number in the data, by frame index, and the names' modules.
    fn put_tables(&self, head: &mut Vec<u8>) -> (Vec<u32>, Vec<u8>) {
        let frames = &self.union.frames;
        put_varint(head, frames.len() as u64);
        let mut before: &[u8] = b"";
        for name in frames.all().map(str::as_bytes) {
            let same = shared_prefix(before, name);
            put_varint(head, same as u64);
            put_piece(head, &name[same..]);
            before = name;
        }
        let mut modules = Vec::new();
        let names: Vec<&str> = frames.all().collect();
        put_modules(&mut modules, &self.union.modules, &names);
        let used = self.union.used_frames();
        put_varint(head, used.len() as u64);
        let mut numbers = vec![0; frames.index_len()];
        for (number, frame) in (0..).zip(used) {
            numbers[frame.index()] = number;
            put_varint(head, u64::from(frame.name()));
            put_varint(head, frame.kind() as u64);
        }
        (numbers, modules)
    }

    fn write_tree(&self, frames: &[u32], out: &mut impl Write) -> Result<()> {
        let tree = &self.union.tree;
        let mut counts = vec![0u32; tree.len()];
        let mut numbers = Vec::with_capacity(2 * tree.len());
        for node in tree.nodes() {
            counts[tree.parent(node) as usize] += 1;
            put_varint(&mut numbers, u64::from(frames[tree.frame(node).index()]));
        }
        let mut children = Vec::with_capacity(counts.len());
        for count in counts {
            put_varint(&mut children, u64::from(count));
        }
        write_number(out, tree.len() as u64)?;
        write_piece(out, &numbers)?;
        write_piece(out, &children)
    }

    fn write_columns(&self, out: &mut impl Write) -> Result<()> {
        write_number(out, self.columns.len() as u64)?;
        for column in &self.columns {
            write_column(column, out)?;
        }
        Ok(())
    }

    fn write_times(&self, out: &mut impl Write) -> Result<()> {
        write_number(out, self.times.len() as u64)?;
        for times in &self.times {
            times.write(out)?;
        }
        Ok(())
    }
}

fn write_column(column: &Column, out: &mut impl Write) -> Result<()> {
    let (mut nodes, mut values) = (Vec::new(), Vec::new());
    let (mut before, mut count) = (0, 0);
    for (node, value) in column.entries() {
        put_varint(&mut nodes, u64::from(node - before));
        put_varint(&mut values, value);
        before = node;
        count += 1;
    }
    write_number(out, count)?;
    write_piece(out, &nodes)?;
    write_piece(out, &values)
}

fn put_piece(out: &mut Vec<u8>, piece: &[u8]) {
    put_varint(out, piece.len() as u64);
    out.extend_from_slice(piece);
}

pub(super) fn write_piece(out: &mut impl Write, piece: &[u8]) -> Result<()> {
    write_number(out, piece.len() as u64)?;
    out.write_all(piece)?;
    Ok(())
}

pub(super) fn write_number(out: &mut impl Write, number: u64) -> Result<()> {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, number);
    out.write_all(&bytes)?;
    Ok(())
}
