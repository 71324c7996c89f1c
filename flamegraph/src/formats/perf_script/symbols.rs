//! What was made of a symbol and its module before: most lines of a text were seen already.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::names::StackLine;
use crate::profile::Frame;

/// Bytes of remembered text; more is forgotten, and all is worked out anew.
const MOST_BYTES: usize = 64 << 20;

#[derive(Default)]
pub(super) struct Symbols {
    known: HashTable<Known>,
    /// Symbols and modules, one after the other.
    text: Vec<u8>,
    frames: Vec<Frame>,
    hasher: RandomState,
}

struct Known {
    hash: u64,
    java: bool,
    start: usize,
    middle: usize,
    end: usize,
    /// Where its frames are, callers first.
    frames: (usize, usize),
}

impl Symbols {
    /// The frames of this line, callers first, if it was seen.
    pub(super) fn get(&self, line: &StackLine<'_>, java: bool) -> Option<&[Frame]> {
        let found = self.known.find(self.hash(line, java), |known| {
            known.java == java
                && &self.text[known.start..known.middle] == line.symbol
                && &self.text[known.middle..known.end] == line.module
        })?;
        Some(&self.frames[found.frames.0..found.frames.1])
    }

    pub(super) fn put(&mut self, line: &StackLine<'_>, java: bool, frames: &[Frame]) {
        if self.text.len() + line.symbol.len() + line.module.len() > MOST_BYTES {
            self.known.clear();
            self.text.clear();
            self.frames.clear();
        }
        let (start, first) = (self.text.len(), self.frames.len());
        self.text.extend_from_slice(line.symbol);
        let middle = self.text.len();
        self.text.extend_from_slice(line.module);
        self.frames.extend_from_slice(frames);
        let known = Known {
            hash: self.hash(line, java),
            java,
            start,
            middle,
            end: self.text.len(),
            frames: (first, self.frames.len()),
        };
        self.known
            .insert_unique(known.hash, known, |known| known.hash);
    }

    fn hash(&self, line: &StackLine<'_>, java: bool) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(line.symbol);
        hasher.write(line.module);
        hasher.write_u8(u8::from(java));
        hasher.finish()
    }
}
