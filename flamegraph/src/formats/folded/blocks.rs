//! Splits a text into blocks of whole lines, for one thread or several.

use std::io::Read;

use memchr::{memchr_iter, memrchr};

use crate::profile::{Bounded, Limits, Result};

/// The size of a block, which stays in the processor's cache until it is parsed.
const BLOCK_BYTES: usize = 512 << 10;

/// A text that is read block by block.
pub(super) struct Blocks<R> {
    text: Bounded<R>,
    /// The bytes after the last returned line.
    rest: Vec<u8>,
    /// The number of the next block's first line.
    line: u64,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(text: R, limits: &Limits) -> Blocks<R> {
        Blocks {
            text: Bounded::new(text, "bytes of folded text", limits.text_bytes),
            rest: Vec::new(),
            line: 1,
        }
    }

    /// The number of the first line that was not returned yet.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Fills `block` with whole lines; returns the first one's number, or None at the end.
    pub(super) fn next(&mut self, block: &mut Vec<u8>) -> Result<Option<u64>> {
        block.clear();
        block.append(&mut self.rest);
        let mut searched = 0;
        loop {
            let count = self
                .text
                .by_ref()
                .take(BLOCK_BYTES as u64)
                .read_to_end(block)?;
            if count == 0 {
                break;
            }
            if let Some(end) = memrchr(b'\n', &block[searched..]) {
                let end = searched + end + 1;
                self.rest.extend_from_slice(&block[end..]);
                block.truncate(end);
                break;
            }
            searched = block.len();
        }
        let first = self.line;
        self.line += memchr_iter(b'\n', block).count() as u64;
        Ok((!block.is_empty()).then_some(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_comes_once_whole_and_numbered() {
        let mut text = String::new();
        for line in 0..60_000 {
            text += &format!("{line};{} 1\n", "x".repeat(line % 100));
        }
        text += &"y".repeat(3 * BLOCK_BYTES);
        let mut blocks = Blocks::new(text.as_bytes(), &Limits::default());
        let (mut block, mut all) = (Vec::new(), Vec::new());
        while let Some(first) = blocks.next(&mut block).unwrap() {
            let before = memchr_iter(b'\n', &all).count() as u64;
            assert_eq!(first, before + 1);
            all.extend_from_slice(&block);
        }
        assert!(all == text.as_bytes());
    }
}
