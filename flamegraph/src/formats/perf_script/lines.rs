//! Iterates over the lines of a text, without copying lines that are within one block.

use std::io::{BufRead, BufReader, Read};

use crate::profile::{Error, Result};

/// The size of a block.
const BLOCK_BYTES: usize = 1 << 20;
/// Longer than any line a tool writes; a text without line ends must not fill the memory.
const MOST_BYTES: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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

    /// The next line without its end; of the first without a byte order mark, too.
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
                    return Ok(Some(without_mark(&self.text.buffer()[..end], self.number)));
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
                return Ok(Some(without_mark(&self.split, self.number)));
            }
        }
    }
}

fn without_mark(line: &[u8], number: u64) -> &[u8] {
    let rest = line.strip_prefix(BYTE_ORDER_MARK);
    rest.filter(|_| number == 1).unwrap_or(line)
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
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let mut lines = Lines::new("\u{feff}a\n\u{feff}b".as_bytes());
        for expected in ["a", "\u{feff}b"] {
            assert_eq!(lines.next().unwrap(), Some(expected.as_bytes()));
        }
    }

    #[test]
    fn a_text_without_line_ends_is_refused() {
        let endless = std::io::repeat(b'x');
        assert!(Lines::new(endless).next().is_err());
    }
}
