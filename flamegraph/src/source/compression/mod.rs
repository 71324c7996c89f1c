//! What may lie around any format: gzip and, with the feature `formats`, zstd.
//!
//! Decoders are streams of bounded memory; how much may come out of them is each reader's limit. Something else
//! behind the last member or frame does no harm: a file system or a tape may have filled its last block up.

#[cfg(feature = "formats")]
mod zstd;

mod counted;
mod gzip;

use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex};

use crate::ops::lock;
use crate::profile::Result;
use crate::source::Input;

const GZIP: &[u8] = &[0x1f, 0x8b];
/// What a decoder hands out at once.
const BLOCK_BYTES: usize = 64 << 10;

/// Where the bytes of a profile come from.
enum Opened<'a> {
    Plain(Input<'a>),
    Compressed(Box<dyn BufRead + Send + 'a>),
}

/// What decoders found behind what they decode, in words; known once all was read.
#[derive(Clone, Default)]
pub(crate) struct Garbage(Arc<Mutex<Vec<String>>>);

impl Garbage {
    fn found(&self, format: &str, bytes: u64) {
        let warning = format!(
            "{format}: {bytes} bytes behind the compressed data are no part of it: ignored"
        );
        lock(&self.0).push(warning);
    }

    /// What there is to say of it; nothing the second time.
    pub(crate) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// Layers of compression that are taken off: a pprof file, which is gzipped, may be compressed again.
const MOST_LAYERS: usize = 3;

/// The same input without its compression, if it has any. `garbage` has what stands behind what was compressed,
/// once all of it has been read.
pub(crate) fn uncompressed<'a>(mut input: Input<'a>, garbage: &Garbage) -> Result<Input<'a>> {
    for _ in 0..MOST_LAYERS {
        match open(input, garbage)? {
            Opened::Plain(plain) => return Ok(plain),
            Opened::Compressed(stream) => input = Input::stream(stream)?,
        }
    }
    Ok(input)
}

/// Puts a decoder before an input that is compressed.
fn open<'a>(input: Input<'a>, garbage: &Garbage) -> Result<Opened<'a>> {
    if input.head().starts_with(GZIP) {
        return Ok(decoded("gzip", gzip::Decoder::new(input, garbage.clone())));
    }
    #[cfg(feature = "formats")]
    if zstd::detect(input.head()) {
        return Ok(decoded("zstd", zstd::Decoder::new(input, garbage.clone())));
    }
    Ok(Opened::Plain(input))
}

fn decoded<'a>(name: &'static str, decoder: impl Decode + Send + 'a) -> Opened<'a> {
    let named = Named(name, decoder);
    Opened::Compressed(Box::new(BufReader::with_capacity(BLOCK_BYTES, named)))
}

/// A decoder that knows where it is in what it decodes.
trait Decode: Read {
    /// How many compressed bytes it took; none behind the last of them.
    fn place(&self) -> Option<u64>;
}

/// Says of a decoder's errors whose they are and where: "unexpected end of file" alone would mislead.
struct Named<R>(&'static str, R);

impl<R: Decode> Read for Named<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.1.read(buffer);
        read.map_err(|error| {
            let place = self.1.place();
            let place = place.map_or(String::new(), |place| format!(" at byte {place}"));
            io::Error::new(error.kind(), format!("{}: {error}{place}", self.0))
        })
    }
}
