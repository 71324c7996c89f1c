//! Zstandard: frame after frame, in pure Rust. Its window takes the memory, and is bounded.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::FrameDecoderError::ReadFrameHeaderError as Header;
use ruzstd::decoding::errors::ReadFrameHeaderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::counted::Counted;
use super::{Decode, Garbage};

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
    source: Counted<R>,
    frame: FrameDecoder,
    within: bool,
    garbage: Garbage,
}

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(source: R, garbage: Garbage) -> Decoder<R> {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(MOST_WINDOW_BYTES);
        Decoder {
            source: Counted::new(source),
            frame,
            within: false,
            garbage,
        }
    }

    /// Begins the next frame; false when there is none.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            let before = self.source.taken();
            let like_a_frame = match self.source.fill_buf()? {
                [] => return Ok(false),
                [first, ..] => *first == MAGIC[0] || matches!(first, 0x50..=0x5f),
            };
            if !like_a_frame {
                return self.end(before, false);
            }
            match self.frame.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(Header(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    self.skip(u64::from(length))?;
                }
                // It only looked like one.
                Err(Header(ReadFrameHeaderError::BadMagicNumber(_))) if before > 0 => {
                    return self.end(before, true);
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Takes what follows the frames, which are so many bytes; `garbage`: some of it was seen to be no padding.
    fn end(&mut self, frames: u64, garbage: bool) -> io::Result<bool> {
        if !self.source.rest_is_padding()? || garbage {
            self.garbage.found("zstd", self.source.taken() - frames);
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

impl<R: BufRead> Decode for Decoder<R> {
    fn place(&self) -> Option<u64> {
        Some(self.source.taken())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of one block as it stands, without a checksum.
    fn frame(text: &[u8]) -> Vec<u8> {
        let single_segment = [0x20, text.len() as u8];
        let last_block = ((text.len() as u32) << 3 | 1).to_le_bytes();
        [&MAGIC[..], &single_segment, &last_block[..3], text].concat()
    }

    fn decoded(bytes: &[u8]) -> io::Result<(Vec<u8>, String)> {
        let garbage = Garbage::default();
        let mut text = Vec::new();
        // One byte at a time: nothing may depend on how much lies in the buffer.
        let source = io::BufReader::with_capacity(1, bytes);
        Decoder::new(source, garbage.clone()).read_to_end(&mut text)?;
        Ok((text, garbage.warnings().concat()))
    }

    #[test]
    fn frames_follow_each_other_and_garbage_behind_them_is_left() {
        let skippable = [0x53, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, b'x', b'y'];
        let two = [frame(b"a;b 1\n"), skippable.to_vec(), frame(b"c 2\n")].concat();
        for (behind, garbage) in [
            (&b""[..], false),
            (&[0; 700], false),
            (&skippable, false),
            (b"\0\0x", true),
            (b"-- signature --", true),
            (b"(looks like one at first", true),
            (b"Signed", true),
        ] {
            let (out, warning) = decoded(&[&two[..], behind].concat()).unwrap();
            assert_eq!(out, b"a;b 1\nc 2\n", "{behind:?}");
            let expected = format!("zstd: {} bytes behind ", behind.len());
            assert!(!garbage || warning.starts_with(&expected), "{warning}");
            assert_eq!(!warning.is_empty(), garbage, "{behind:?}");
        }
    }

    #[test]
    fn a_frame_that_is_cut_short_is_an_error() {
        let whole = frame(b"a;b 1\n");
        for cut in [2, 5, 8, whole.len() - 1] {
            assert!(decoded(&whole[..cut]).is_err(), "{cut}");
            let both = [&whole[..], &whole[..cut]].concat();
            assert!(decoded(&both).is_err(), "{cut}");
        }
    }
}
