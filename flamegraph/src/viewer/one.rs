//! The viewer's compact data; `viewer/FORMAT.md` describes it.

use std::fmt::Write as _;
use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::Compression;

use crate::error::Result;
use crate::profile::Profile;
use crate::tree::ROOT;
use crate::walk::{Order, Step};
use crate::wire::put_varint;

const BLOCK_BYTES: usize = 64 << 10;
/// Higher levels take half as long again to save two in a hundred bytes.
const LEVEL: u32 = 3;

impl Profile {
    /// Writes the viewer's data, the same bytes for the same profile.
    pub fn write_viewer(&self, out: impl Write) -> Result<()> {
        let mut out = ZlibEncoder::new(out, Compression::new(LEVEL));
        let mut block = b"HPV1".to_vec();
        put_text(&mut block, &self.viewer_header());
        let frames = self.put_tables(&mut block);
        self.write_tree(&frames, &mut block, &mut out)?;
        out.write_all(&block)?;
        out.finish()?.flush()?;
        Ok(())
    }

    fn viewer_header(&self) -> String {
        let values: Vec<String> = self
            .values()
            .iter()
            .map(|value| {
                format!(
                    "{{\"type\":{},\"unit\":{}}}",
                    json(&value.name),
                    json(&value.unit)
                )
            })
            .collect();
        let labels: Vec<String> = self
            .labels()
            .iter()
            .map(|(name, value)| format!("{}:{}", json(name), json(value)))
            .collect();
        format!(
            "{{\"values\":[{}],\"labels\":{{{}}}}}",
            values.join(","),
            labels.join(",")
        )
    }

    /// Names and frames in name order; returns each frame's number in the data, by frame index.
    fn put_tables(&self, block: &mut Vec<u8>) -> Vec<u32> {
        let ranks = self.frames.ranks();
        let mut by_rank = vec![0; ranks.len()];
        for (name, &rank) in ranks.iter().enumerate() {
            by_rank[rank as usize] = name as u32;
        }
        put_varint(block, by_rank.len() as u64);
        for &name in &by_rank {
            put_text(block, self.frames.name(name));
        }
        let mut used: Vec<_> = self.used_frames();
        used.sort_unstable_by_key(|frame| (ranks[frame.name() as usize], frame.kind()));
        put_varint(block, used.len() as u64);
        let mut numbers = vec![0; self.frames.index_len()];
        for (number, frame) in (0..).zip(used) {
            numbers[frame.index()] = number;
            put_varint(block, u64::from(ranks[frame.name() as usize]));
            put_varint(block, frame.kind() as u64);
        }
        numbers
    }

    fn write_tree(&self, frames: &[u32], block: &mut Vec<u8>, out: &mut impl Write) -> Result<()> {
        let order = Order::of(self);
        put_varint(block, self.tree.len() as u64);
        for step in order.walk() {
            let Step::Enter(node) = step else { continue };
            let frame = if node == ROOT {
                0
            } else {
                frames[self.tree.frame(node).index()] + 1
            };
            put_varint(block, u64::from(frame));
            put_varint(block, u64::from(order.child_count(node)));
            for value in 0..self.values().len() {
                put_varint(block, self.selves(value)[node as usize] as u64);
            }
            if block.len() >= BLOCK_BYTES {
                out.write_all(block)?;
                block.clear();
            }
        }
        Ok(())
    }
}

fn put_text(block: &mut Vec<u8>, text: &str) {
    put_varint(block, text.len() as u64);
    block.extend_from_slice(text.as_bytes());
}

/// A JSON string.
fn json(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if (control as u32) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
