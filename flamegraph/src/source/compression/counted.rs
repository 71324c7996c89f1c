//! A stream that knows how many of its bytes were taken.

use std::io::{self, BufRead, Read};

pub(super) struct Counted<R> {
    source: R,
    taken: u64,
}

impl<R: BufRead> Counted<R> {
    pub(super) fn new(source: R) -> Counted<R> {
        Counted { source, taken: 0 }
    }

    /// How many bytes were taken so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes all the rest; whether it is but zeros, which pad and are no mistake.
    pub(super) fn rest_is_padding(&mut self) -> io::Result<bool> {
        let mut padding = true;
        loop {
            let bytes = self.fill_buf()?;
            if bytes.is_empty() {
                return Ok(padding);
            }
            padding = padding && bytes.iter().all(|&byte| byte == 0);
            let count = bytes.len();
            self.consume(count);
        }
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.taken += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.source.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.taken += count as u64;
        self.source.consume(count);
    }
}
