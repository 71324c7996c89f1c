//! Writing: frames first, then for each value its stacks and, in a second walk, their weights.

use std::io::Write;

use crate::formats::json::{put_labels, put_string, put_value, separate};
use crate::profile::{Frame, Node, Order, Profile, Result, Step, ROOT};

/// The number of bytes to buffer before writing.
const BLOCK_BYTES: usize = 64 << 10;

impl Profile {
    /// Writes speedscope's JSON as a stream, the same bytes for the same profile.
    ///
    /// A frame's kind is written after its name (`_[j]`).
    pub fn write_speedscope(&self, out: impl Write) -> Result<()> {
        let order = Order::of(self);
        let mut writer = Writer {
            profile: self,
            order: &order,
            block: Vec::new(),
            out,
        };
        let numbers = writer.put_head();
        for value in 0..self.values().len() {
            separate(&mut writer.block, value > 0);
            writer.write_profile(value, &numbers)?;
        }
        writer.block.extend_from_slice(b"]}\n");
        writer.out.write_all(&writer.block)?;
        writer.out.flush()?;
        Ok(())
    }
}

struct Writer<'a, W> {
    profile: &'a Profile,
    order: &'a Order,
    block: Vec<u8>,
    out: W,
}

impl<W: Write> Writer<'_, W> {
    /// Writes everything before the profiles; returns the frames' numbers by frame index.
    fn put_head(&mut self) -> Vec<u32> {
        let block = &mut self.block;
        let schema = "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"";
        block.extend_from_slice(schema.as_bytes());
        let version = env!("CARGO_PKG_VERSION");
        let _ = write!(block, ",\"exporter\":\"hprofiler {version}\",\"labels\":");
        put_labels(block, self.profile);
        block.extend_from_slice(b",\"shared\":{\"frames\":[");
        let numbers = put_frames(block, self.profile);
        block.extend_from_slice(b"]},\"profiles\":[");
        numbers
    }

    fn write_profile(&mut self, value: usize, numbers: &[u32]) -> Result<()> {
        let meaning = &self.profile.values()[value];
        let block = &mut self.block;
        block.extend_from_slice(b"{\"type\":\"sampled\",\"name\":");
        put_string(block, &meaning.to_string());
        block.extend_from_slice(b",\"unit\":");
        put_string(block, known_unit(&meaning.unit));
        let total = self.profile.total(value)?;
        let _ = write!(block, ",\"startValue\":0,\"endValue\":{total},\"value\":");
        put_value(block, meaning);
        block.extend_from_slice(b",\"samples\":[");
        let mut path = Vec::new();
        self.each_leaf(value, |profile, leaf, _, block| {
            path.clear();
            path.extend(callers(profile, leaf).map(|frame| numbers[frame.index()]));
            block.push(b'[');
            for (index, number) in path.iter().rev().enumerate() {
                separate(block, index > 0);
                let _ = write!(block, "{number}");
            }
            block.push(b']');
        })?;
        self.block.extend_from_slice(b"],\"weights\":[");
        self.each_leaf(value, |_, _, amount, block| {
            let _ = write!(block, "{amount}");
        })?;
        self.block.extend_from_slice(b"]}");
        Ok(())
    }

    /// Calls `put` for each node with self value, with commas between.
    fn each_leaf(
        &mut self,
        value: usize,
        mut put: impl FnMut(&Profile, Node, i64, &mut Vec<u8>),
    ) -> Result<()> {
        let amounts = self.profile.selves(value);
        let mut first = true;
        for step in self.order.walk() {
            let Step::Enter(node) = step else { continue };
            let amount = amounts[node as usize];
            if amount == 0 {
                continue;
            }
            separate(&mut self.block, !std::mem::take(&mut first));
            put(self.profile, node, amount, &mut self.block);
            if self.block.len() >= BLOCK_BYTES {
                self.out.write_all(&self.block)?;
                self.block.clear();
            }
        }
        Ok(())
    }
}

/// The frames in name order; returns their numbers by frame index.
fn put_frames(block: &mut Vec<u8>, profile: &Profile) -> Vec<u32> {
    let mut numbers = vec![0; profile.frames.index_len()];
    for (number, frame) in (0u32..).zip(profile.frames_in_order()) {
        numbers[frame.index()] = number;
        separate(block, number > 0);
        block.extend_from_slice(b"{\"name\":");
        let name = profile.frames.name_of(frame);
        put_string(block, &format!("{name}{}", frame.kind().suffix()));
        block.push(b'}');
    }
    numbers
}

/// The frames from a node to the root.
fn callers(profile: &Profile, leaf: Node) -> impl Iterator<Item = Frame> + '_ {
    let above = move |&node: &Node| Some(profile.tree.parent(node));
    std::iter::successors(Some(leaf), above)
        .take_while(|&node| node != ROOT)
        .map(|node| profile.tree.frame(node))
}

/// The unit if speedscope knows it, else `none`, a plain number.
fn known_unit(unit: &str) -> &str {
    match unit {
        "bytes" | "nanoseconds" | "microseconds" | "milliseconds" | "seconds" => unit,
        _ => "none",
    }
}
