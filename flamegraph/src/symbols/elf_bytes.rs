//! Reads bytes and names of an ELF file within limits, because the file may be hostile.

use std::cell::Cell;
use std::io::{Read, Seek};
use std::ops::Range;

use object::read::{ReadCache, ReadRef};

/// A file with a limit on the bytes that are read.
pub(super) struct Bytes<R: Read + Seek> {
    cache: ReadCache<R>,
    left: Cell<u64>,
}

impl<R: Read + Seek> Bytes<R> {
    /// Reads at most `most` bytes of `file`.
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

    /// Bytes that are read twice count twice, because the cache holds overlapping reads separately.
    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.left.set(self.left.get().checked_sub(size).ok_or(())?);
        self.cache.read_bytes_at(offset, size)
    }

    /// Not needed: names are looked up in tables that were read as a whole.
    fn read_bytes_at_until(self, _: Range<u64>, _: u8) -> Result<&'a [u8], ()> {
        Err(())
    }
}

/// The zero-terminated name at this place in a table of names; None if it is longer than `longest`.
pub(super) fn name_at(table: &[u8], place: u32, longest: usize) -> Option<&[u8]> {
    let rest = table.get(place as usize..)?;
    let end = memchr::memchr(0, &rest[..rest.len().min(longest + 1)])?;
    Some(&rest[..end])
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
        for (place, name) in [
            (0, Some(&b""[..])),
            (1, Some(b"one")),
            (2, Some(b"ne")),
            (5, None),
            (6, Some(b"our")),
            (10, None),
            (99, None),
        ] {
            assert_eq!(name_at(b"\0one\0four\0end", place, 3), name, "{place}");
        }
    }
}
