//! Writing a compact profile.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::Compression;

use super::recent::{Recent, NOBODY};
use super::MAGIC;
use crate::error::Result;
use crate::frames::Frame;
use crate::profile::Profile;
use crate::tree::ROOT;
use crate::walk::{Order, Step};
use crate::wire::put_varint;

impl Profile {
    /// Writes the compact profile, the same bytes for the same profile; see `FORMAT.md`.
    pub fn write_compact(&self, mut out: impl Write) -> Result<()> {
        out.write_all(MAGIC)?;
        let mut out = ZlibEncoder::new(out, Compression::default());
        let mut head = Vec::new();
        self.put_meanings(&mut head);
        let (numbers, names) = self.put_names(&mut head);
        out.write_all(&head)?;
        for column in self.compact_columns(&numbers) {
            let mut length = Vec::new();
            put_varint(&mut length, column.len() as u64);
            out.write_all(&length)?;
            out.write_all(&column)?;
        }
        out.write_all(&self.modules.table_of(&names))?;
        out.finish()?.flush()?;
        Ok(())
    }

    /// Values and labels.
    fn put_meanings(&self, out: &mut Vec<u8>) {
        put_varint(out, self.values().len() as u64);
        for value in self.values() {
            put_text(out, &value.name);
            put_text(out, &value.unit);
        }
        put_varint(out, self.labels().len() as u64);
        for (name, text) in self.labels() {
            put_text(out, name);
            put_text(out, text);
        }
    }

    /// The names some frame has, in byte order; returns each name's number in the file, and the names.
    fn put_names(&self, out: &mut Vec<u8>) -> (Vec<u32>, Vec<&str>) {
        let ranks = self.frames.ranks();
        let mut used: Vec<u32> = self
            .used_frames()
            .iter()
            .map(|frame| frame.name())
            .collect();
        used.sort_unstable_by_key(|&name| ranks[name as usize]);
        used.dedup();
        put_varint(out, used.len() as u64);
        let mut numbers = vec![0; self.frames.len()];
        let names = used.iter().map(|&name| self.frames.name(name)).collect();
        let (mut shared_lengths, mut rest_lengths, mut rests) =
            (Vec::new(), Vec::new(), Vec::new());
        let mut before: &[u8] = &[];
        for (number, name) in (0..).zip(used) {
            numbers[name as usize] = number;
            let text = self.frames.name(name).as_bytes();
            let shared = text
                .iter()
                .zip(before)
                .take_while(|(one, other)| one == other)
                .count();
            put_varint(&mut shared_lengths, shared as u64);
            put_varint(&mut rest_lengths, (text.len() - shared) as u64);
            rests.extend_from_slice(&text[shared..]);
            before = text;
        }
        for part in [shared_lengths, rest_lengths, rests] {
            put_varint(out, part.len() as u64);
            out.extend_from_slice(&part);
        }
        (numbers, names)
    }

    /// Children, callees, new callees, then the values.
    fn compact_columns(&self, numbers: &[u32]) -> Vec<Vec<u8>> {
        let order = Order::of(self);
        let (mut children, mut callees, mut new) = (Vec::new(), Vec::new(), Vec::new());
        let mut values = vec![Vec::new(); self.values().len()];
        let mut recent = Recent::default();
        for step in order.walk() {
            let Step::Enter(node) = step else { continue };
            put_varint(&mut children, u64::from(order.child_count(node)));
            for (value, column) in values.iter_mut().enumerate() {
                put_varint(column, self.selves(value)[node as usize] as u64);
            }
            if node == ROOT {
                continue;
            }
            let number = |frame: Frame| {
                Frame::new(numbers[frame.name() as usize], frame.kind()).index() as u32
            };
            let callee = number(self.tree.frame(node));
            let caller = match self.tree.parent(node) {
                ROOT => NOBODY,
                parent => number(self.tree.frame(parent)),
            };
            match recent.place(caller, callee) {
                Some(place) => put_varint(&mut callees, place as u64 + 1),
                None => {
                    put_varint(&mut callees, 0);
                    put_varint(&mut new, u64::from(callee));
                }
            }
        }
        let mut columns = vec![children, callees, new];
        columns.append(&mut values);
        columns
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
