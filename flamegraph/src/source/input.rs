//! The input of a reader.

use std::borrow::Cow;
use std::io::{self, BufRead, Cursor, Read};

use crate::profile::{Bounded, Error, Result};

/// The size of the beginning that decides the format.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// The input of a reader: bytes in memory, or a stream.
pub(crate) enum Input<'a> {
    /// The whole input, in memory.
    Bytes(Cursor<&'a [u8]>),
    /// The beginning, and the rest of the stream.
    Stream(io::Chain<Cursor<Vec<u8>>, Box<dyn BufRead + Send + 'a>>),
}

impl<'a> Input<'a> {
    pub(crate) fn stream(mut rest: Box<dyn BufRead + Send + 'a>) -> Result<Input<'a>> {
        let mut head = Vec::new();
        rest.by_ref()
            .take(HEAD_BYTES as u64)
            .read_to_end(&mut head)?;
        Ok(Input::Stream(Cursor::new(head).chain(rest)))
    }

    /// The first [`HEAD_BYTES`], or fewer at the end.
    pub(crate) fn head(&self) -> &[u8] {
        match self {
            Input::Bytes(bytes) => &bytes.get_ref()[..bytes.get_ref().len().min(HEAD_BYTES)],
            Input::Stream(stream) => stream.get_ref().0.get_ref(),
        }
    }

    /// Everything, in memory. `what` names it in the error if it is longer than `limit`.
    pub(crate) fn into_bytes(self, what: &'static str, limit: u64) -> Result<Cow<'a, [u8]>> {
        match self {
            Input::Bytes(bytes) if bytes.get_ref().len() as u64 > limit => {
                Err(Error::Limit { what, limit })
            }
            Input::Bytes(bytes) => Ok(Cow::Borrowed(bytes.into_inner())),
            stream => {
                let mut bytes = Vec::new();
                Bounded::new(stream, what, limit).read_to_end(&mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::Bytes(bytes) => bytes.read(buffer),
            Input::Stream(stream) => stream.read(buffer),
        }
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Input::Bytes(bytes) => bytes.fill_buf(),
            Input::Stream(stream) => stream.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Input::Bytes(bytes) => bytes.consume(count),
            Input::Stream(stream) => stream.consume(count),
        }
    }
}
