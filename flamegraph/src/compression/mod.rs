//! What may lie around any format: gzip and, with the feature `formats`, zstd.
//!
//! Decoders are streams of bounded memory; how much may come out of them is each reader's limit.

#[cfg(feature = "formats")]
mod zstd;

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use crate::error::Result;
use crate::input::Input;

const GZIP: &[u8] = &[0x1f, 0x8b];
/// What a decoder hands out at once.
const BLOCK_BYTES: usize = 64 << 10;

/// Where the bytes of a profile come from.
pub(crate) enum Opened<'a> {
    Plain(Input<'a>),
    Compressed(Box<dyn BufRead + Send + 'a>),
}

/// Puts a decoder before an input that is compressed.
pub(crate) fn open(input: Input<'_>) -> Result<Opened<'_>> {
    if input.head().starts_with(GZIP) {
        return Ok(decoded("gzip", MultiGzDecoder::new(input)));
    }
    #[cfg(feature = "formats")]
    if zstd::detect(input.head()) {
        return Ok(decoded("zstd", zstd::Decoder::new(input)));
    }
    Ok(Opened::Plain(input))
}

fn decoded<'a>(name: &'static str, decoder: impl Read + Send + 'a) -> Opened<'a> {
    let named = Named(name, decoder);
    Opened::Compressed(Box::new(BufReader::with_capacity(BLOCK_BYTES, named)))
}

/// Says of a decoder's errors whose they are: "unexpected end of file" alone would mislead.
struct Named<R>(&'static str, R);

impl<R: Read> Read for Named<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", self.0));
        self.1.read(buffer).map_err(named)
    }
}
