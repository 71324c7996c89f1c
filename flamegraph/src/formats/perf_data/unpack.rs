//! Records packed by `perf record -z`: one zstd stream over many records, flushed after each of them.
//!
//! The decoder keeps back what lies within its window until the stream ends, which perf never does.

#[cfg(feature = "formats")]
pub(crate) use zstd::Unpacker;

/// Takes no record: the agent, which has no other formats, records without `-z`.
#[cfg(not(feature = "formats"))]
#[derive(Default)]
pub(crate) struct Unpacker {}

#[cfg(not(feature = "formats"))]
impl Unpacker {
    pub(crate) fn feed(&mut self, _packed: &[u8]) -> Result<(), String> {
        Err("packed records (perf record -z) cannot be read here".into())
    }

    pub(crate) fn in_use(&self) -> bool {
        false
    }

    pub(crate) fn finish(&mut self) {}

    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        None
    }
}

#[cfg(feature = "formats")]
mod zstd {
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

    use crate::symbols::bytes::Bytes;

    /// Most bytes one packed record (64 KiB at most) may unfold to.
    const MOST_UNPACKED: usize = 64 << 20;
    /// A window larger than perf ever uses is refused.
    const MOST_WINDOW: u64 = 16 << 20;

    /// Unpacks records. Each input ends at the end of a block, which may be within a record.
    #[derive(Default)]
    pub(crate) struct Unpacker {
        decoder: Option<FrameDecoder>,
        unpacked: Vec<u8>,
        /// How much of `unpacked` has been handed out.
        taken: usize,
    }

    impl Unpacker {
        /// Takes in the next piece of the stream.
        pub(crate) fn feed(&mut self, mut packed: &[u8]) -> Result<(), String> {
            self.forget_taken();
            let most = self.unpacked.len() + MOST_UNPACKED;
            while !packed.is_empty() {
                if self.decoder.as_ref().is_none_or(FrameDecoder::is_finished) {
                    let mut decoder = FrameDecoder::new();
                    decoder.set_max_window_size(MOST_WINDOW);
                    decoder.init(&mut packed).map_err(said)?;
                    self.decoder = Some(decoder);
                    continue;
                }
                if let Some(decoder) = &mut self.decoder {
                    decoder
                        .decode_blocks(&mut packed, BlockDecodingStrategy::UptoBlocks(1))
                        .map_err(said)?;
                    decoder
                        .collect_to_writer(&mut self.unpacked)
                        .map_err(said)?;
                }
                if self.unpacked.len() > most {
                    return Err("packed records unfold to more than can be".into());
                }
            }
            Ok(())
        }

        /// Whether anything was ever fed.
        pub(crate) fn in_use(&self) -> bool {
            self.decoder.is_some()
        }

        /// Ends the stream, so that its last records come out.
        pub(crate) fn finish(&mut self) {
            /// An empty block that is the last, and room for a checksum.
            const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
            self.forget_taken();
            if let Some(mut decoder) = self.decoder.take() {
                let ended = decoder.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All);
                if ended.is_ok() {
                    self.unpacked.extend(decoder.collect().unwrap_or_default());
                }
            }
        }

        fn forget_taken(&mut self) {
            self.unpacked.drain(..self.taken);
            self.taken = 0;
        }

        /// The next whole record there is.
        pub(crate) fn next(&mut self) -> Option<&[u8]> {
            let rest = &self.unpacked[self.taken..];
            let mut header = Bytes::new(rest);
            let _kind_and_flags = (header.u32()?, header.u16()?);
            // A record smaller than its header would never advance; the reader reports it.
            let size = usize::from(header.u16()?).max(8);
            let record = rest.get(..size)?;
            self.taken += size;
            Some(record)
        }
    }

    fn said(error: impl std::fmt::Display) -> String {
        format!("packed records: {error}")
    }
}
