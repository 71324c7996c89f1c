//! Numbers and texts as a chunk has them.

use std::borrow::Cow;

/// Reads a chunk from a position on. All methods return `None` if the bytes end too early or are invalid.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// For each byte of a word the bit that is clear in the last byte of a number.
const LAST_BYTES: u64 = 0x8080_8080_8080_8080;

/// A text, not yet decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text<'a> {
    Null,
    /// The constant of this number in the pool of strings.
    Pooled(u64),
    Utf8(&'a [u8]),
    Latin1(&'a [u8]),
    /// UTF-16 units, each a number.
    Units(&'a [u8]),
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A compressed integer: seven bits a byte, low ones first; a ninth byte has eight.
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        self.longer(u64::from(first & 0x7f))
    }

    /// Reads `count` numbers and returns two of them, by their indices.
    #[inline]
    pub(super) fn two_of(
        &mut self,
        count: usize,
        first: usize,
        second: usize,
    ) -> Option<(u64, u64)> {
        let word = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk);
        let word = word.map_or(u64::MAX, |word| u64::from_le_bytes(*word));
        let mut ends = !word & LAST_BYTES;
        if (ends.count_ones() as usize) < count {
            return self.two_of_longer(count, first, second);
        }
        let (mut found, mut begin) = ((0, 0), 0);
        for place in 0..count {
            let end = ends.trailing_zeros() + 1;
            ends &= ends - 1;
            if place == first {
                found.0 = packed(word >> begin, end - begin);
            } else if place == second {
                found.1 = packed(word >> begin, end - begin);
            }
            begin = end;
        }
        self.at += begin as usize / 8;
        Some(found)
    }

    #[cold]
    fn two_of_longer(&mut self, count: usize, first: usize, second: usize) -> Option<(u64, u64)> {
        let mut found = (0, 0);
        for place in 0..count {
            let number = self.number()?;
            if place == first {
                found.0 = number;
            } else if place == second {
                found.1 = number;
            }
        }
        Some(found)
    }

    /// Passes over this many numbers.
    pub(super) fn pass(&mut self, mut count: u64) -> Option<()> {
        while count > 0 {
            let word = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk);
            let ends = word.map_or(0, |word| !u64::from_le_bytes(*word) & LAST_BYTES);
            // If no number ends in the word, the next byte may be the ninth of a number.
            let whole = u64::from(ends.count_ones());
            if (1..=count).contains(&whole) {
                self.at += 8 - ends.leading_zeros() as usize / 8;
                count -= whole;
            } else {
                self.number()?;
                count -= 1;
            }
        }
        Some(())
    }

    fn longer(&mut self, mut number: u64) -> Option<u64> {
        for shift in (7..56).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        Some(number | u64::from(self.byte()?) << 56)
    }

    pub(super) fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok()?;
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    pub(super) fn text(&mut self) -> Option<Text<'a>> {
        Some(match self.byte()? {
            0 => Text::Null,
            1 => Text::Utf8(b""),
            2 => Text::Pooled(self.number()?),
            3 => {
                let length = self.number()?;
                Text::Utf8(self.take(length)?)
            }
            4 => {
                let count = self.number()?;
                let start = self.at;
                self.pass(count)?;
                Text::Units(&self.bytes[start..self.at])
            }
            5 => {
                let length = self.number()?;
                Text::Latin1(self.take(length)?)
            }
            _ => return None,
        })
    }
}

/// The number that the lowest `bits` of a word are: seven of each byte.
fn packed(word: u64, bits: u32) -> u64 {
    let sevens = word & (u64::MAX >> (64 - bits));
    let low = sevens & 0x007f_007f_007f_007f;
    let pairs = low | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let low = pairs & 0x0000_3fff_0000_3fff;
    let fours = low | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4
}

impl<'a> Text<'a> {
    /// As UTF-8, if it is; a text in the pool has to be looked up first.
    pub(super) fn utf8(self) -> Cow<'a, [u8]> {
        match self {
            Text::Null | Text::Pooled(_) => Cow::Borrowed(b""),
            Text::Utf8(bytes) => Cow::Borrowed(bytes),
            Text::Latin1(bytes) if bytes.is_ascii() => Cow::Borrowed(bytes),
            Text::Latin1(bytes) => {
                let text: String = bytes.iter().copied().map(char::from).collect();
                Cow::Owned(text.into_bytes())
            }
            Text::Units(bytes) => {
                let mut units = Cursor::new(bytes, 0);
                let units = std::iter::from_fn(|| units.number().map(|unit| unit as u16));
                let text = char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}'));
                Cow::Owned(text.collect::<String>().into_bytes())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_up_to_nine_bytes() {
        let read = |bytes: &[u8]| Cursor::new(bytes, 0).number();
        assert_eq!(read(&[0x7f]), Some(127));
        assert_eq!(read(&[0x80, 0x80, 0x01]), Some(1 << 14));
        assert_eq!(read(&[0x81, 0x80, 0x80, 0x00]), Some(1), "padded");
        assert_eq!(read(&[0xff; 9]), Some(u64::MAX));
        assert_eq!(read(&[0xff; 8]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn passing_over_numbers_ends_where_reading_them_does() {
        let mut bytes = Vec::new();
        for length in (1..=9).chain([1, 1, 9, 2, 9, 9, 1]) {
            bytes.extend([0x80 | length; 9].split_at(usize::from(length) - 1).0);
            // The ninth byte has eight bits of the number.
            bytes.push(if length == 9 { 0xff } else { length });
        }
        let mut read = Cursor::new(&bytes, 0);
        for count in 0..=16 {
            let mut passed = Cursor::new(&bytes, 0);
            assert_eq!(passed.pass(count), Some(()));
            assert_eq!(passed.at(), read.at(), "{count}");
            assert_eq!(read.number().is_some(), count < 16);
        }
        assert_eq!(Cursor::new(&bytes, 0).pass(17), None);
    }

    #[test]
    fn two_of_several_numbers_are_those_that_reading_finds() {
        let mut bytes = Vec::new();
        for length in [
            1, 2, 3, 1, 1, 4, 2, 1, 8, 1, 9, 1, 1, 1, 5, 5, 7, 1, 6, 3, 2, 2,
        ] {
            bytes.extend([0xa5 + length; 9].split_at(usize::from(length) - 1).0);
            bytes.push(if length == 9 { 0xfe } else { 0x51 + length });
        }
        for begin in 0..bytes.len() {
            for (count, first, second) in [(4, 0, 3), (4, 1, 2), (2, 0, 1), (8, 3, 7), (9, 0, 8)] {
                let mut read = Cursor::new(&bytes, begin);
                let numbers: Option<Vec<u64>> = (0..count).map(|_| read.number()).collect();
                let mut picked = Cursor::new(&bytes, begin);
                let two = picked.two_of(count, first, second);
                assert_eq!(
                    two,
                    numbers.map(|numbers| (numbers[first], numbers[second]))
                );
                assert!(two.is_none() || picked.at() == read.at());
            }
        }
    }

    #[test]
    fn every_encoding_of_a_text() {
        let read = |bytes: &[u8]| {
            let text = Cursor::new(bytes, 0).text();
            text.map(|text| String::from_utf8_lossy(&text.utf8()).into_owned())
        };
        assert_eq!(read(b"\0").as_deref(), Some(""));
        assert_eq!(read(b"\x01").as_deref(), Some(""));
        assert_eq!(read(b"\x03\x02\xc3\xa9").as_deref(), Some("é"));
        assert_eq!(read(b"\x05\x02a\xe9").as_deref(), Some("aé"));
        assert_eq!(read(b"\x04\x02a\xbd\x08").as_deref(), Some("aн"));
        assert_eq!(read(b"\x04\x01\x80\xb0\x03").as_deref(), Some("\u{fffd}"));
        assert_eq!(Cursor::new(b"\x02\x07", 0).text(), Some(Text::Pooled(7)));
        for damaged in [
            &b""[..],
            b"\x06",
            b"\x03\x02a",
            b"\x04\x02a",
            b"\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(Cursor::new(damaged, 0).text(), None, "{damaged:?}");
        }
    }
}
