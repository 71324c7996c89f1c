//! Interned frames: a name is stored once, a frame is a name and a kind.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::profile::{Error, Result};

/// How a frame ran, as its annotation says. The codes are those of the viewer's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// No annotation: native, or unknown.
    Plain = 0,
    /// `_[0]` interpreted.
    Interpreted = 1,
    /// `_[1]` compiled by C1.
    C1 = 2,
    /// `_[j]` compiled.
    Jit = 3,
    /// `_[i]` inlined (in allocation profiles: a class).
    Inlined = 4,
    /// `_[k]` kernel (in allocation profiles: outside a TLAB).
    Kernel = 5,
    /// `_[w]` waker.
    Waker = 6,
}

impl Kind {
    /// Every kind, at the index of its code.
    pub const ALL: [Kind; 7] = [
        Kind::Plain,
        Kind::Interpreted,
        Kind::C1,
        Kind::Jit,
        Kind::Inlined,
        Kind::Kernel,
        Kind::Waker,
    ];

    /// What folded text puts behind the name.
    pub fn suffix(self) -> &'static str {
        match self {
            Kind::Plain => "",
            Kind::Interpreted => "_[0]",
            Kind::C1 => "_[1]",
            Kind::Jit => "_[j]",
            Kind::Inlined => "_[i]",
            Kind::Kernel => "_[k]",
            Kind::Waker => "_[w]",
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Interpreted => "interpreted",
            Kind::C1 => "c1",
            Kind::Jit => "jit",
            Kind::Inlined => "inlined",
            Kind::Kernel => "kernel",
            Kind::Waker => "waker",
        }
    }

    /// Splits an annotated name into the name and its kind.
    pub fn split(annotated: &[u8]) -> (&[u8], Kind) {
        let [name @ .., b'_', b'[', tier, b']'] = annotated else {
            return (annotated, Kind::Plain);
        };
        let kind = match tier {
            b'0' => Kind::Interpreted,
            b'1' => Kind::C1,
            b'j' => Kind::Jit,
            b'i' => Kind::Inlined,
            b'k' => Kind::Kernel,
            b'w' => Kind::Waker,
            _ => return (annotated, Kind::Plain),
        };
        (name, kind)
    }
}

/// A name and a kind in one word: the kind's code in the low three bits, the name's number above.
///
/// Their order is that of the names' numbers, then of the kinds' codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frame(u32);

impl Frame {
    const KIND_BITS: u32 = 3;
    /// The frame of the root node, which stands for no frame at all.
    pub(crate) const ROOT: Frame = Frame(u32::MAX);

    pub(crate) fn new(name: u32, kind: Kind) -> Frame {
        Frame(name << Self::KIND_BITS | kind as u32)
    }

    pub(crate) fn name(self) -> u32 {
        self.0 >> Self::KIND_BITS
    }

    pub(crate) fn kind(self) -> Kind {
        Kind::ALL[(self.0 & 7) as usize]
    }

    /// The number to index by: below [`Frames::index_len`].
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// The frame of an [`index`](Frame::index).
    pub(crate) fn from_index(index: usize) -> Frame {
        Frame(index as u32)
    }
}

/// The names of a profile's frames, each once, in one piece of text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    text: String,
    /// Where each name ends in `text`; it starts where the one before ends.
    ends: Vec<u32>,
    index: HashTable<u32>,
    /// Seeded anew in each process: names come from hosts, which must not choose collisions.
    hasher: RandomState,
}

impl Frames {
    /// Most names one profile can hold: what is left of 32 bits beside the kind, without the root's.
    const MOST_NAMES: usize = (u32::MAX >> Frame::KIND_BITS) as usize;

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How long all names are together.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// One more than the largest [`Frame::index`].
    pub(crate) fn index_len(&self) -> usize {
        self.len() << Frame::KIND_BITS
    }

    pub(crate) fn name(&self, name: u32) -> &str {
        &self.text[span(&self.ends, name)]
    }

    /// All names, by their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|name| self.name(name))
    }

    /// The name of a number, if there is one.
    pub(crate) fn get(&self, name: usize) -> Option<&str> {
        (name < self.len()).then(|| self.name(name as u32))
    }

    pub(crate) fn name_of(&self, frame: Frame) -> &str {
        self.name(frame.name())
    }

    /// The frame of an annotated name. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn intern(&mut self, annotated: &[u8]) -> Result<Frame> {
        let (name, kind) = Kind::split(annotated);
        Ok(Frame::new(self.intern_name(name)?, kind))
    }

    pub(crate) fn intern_name(&mut self, name: &[u8]) -> Result<u32> {
        self.index_all();
        let hash = self.hasher.hash_one(name);
        let (text, ends) = (self.text.as_bytes(), &self.ends);
        if let Some(&found) = self.index.find(hash, |&id| &text[span(ends, id)] == name) {
            return Ok(found);
        }
        match std::str::from_utf8(name) {
            Ok(valid) => self.add_name(valid, hash),
            Err(_) => self.intern_name(String::from_utf8_lossy(name).as_bytes()),
        }
    }

    fn add_name(&mut self, name: &str, hash: u64) -> Result<u32> {
        let id = self.push_name(name)?;
        self.insert(id, hash);
        Ok(id)
    }

    /// Adds a name that is not there; returns its number.
    pub(crate) fn push_name(&mut self, name: &str) -> Result<u32> {
        let id = self.ends.len();
        if id >= Self::MOST_NAMES {
            return Err(Error::Limit {
                what: "distinct frame names",
                limit: Self::MOST_NAMES as u64,
            });
        }
        let end = u32::try_from(self.text.len() + name.len()).map_err(|_| Error::Limit {
            what: "bytes of frame names",
            limit: u64::from(u32::MAX),
        })?;
        self.text.push_str(name);
        self.ends.push(end);
        Ok(id as u32)
    }

    /// Adds names that were pushed to the index. The index is only built when a name is looked up.
    fn index_all(&mut self) {
        for id in self.index.len()..self.len() {
            let hash = self.hasher.hash_one(self.name(id as u32).as_bytes());
            self.insert(id as u32, hash);
        }
    }

    fn insert(&mut self, id: u32, hash: u64) {
        let (text, ends, hasher) = (self.text.as_bytes(), &self.ends, &self.hasher);
        self.index
            .insert_unique(hash, id, |&id| hasher.hash_one(&text[span(ends, id)]));
    }

    /// Whether the names' numbers are their places in byte order.
    pub(crate) fn is_sorted(&self) -> bool {
        (1..self.len() as u32).all(|name| self.name(name - 1) < self.name(name))
    }

    /// For each name its place among all names in byte order.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let mut by_name: Vec<u32> = (0..self.len() as u32).collect();
        by_name.sort_unstable_by_key(|&name| self.name(name));
        let mut ranks = vec![0; by_name.len()];
        for (rank, &name) in by_name.iter().enumerate() {
            ranks[name as usize] = rank as u32;
        }
        ranks
    }
}

fn span(ends: &[u32], name: u32) -> std::ops::Range<usize> {
    let name = name as usize;
    let start = if name == 0 {
        0
    } else {
        ends[name - 1] as usize
    };
    start..ends[name] as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_split_off_and_put_back() {
        for kind in Kind::ALL {
            let annotated = format!("a.B.c{}", kind.suffix());
            assert_eq!(Kind::split(annotated.as_bytes()), (&b"a.B.c"[..], kind));
        }
        assert_eq!(Kind::split(b"int[]_[x]"), (&b"int[]_[x]"[..], Kind::Plain));
        assert_eq!(Kind::split(b"_[j]"), (&b""[..], Kind::Jit));
    }

    #[test]
    fn a_name_is_stored_once_whatever_its_tier() {
        let mut frames = Frames::default();
        let jit = frames.intern(b"f_[j]").unwrap();
        let interpreted = frames.intern(b"f_[0]").unwrap();
        assert_eq!(jit.name(), interpreted.name());
        assert_ne!(jit, interpreted);
        assert_eq!(frames.len(), 1);
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        let mut frames = Frames::default();
        let broken = frames.intern(b"f\xff").unwrap();
        assert_eq!(frames.name_of(broken), "f\u{fffd}");
        assert_eq!(frames.intern(b"f\xff").unwrap(), broken);
    }
}
