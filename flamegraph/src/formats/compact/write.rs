//! Writing a compact profile.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::Compression;
use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::recent::{Recent, NOBODY};
use super::times::put_times;
use super::MAGIC;
use crate::formats::shared::shared_prefix;
use crate::profile::{Frame, Kind, ModuleTable, Order, Profile, Result, Step, ROOT};
use crate::source::wire::put_varint;

impl Profile {
    /// Writes the compact profile, the same bytes for the same profile; see `FORMAT.md`.
    pub fn write_compact(&self, mut out: impl Write) -> Result<()> {
        let times = self.times();
        out.write_all(MAGIC[usize::from(times.is_some())])?;
        let mut out = ZlibEncoder::new(out, Compression::default());
        let mut head = Vec::new();
        self.put_meanings(&mut head);
        let (numbers, names) = self.put_names(&mut head);
        out.write_all(&head)?;
        let order = Order::of(self);
        for column in self.compact_columns(&numbers, &order) {
            let mut length = Vec::new();
            put_varint(&mut length, column.len() as u64);
            out.write_all(&length)?;
            out.write_all(&column)?;
        }
        let mut modules = Vec::new();
        put_modules(&mut modules, &self.modules, &names);
        if let Some(times) = times {
            if modules.is_empty() {
                put_varint(&mut modules, 0);
            }
            let places = order.places();
            let mut in_file = times.moved(|node| places.get(node as usize).copied());
            if times.amounts_of(self) + 1 != self.values().len() {
                in_file = in_file.without_amounts();
            }
            put_times(&mut modules, &in_file);
        }
        out.write_all(&modules)?;
        out.finish()?.flush()?;
        Ok(())
    }

    /// Values and labels.
    fn put_meanings(&self, out: &mut Vec<u8>) {
        put_varint(out, self.values().len() as u64);
        for value in self.values() {
            put_text(out, value.name.as_bytes());
            put_text(out, value.unit.as_bytes());
        }
        put_varint(out, self.labels().len() as u64);
        for (name, text) in self.labels() {
            put_text(out, name.as_bytes());
            put_text(out, text.as_bytes());
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
            let shared = shared_prefix(text, before);
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
    fn compact_columns(&self, numbers: &[u32], order: &Order) -> Vec<Vec<u8>> {
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

/// The modules of some names: how many, each of them, and two pieces with a number for each name, as a native frame
/// and as one of the kernel: 0, or the place of its module, counted from 1. Nothing where no name has one.
pub(crate) fn put_modules(out: &mut Vec<u8>, modules: &ModuleTable, names: &[&str]) {
    let (mut texts, mut pieces) = (Vec::new(), Vec::new());
    let mut places: HashMap<&str, u64, RandomState> = HashMap::default();
    for kind in [Kind::Plain, Kind::Kernel] {
        let mut numbers = Vec::new();
        for module in names.iter().map(|name| modules.get(name, kind)) {
            let place = module.map(|module| {
                let next = places.len() as u64 + 1;
                *places.entry(module).or_insert_with(|| {
                    put_text(&mut texts, module.as_bytes());
                    next
                })
            });
            put_varint(&mut numbers, place.unwrap_or(0));
        }
        put_text(&mut pieces, &numbers);
    }
    if !places.is_empty() {
        put_varint(out, places.len() as u64);
        out.extend_from_slice(&texts);
        out.extend_from_slice(&pieces);
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}
