//! Numbers and strings out of bytes that may end too soon.

/// Bytes being read from the front, in the byte order of the machine that recorded.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    big_endian: bool,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(rest: &'a [u8], big_endian: bool) -> Bytes<'a> {
        Bytes { rest, big_endian }
    }

    /// Other bytes of the same machine.
    pub(crate) fn of<'b>(&self, bytes: &'b [u8]) -> Bytes<'b> {
        Bytes::new(bytes, self.big_endian)
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
        let bytes = self.array()?;
        Some(match self.big_endian {
            true => u16::from_be_bytes(bytes),
            false => u16::from_le_bytes(bytes),
        })
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(match self.big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        })
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let bytes = self.array()?;
        Some(match self.big_endian {
            true => u64::from_be_bytes(bytes),
            false => u64::from_le_bytes(bytes),
        })
    }

    /// All numbers of 8 bytes that follow.
    pub(crate) fn u64s(self) -> impl Iterator<Item = u64> + use<'a> {
        let big_endian = self.big_endian;
        self.rest.chunks_exact(8).map(move |bytes| {
            let number = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            if big_endian {
                number.swap_bytes()
            } else {
                number
            }
        })
    }

    /// The number `back` bytes before the end.
    pub(crate) fn u64_from_end(&self, back: usize) -> Option<u64> {
        let start = self.rest.len().checked_sub(back)?;
        Bytes::new(&self.rest[start..], self.big_endian).u64()
    }

    /// Text up to a NUL, or all there is.
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
