//! Reads numbers and strings from bytes that may be truncated.

/// Reads bytes from the front; numbers are little-endian.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Bytes<'a> {
        Bytes { rest }
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn skip(&mut self, count: u64) -> Option<()> {
        self.take(usize::try_from(count).ok()?).map(|_| ())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// All numbers of 8 bytes that follow.
    pub(crate) fn u64s(self) -> impl Iterator<Item = u64> + use<'a> {
        let words = self.rest.chunks_exact(8);
        words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
    }

    /// The number `back` bytes before the end.
    pub(crate) fn u64_from_end(&self, back: usize) -> Option<u64> {
        let start = self.rest.len().checked_sub(back)?;
        Bytes::new(&self.rest[start..]).u64()
    }

    /// Text up to a NUL, or to the end.
    pub(crate) fn text(self) -> &'a [u8] {
        until_nul(self.rest)
    }

    /// A length and a padded text of that length, as in the sections of features.
    pub(crate) fn sized_text(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length).map(until_nul)
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}
