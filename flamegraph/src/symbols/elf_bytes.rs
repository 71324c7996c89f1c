//! The bytes of an ELF file, and the names in it. Whoever made the file chose how often, and how far, they are looked at.

use std::cell::Cell;
use std::io::{Read, Seek};
use std::ops::Range;

use object::read::{ReadCache, ReadRef};

/// A file of which no more is read than there may be in memory.
pub(super) struct Bytes<R: Read + Seek> {
    cache: ReadCache<R>,
    left: Cell<u64>,
}

impl<R: Read + Seek> Bytes<R> {
    /// At most so many bytes of it.
    pub(super) fn new(file: R, most: u64) -> Bytes<R> {
        Bytes {
            cache: ReadCache::new(file),
            left: Cell::new(most),
        }
    }

    /// How many more bytes may be read.
    pub(super) fn left(&self) -> u64 {
        self.left.get()
    }
}

impl<'a, R: Read + Seek> ReadRef<'a> for &'a Bytes<R> {
    fn len(self) -> Result<u64, ()> {
        (&self.cache).len()
    }

    /// What is read twice counts twice: the cache keeps what overlaps apart.
    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.left.set(self.left.get().checked_sub(size).ok_or(())?);
        self.cache.read_bytes_at(offset, size)
    }

    /// Names are looked up in tables that were read as a whole.
    fn read_bytes_at_until(self, _: Range<u64>, _: u8) -> Result<&'a [u8], ()> {
        Err(())
    }
}

/// A table of names, each up to a zero byte.
pub(super) struct Names<'a> {
    bytes: &'a [u8],
    longest: usize,
    /// How many bytes may yet be looked at.
    left: Cell<usize>,
}

impl<'a> Names<'a> {
    /// Of names that are longer the begin, one byte too much. All together are looked at for no longer than it takes
    /// to read each once, and `more` bytes.
    pub(super) fn new(bytes: &'a [u8], longest: usize, more: usize) -> Names<'a> {
        Names {
            bytes,
            longest,
            left: Cell::new(bytes.len().saturating_add(more)),
        }
    }

    /// Whether no more may be looked at.
    pub(super) fn are_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    /// The name at this place.
    pub(super) fn at(&self, offset: u32) -> Option<&'a [u8]> {
        let rest = self.bytes.get(offset as usize..)?;
        let begin = &rest[..rest.len().min(self.longest + 1).min(self.left.get())];
        let end = memchr::memchr(0, begin);
        let looked = end.map_or(begin.len(), |end| end + 1);
        self.left.set(self.left.get() - looked);
        match end {
            None if begin.len() <= self.longest => None,
            None => Some(begin),
            Some(end) => Some(&begin[..end]),
        }
    }

    /// Whether the name at this place is this one.
    pub(super) fn is_at(&self, offset: u32, name: &[u8]) -> bool {
        let rest = self.bytes.get(offset as usize..);
        let after = rest.and_then(|rest| rest.strip_prefix(name));
        after.is_some_and(|after| after.first() == Some(&0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn no_more_is_read_than_may_be() {
        let file = Bytes::new(Cursor::new([7; 100]), 64);
        assert_eq!((&file).read_bytes_at(10, 40), Ok(&[7; 40][..]));
        assert!((&file).read_bytes_at(11, 40).is_err());
        assert!((&file).read_bytes_at(11, 24).is_ok());
        assert!((&file).read_bytes_at(0, 1).is_err());
    }

    #[test]
    fn names_end_at_zero_bytes() {
        let names = Names::new(b"\0one\0four\0end", 3, 1000);
        for (offset, name) in [
            (0, Some(&b""[..])),
            (1, Some(b"one")),
            (2, Some(b"ne")),
            (5, Some(b"four")),
            (10, None),
            (13, None),
            (99, None),
        ] {
            assert_eq!(names.at(offset), name, "{offset}");
        }
        assert!(names.is_at(1, b"one") && names.is_at(2, b"ne"));
        assert!(!names.is_at(1, b"on") && !names.is_at(10, b"end"));
    }

    /// A table of a single name without an end, to which as many refer as one likes.
    #[test]
    fn names_are_looked_at_about_once() {
        let bytes = vec![b'A'; 1 << 20];
        let names = Names::new(&bytes, 1000, 5000);
        let found = (0..1 << 20).filter_map(|_| names.at(1));
        assert_eq!(found.count(), ((1 << 20) + 5000) / 1001);
        assert!(names.are_exhausted());
    }
}
