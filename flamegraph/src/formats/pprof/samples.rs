//! The samples of a pprof message, decoded one by one into a reused buffer.

use super::tables::{check_inner_bytes, damaged, Locations, Part};
use crate::formats::pprof::proto::sample_field;
use crate::formats::shared::shared_suffix;
use crate::profile::{Error, Frame, Kind, Limits, Node, Profile, Result, ROOT};
use crate::source::wire::{Fields, Numbers, Value};

/// More labels than any real sample has.
const MOST_LABELS: usize = 256;

/// One sample as it is in the message.
#[derive(Default)]
pub(super) struct Sample<'a> {
    /// Its packed locations, leaf first, if they are one field ...
    packed: &'a [u8],
    /// ... and otherwise one by one.
    locations: Vec<u64>,
    values: Vec<i64>,
    pub(super) labels: Vec<&'a [u8]>,
    /// The labels as they are in the message, if no other field follows.
    label_bytes: &'a [u8],
    /// It has no labels.
    is_unlabelled: bool,
}

impl<'a> Sample<'a> {
    /// Replaces the previous sample. Returns whether the labels changed: most samples repeat them, and then `labels`
    /// stays unchanged.
    pub(super) fn read(&mut self, bytes: &'a [u8], number: usize) -> Result<bool> {
        check_inner_bytes(bytes, "sample", number)?;
        self.packed = &[];
        self.locations.clear();
        self.values.clear();
        let mut label_bytes: Option<&[u8]> = None;
        let mut fields = Fields::of(bytes);
        loop {
            let rest = fields.rest();
            if label_bytes.is_none() && !rest.is_empty() && rest == self.label_bytes {
                self.unpack_beside(number)?;
                return Ok(false);
            }
            let Some(found) = fields.next() else { break };
            let (field, value) = found.map_err(|_| wrong(number, "damaged or truncated"))?;
            match label_bytes {
                None if field == sample_field::LABEL => {
                    self.labels.clear();
                    label_bytes = Some(rest);
                }
                Some(_) if field != sample_field::LABEL => label_bytes = Some(&[]),
                _ => {}
            }
            self.take(field, value, number)?;
        }
        let was_unlabelled = std::mem::replace(&mut self.is_unlabelled, label_bytes.is_none());
        if self.is_unlabelled {
            self.labels.clear();
        }
        self.label_bytes = label_bytes.unwrap_or_default();
        self.unpack_beside(number)?;
        Ok(!(was_unlabelled && self.is_unlabelled))
    }

    fn take(&mut self, field: u64, value: Value<'a>, number: usize) -> Result<()> {
        match (field, value) {
            (sample_field::LOCATION, Value::Number(id)) => {
                self.unpack(number)?;
                self.locations.push(id);
            }
            (sample_field::LOCATION, Value::Bytes(packed)) => {
                let is_only = self.packed.is_empty() && self.locations.is_empty();
                if !is_only {
                    self.unpack(number)?;
                }
                self.packed = packed;
            }
            (sample_field::VALUE, Value::Number(value)) => self.values.push(value as i64),
            (sample_field::VALUE, Value::Bytes(packed)) => {
                for value in Numbers::of(packed) {
                    let value = value.ok_or_else(|| wrong(number, "a damaged value"))?;
                    self.values.push(value as i64);
                }
            }
            (sample_field::LABEL, Value::Bytes(_)) if self.labels.len() == MOST_LABELS => {
                return Err(wrong(number, &format!("more than {MOST_LABELS} labels")));
            }
            (sample_field::LABEL, Value::Bytes(label)) => self.labels.push(label),
            (sample_field::LOCATION..=sample_field::LABEL, _) => {
                return Err(wrong(number, "a field of another type"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Moves packed locations to the single ones, if there are any.
    fn unpack_beside(&mut self, number: usize) -> Result<()> {
        if self.locations.is_empty() {
            return Ok(());
        }
        self.unpack(number)
    }

    /// Moves packed locations to the single ones.
    fn unpack(&mut self, number: usize) -> Result<()> {
        for id in Numbers::of(std::mem::take(&mut self.packed)) {
            let id = id.ok_or_else(|| wrong(number, "a damaged location"))?;
            self.locations.push(id);
        }
        Ok(())
    }
}

fn wrong(number: usize, what: &str) -> Error {
    damaged(format!("sample {number}: {what}"))
}

/// The path to one location of a stack.
struct Way {
    node: Node,
    /// The packed bytes of the location and its callers.
    packed: usize,
    /// The length of the path as folded text.
    bytes: u64,
    cut: Cut,
}

/// How far a stack is from where the profile's `drop_frames` cuts it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// No location so far stays: a stack is never cut at its outermost frames.
    NotYet,
    /// The next location to drop ends the stack.
    Next,
    /// The stack has ended.
    Done,
}

/// Adds samples to a profile. Callers that a sample shares with the previous one are neither decoded nor looked up
/// again.
pub(super) struct Samples<'a, 'm> {
    locations: &'a Locations,
    profile: &'a mut Profile,
    /// The bytes of folded text that are left.
    left: u64,
    /// The previous sample's stack: packed, and the path to each of its locations, root first.
    before: &'m [u8],
    path: Vec<Way>,
    /// The frame above the outermost location, its node, and its length as folded text.
    root: (Option<Frame>, Node, u64),
    /// The locations that are not shared, leaf first, each with the packed bytes of it and its callers.
    own: Vec<(u64, usize)>,
}

impl<'a, 'm> Samples<'a, 'm> {
    pub(super) fn new(
        locations: &'a Locations,
        profile: &'a mut Profile,
        limits: &Limits,
    ) -> Samples<'a, 'm> {
        Samples {
            locations,
            profile,
            left: limits.text_bytes,
            before: &[],
            path: Vec::new(),
            root: (None, ROOT, 0),
            own: Vec::new(),
        }
    }

    /// Puts a frame above the outermost location of the samples that follow, or none.
    pub(super) fn set_root(&mut self, name: Option<&str>) -> Result<()> {
        let frame = match name {
            Some(name) => {
                let name = self.profile.frames.intern_name(name.as_bytes())?;
                Some(Frame::new(name, Kind::Plain))
            }
            None => None,
        };
        if frame != self.root.0 {
            let node = match frame {
                Some(frame) => self.profile.child(ROOT, frame)?,
                None => ROOT,
            };
            let bytes = name.map_or(0, |name| name.len() as u64 + 1);
            self.root = (frame, node, bytes);
            self.path.clear();
        }
        Ok(())
    }

    pub(super) fn add(&mut self, sample: &Sample<'m>) -> Result<()> {
        let (count, expected) = (sample.values.len(), self.profile.values().len());
        if count != expected {
            return Err(damaged(format!(
                "{count} values where there are {expected} sample types"
            )));
        }
        if let Some(negative) = sample.values.iter().find(|&&value| value < 0) {
            return Err(Error::Negative("pprof", format!("value {negative}")));
        }
        if sample.values.iter().all(|&value| value == 0) {
            return Ok(());
        }
        let node = self.leaf(sample)?;
        for (value, &amount) in sample.values.iter().enumerate() {
            self.profile.add(node, value, amount)?;
        }
        Ok(())
    }

    /// The node of a sample's stack.
    fn leaf(&mut self, sample: &Sample<'m>) -> Result<Node> {
        let too_long = || damaged("the stacks are too long, all together");
        self.path.truncate(self.shared(sample.packed));
        let outside = (self.root.1, self.root.2, Cut::NotYet);
        let top = self.path.last();
        let (mut node, mut bytes, mut cut) =
            top.map_or(outside, |way| (way.node, way.bytes, way.cut));
        self.find_own(sample)?;
        for &(location, packed) in self.own.iter().rev() {
            let (frames, span) = self.locations.get(location)?;
            bytes += span.bytes;
            if bytes > self.left {
                return Err(too_long());
            }
            let is_cut = cut == Cut::Done || (cut == Cut::Next && span.dropped == Part::All);
            if !is_cut {
                for &frame in frames {
                    node = self.profile.child(node, frame)?;
                }
            }
            cut = match (cut, span.dropped) {
                (Cut::NotYet, Part::Nothing) => Cut::Next,
                (Cut::Next, Part::Inlined | Part::All) => Cut::Done,
                (cut, _) => cut,
            };
            self.path.push(Way {
                node,
                packed,
                bytes,
                cut,
            });
        }
        self.before = sample.packed;
        if sample.packed.is_empty() {
            self.path.clear();
        }
        self.left = self.left.checked_sub(bytes).ok_or_else(too_long)?;
        Ok(node)
    }

    /// Decodes the locations of a stack that are not on the path.
    fn find_own(&mut self, sample: &Sample<'_>) -> Result<()> {
        let shared = self.path.last().map_or(0, |way| way.packed);
        let all = sample.packed.len();
        self.own.clear();
        self.own
            .extend(sample.locations.iter().map(|&location| (location, 0)));
        let mut numbers = Numbers::of(&sample.packed[..all - shared]);
        loop {
            let packed = numbers.left() + shared;
            match numbers.next() {
                Some(location) => {
                    let location = location.ok_or_else(|| damaged("a damaged location"))?;
                    self.own.push((location, packed));
                }
                None => return Ok(()),
            }
        }
    }

    /// The number of callers that a stack shares with the previous one.
    fn shared(&self, packed: &[u8]) -> usize {
        let same = shared_suffix(packed, self.before);
        let shared = self.path.partition_point(|way| way.packed <= same);
        // The innermost one may be the end of a longer number here.
        let start = packed.len()
            - shared
                .checked_sub(1)
                .map_or(0, |last| self.path[last].packed);
        let is_cut = start > 0 && packed[start - 1] >= 0x80;
        shared - usize::from(shared > 0 && is_cut)
    }
}
