//! Reading a profile of whichever format, compressed or not.

use std::io::{self, BufRead, BufReader, Read};
use std::str::FromStr;

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Result};
use crate::folded;
use crate::limits::Limits;
use crate::pprof;
use crate::profile::Profile;
use crate::values::ValueType;

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `root;...;leaf count`
    Folded,
    /// A `profile.proto` message.
    Pprof,
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Format> {
        match name {
            "folded" => Ok(Format::Folded),
            "pprof" => Ok(Format::Pprof),
            other => Err(Error::Usage(format!(
                "unknown format {other:?}; known are: folded, pprof"
            ))),
        }
    }
}

/// How much of the beginning decides on the format.
const HEAD_BYTES: u64 = 64 << 10;

/// Reads a profile; the format is detected by content unless it is given. Gzip is always detected.
pub fn read(input: impl Read, format: Option<Format>, limits: &Limits) -> Result<Profile> {
    let (head, rest) = peek(BufReader::new(input))?;
    if head.starts_with(&[0x1f, 0x8b]) {
        let compressed = MultiGzDecoder::new(head.chain(rest));
        let (head, rest) = peek(BufReader::new(Gunzip(compressed)))?;
        return read_plain(&head, rest, format, limits);
    }
    read_plain(&head, rest, format, limits)
}

/// Says of its errors that they are gzip's: "unexpected end of file" alone would mislead.
struct Gunzip<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("gzip: {error}"));
        self.0.read(buffer).map_err(named)
    }
}

fn peek<R: BufRead>(mut input: R) -> Result<(Vec<u8>, R)> {
    let mut head = Vec::new();
    input.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok((head, input))
}

fn read_plain(
    head: &[u8],
    rest: impl BufRead,
    format: Option<Format>,
    limits: &Limits,
) -> Result<Profile> {
    let whole = head.chain(rest);
    match format.unwrap_or_else(|| detect(head)) {
        Format::Pprof => pprof::read(whole, limits),
        Format::Folded if folded::is_differential(head, (head.len() as u64) < HEAD_BYTES) => {
            folded::read_differential(whole, limits)
        }
        Format::Folded => folded::read(whole, ValueType::samples(), limits),
    }
}

/// Text has no control characters but line ends and tabs; a protobuf message cannot do without.
fn detect(head: &[u8]) -> Format {
    let control = |byte: &u8| *byte < 0x20 && !matches!(byte, b'\n' | b'\r' | b'\t');
    if head.iter().take(4096).any(control) {
        Format::Pprof
    } else {
        Format::Folded
    }
}
