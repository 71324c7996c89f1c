//! The tree and the columns as bytes.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::Compression;

use super::{Column, ViewerWriter};
use crate::formats::put_modules;
use crate::formats::shared::shared_prefix;
use crate::ops::waiting::{counts_locks, counts_waits, Waiters};
use crate::ops::Waiter;
use crate::profile::{Node, Result};
use crate::source::wire::put_varint;
use crate::source::write_by_thread;

const MAGIC: &[u8] = b"HPV4";
/// 6 makes the data 1 % smaller, and its writing a third longer.
const LEVEL: u32 = 4;

impl ViewerWriter {
    /// Writes the data, the same bytes for the same profiles in the same order. If there are too many nodes the
    /// thinnest subtrees are put together first, each parent's into one frame `(N smaller frames)`; totals stay
    /// exact. Of events of waits it says what threads wait for.
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
        let (frames, modules) = self.put_tables(&mut head);
        out.write_all(&head)?;
        self.write_tree(&frames, out)?;
        self.write_columns(out)?;
        self.write_times(out)?;
        out.write_all(&modules)?;
        let waits = self.waits();
        if waits.is_empty() {
            return Ok(());
        }
        if modules.is_empty() {
            write_number(out, 0)?;
        }
        write_waits(&waits, out)
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

fn write_waits(waits: &BTreeMap<Node, Waiter>, out: &mut impl Write) -> Result<()> {
    let mut pieces = [Vec::new(), Vec::new(), Vec::new()];
    let mut before = 0;
    for (&node, waiter) in waits {
        put_varint(&mut pieces[0], u64::from(node - before));
        put_varint(&mut pieces[1], u64::from(waiter.does));
        put_varint(&mut pieces[2], u64::from(waiter.above));
        before = node;
    }
    write_number(out, waits.len() as u64)?;
    pieces.iter().try_for_each(|piece| write_piece(out, piece))
}

impl ViewerWriter {
    /// What threads do whose stacks end in a node, where they wait.
    fn waits(&self) -> BTreeMap<Node, Waiter> {
        let mut waiters = Waiters::default();
        let mut waits = BTreeMap::new();
        for column in &self.columns {
            let event = &self.events[column.event];
            if !counts_waits(event) {
                continue;
            }
            let locks = counts_locks(event);
            for (node, _) in column.entries() {
                waits.entry(node).or_insert_with(|| match locks {
                    true => waiters.of_lock(&self.union, node),
                    false => waiters.of(&self.union, node),
                });
            }
        }
        waits.retain(|_, waiter| *waiter != Waiter::default());
        waits
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
