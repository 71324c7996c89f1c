//! A cache of the frames of symbols and modules, because most lines repeat.

use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};

use super::names::StackLine;
use crate::profile::Frame;

/// Most bytes of cached text; beyond that the cache is cleared.
const MOST_BYTES: usize = 64 << 20;

#[derive(Default)]
pub(super) struct Symbols {
    /// Frames, callers first.
    known: HashMap<Key, Box<[Frame]>, RandomState>,
    bytes: usize,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    symbol: Box<[u8]>,
    module: Box<[u8]>,
    java: bool,
}

/// A key with borrowed texts; it has the same hash as `Key`.
#[derive(Hash)]
struct Borrowed<'a> {
    symbol: &'a [u8],
    module: &'a [u8],
    java: bool,
}

impl Equivalent<Key> for Borrowed<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.java == key.java && *self.symbol == *key.symbol && *self.module == *key.module
    }
}

impl Symbols {
    /// The cached frames of this line, callers first.
    pub(super) fn get(&self, line: &StackLine<'_>, java: bool) -> Option<&[Frame]> {
        let key = Borrowed {
            symbol: line.symbol,
            module: line.module,
            java,
        };
        self.known.get(&key).map(|frames| &**frames)
    }

    pub(super) fn put(&mut self, line: &StackLine<'_>, java: bool, frames: &[Frame]) {
        let bytes = line.symbol.len() + line.module.len();
        if self.bytes + bytes > MOST_BYTES {
            *self = Symbols::default();
        }
        self.bytes += bytes;
        let key = Key {
            symbol: line.symbol.into(),
            module: line.module.into(),
            java,
        };
        self.known.insert(key, frames.into());
    }
}
