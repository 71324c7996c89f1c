//! How much a reader accepts, and the reader that holds bytes to it.

use std::io::{self, Read};

use crate::profile::Error;

/// What a reader accepts at most. Input comes from hosts, and a small file can claim to be huge.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of folded text, after decompression; also of the folded text that a pprof message stands
    /// for, whose short samples can name long stacks.
    pub text_bytes: u64,
    /// Bytes of a pprof message, after decompression (it is held in memory); also of a compact profile, and of all
    /// names that it stands for.
    pub pprof_bytes: u64,
    /// Bytes of a perf.data file that comes as a stream (it is held in memory; one with a path is not).
    pub perf_data_bytes: u64,
    /// Bytes of a speedscope file, after decompression (it is held in memory).
    pub speedscope_bytes: u64,
    /// Bytes of a chunk of a recording (JFR), which is held in memory. async-profiler's have 100 MB at most, the JDK's 12 MB,
    /// unless it is told otherwise.
    pub chunk_bytes: u64,
    /// Bytes of one frame's name.
    pub name_bytes: usize,
    /// Bytes of the names of all frames of a recording (JFR): short ones of its own can be put together to long ones.
    pub names_bytes: usize,
    /// Nodes of the tree times values of a node. A compact profile has no more names than there may be nodes.
    pub cells: usize,
    /// Rows of a profile's times.
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            text_bytes: 2 << 30,
            pprof_bytes: 256 << 20,
            perf_data_bytes: 2 << 30,
            speedscope_bytes: 1 << 30,
            chunk_bytes: 2 << 30,
            name_bytes: 64 << 10,
            names_bytes: 1 << 30,
            cells: 1 << 25,
            rows: 1 << 22,
        }
    }
}

/// What one sample of perf can stand for: as nanoseconds these are two years. More is a damaged record.
pub(crate) const MOST_PERIOD: u64 = 1 << 56;

/// Passes on at most `limit` bytes. One more is an error.
pub(crate) struct Bounded<R> {
    inner: R,
    what: &'static str,
    limit: u64,
    left: u64,
}

impl<R: Read> Bounded<R> {
    pub(crate) fn new(inner: R, what: &'static str, limit: u64) -> Bounded<R> {
        Bounded {
            inner,
            what,
            limit,
            left: limit,
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => {
                let error = Error::Limit {
                    what: self.what,
                    limit: self.limit,
                };
                return Err(io::Error::other(error));
            }
        }
        Ok(count)
    }
}
