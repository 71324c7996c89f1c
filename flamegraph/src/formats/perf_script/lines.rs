//! Iterates over the lines of a text, without copying lines that are within one block.

use std::io::{BufRead, BufReader, Read};

use crate::profile::{Error, Result};

/// The size of a block.
const BLOCK_BYTES: usize = 1 << 20;
/// Longer than any line a tool writes; a text without line ends must not fill the memory.
const MOST_BYTES: usize = 1 << 20;

pub(crate) struct Lines<R> {
    text: BufReader<R>,
    /// A line that spans blocks.
    split: Vec<u8>,
    /// Bytes of the block that were returned and must be skipped.
    used: usize,
    number: u64,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(text: R) -> Lines<R> {
        Lines {
            text: BufReader::with_capacity(BLOCK_BYTES, text),
            split: Vec::new(),
            used: 0,
            number: 0,
        }
    }

    /// The number of the last returned line, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        self.text.consume(std::mem::take(&mut self.used));
        self.split.clear();
        self.number += 1;
        loop {
            let block = self.text.fill_buf()?;
            let end = memchr::memchr(b'\n', block);
            let part = end.unwrap_or(block.len());
            if self.split.len() + part > MOST_BYTES {
                let limit = MOST_BYTES as u64;
                return Err(Error::Limit {
                    what: "bytes of a line",
                    limit,
                });
            }
            match end {
                Some(end) if self.split.is_empty() => {
                    self.used = end + 1;
                    return Ok(Some(&self.text.buffer()[..end]));
                }
                None if block.is_empty() && self.split.is_empty() => {
                    self.number -= 1;
                    return Ok(None);
                }
                _ => {}
            }
            let last = end.is_some() || block.is_empty();
            self.split.extend_from_slice(&block[..part]);
            self.text.consume(part + usize::from(end.is_some()));
            if last {
                return Ok(Some(&self.split));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_wherever_blocks_end() {
        let long = "x".repeat(BLOCK_BYTES - 3);
        let text = format!("a\n\n{long}\nbc\nlast");
        let mut lines = Lines::new(text.as_bytes());
        for expected in ["a", "", long.as_str(), "bc", "last"] {
            assert_eq!(lines.next().unwrap(), Some(expected.as_bytes()));
        }
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.number(), 5);
    }

    #[test]
    fn a_text_without_line_ends_is_refused() {
        let endless = std::io::repeat(b'x');
        assert!(Lines::new(endless).next().is_err());
    }
}
