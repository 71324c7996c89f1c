//! Zstandard: frame after frame, in pure Rust. Its window takes the memory, and is bounded.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const MAGIC: [u8; 4] = 0xfd2f_b528u32.to_le_bytes();
/// Larger windows are an archiver's (`zstd --long`), not a profile's.
const MOST_WINDOW_BYTES: u64 = 128 << 20;

pub(super) fn detect(head: &[u8]) -> bool {
    head.starts_with(&MAGIC) || is_skippable(head)
}

/// A frame of something else, as parallel compressors put first.
fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

pub(super) struct Decoder<R> {
    source: R,
    frame: FrameDecoder,
    within: bool,
}

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(source: R) -> Decoder<R> {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(MOST_WINDOW_BYTES);
        Decoder {
            source,
            frame,
            within: false,
        }
    }

    /// Begins the next frame; false when there is none.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(u64::from(length))?,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
        if skipped == length {
            return Ok(());
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    fn check_sum(&self) -> io::Result<()> {
        let written = self.frame.get_checksum_from_data();
        if written.is_none() || written == self.frame.get_calculated_checksum() {
            return Ok(());
        }
        Err(io::Error::other("the checksum is wrong"))
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within && !self.begin()? {
                return Ok(0);
            }
            self.within = true;
            while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                self.frame
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            }
            let count = self.frame.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.check_sum()?;
            self.within = false;
        }
    }
}
