//! Compression of any format: gzip and, with the feature `formats`, zstd. Text in UTF-16 is decoded, too.
//!
//! Decoders are streams of bounded memory; each reader limits their output.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::Input;
use crate::profile::Result;

const GZIP: &[u8] = &[0x1f, 0x8b];
/// The block size of a decoder's output.
const BLOCK_BYTES: usize = 64 << 10;
/// The most layers of compression: a pprof file, which is gzipped, may be compressed again.
const MOST_LAYERS: usize = 3;

/// The decompressed input, or the same input if it is not compressed. Text in UTF-16 becomes UTF-8.
pub(crate) fn uncompressed(mut input: Input<'_>) -> Result<Input<'_>> {
    for _ in 0..MOST_LAYERS {
        if input.head().starts_with(GZIP) {
            input = decoded("gzip", MultiGzDecoder::new(input))?;
            continue;
        }
        #[cfg(feature = "formats")]
        if super::zstd::detect(input.head()) {
            input = decoded("zstd", super::zstd::Decoder::new(input))?;
            continue;
        }
        break;
    }
    #[cfg(feature = "formats")]
    if super::utf16::detect(input.head()) {
        input = decoded("UTF-16", super::utf16::Decoder::new(input))?;
    }
    Ok(input)
}

fn decoded<'a>(name: &'static str, decoder: impl Read + Send + 'a) -> Result<Input<'a>> {
    let named = Named(name, decoder);
    Input::stream(Box::new(BufReader::with_capacity(BLOCK_BYTES, named)))
}

/// Puts the format's name before a decoder's errors: "unexpected end of file" alone would mislead.
struct Named<R>(&'static str, R);

impl<R: Read> Read for Named<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.1.read(buffer);
        read.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.0)))
    }
}
