//! What may lie around any format: gzip and, with the feature `formats`, zstd.
//!
//! Decoders are streams of bounded memory; how much may come out of them is each reader's limit.

#[cfg(feature = "formats")]
mod zstd;

mod gzip;

use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

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

/// Set by a decoder that finds something else behind what it decodes.
#[derive(Clone, Default)]
pub(crate) struct Garbage(Arc<AtomicBool>);

impl Garbage {
    fn found(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// What there is to say of it once all was read.
    pub(crate) fn warning(&self) -> Option<String> {
        let found = self.0.load(Ordering::Relaxed);
        found.then(|| "gzip: what stands behind the compressed data is ignored".to_string())
    }
}

/// Puts a decoder before an input that is compressed.
pub(crate) fn open<'a>(input: Input<'a>, garbage: &Garbage) -> Result<Opened<'a>> {
    if input.head().starts_with(GZIP) {
        return Ok(decoded("gzip", gzip::Decoder::new(input, garbage.clone())));
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
