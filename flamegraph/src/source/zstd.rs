//! Zstandard in pure Rust, one frame at a time. The window, which takes most of the memory, is bounded.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::FrameDecoderError::ReadFrameHeaderError as Header;
use ruzstd::decoding::errors::ReadFrameHeaderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const MAGIC: [u8; 4] = 0xfd2f_b528u32.to_le_bytes();
/// Archivers use larger windows (`zstd --long`), profiles do not.
const MOST_WINDOW_BYTES: u64 = 128 << 20;

/// Parallel compressors put a skippable frame first.
pub(super) fn detect(head: &[u8]) -> bool {
    head.starts_with(&MAGIC) || matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
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

    /// Begins the next frame; false if there is none.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(Header(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    let skipped = self.source.by_ref().take(length);
                    if io::copy(&mut { skipped }, &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
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
            let written = self.frame.get_checksum_from_data();
            if written.is_some() && written != self.frame.get_calculated_checksum() {
                return Err(io::Error::other("the checksum is wrong"));
            }
            self.within = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of one uncompressed block, without a checksum.
    fn frame(text: &[u8]) -> Vec<u8> {
        let single_segment = [0x20, text.len() as u8];
        let last_block = ((text.len() as u32) << 3 | 1).to_le_bytes();
        [&MAGIC[..], &single_segment, &last_block[..3], text].concat()
    }

    fn decoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        // One byte at a time: the result must not depend on the buffer size.
        let source = io::BufReader::with_capacity(1, bytes);
        Decoder::new(source).read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn frames_follow_each_other_and_what_can_be_skipped_is() {
        let skippable = [0x53, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, b'x', b'y'];
        let whole = [frame(b"a;b 1\n"), skippable.to_vec(), frame(b"c 2\n")].concat();
        assert_eq!(decoded(&whole).unwrap(), b"a;b 1\nc 2\n");
        for cut in [2, 5, 8, 14, 20, whole.len() - 1] {
            assert!(decoded(&whole[..cut]).is_err(), "{cut}");
        }
    }
}
