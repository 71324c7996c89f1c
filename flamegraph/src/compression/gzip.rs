//! gzip: member after member. Something else behind the last one does no harm, as with gzip itself: a file
//! system or a tape may have filled its last block up.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

use super::{Garbage, GZIP};

pub(super) struct Decoder<R> {
    /// None at the end.
    member: Option<GzDecoder<R>>,
    first: bool,
    garbage: Garbage,
}

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(source: R, garbage: Garbage) -> Decoder<R> {
        Decoder {
            member: Some(GzDecoder::new(source)),
            first: true,
            garbage,
        }
    }

    /// What stands behind a member: another one, or the end.
    fn next_member(&mut self) -> io::Result<()> {
        let Some(ended) = self.member.take() else {
            return Ok(());
        };
        let mut source = ended.into_inner();
        match source.fill_buf()? {
            [] => {}
            [first, ..] if *first == GZIP[0] => {
                self.member = Some(GzDecoder::new(source));
                self.first = false;
            }
            _ => {
                if !only_zeros(source)? {
                    self.garbage.found();
                }
            }
        }
        Ok(())
    }
}

fn is_no_header<R>(error: &io::Error, member: &GzDecoder<R>) -> bool {
    error.kind() == io::ErrorKind::InvalidInput && member.header().is_none()
}

/// Whether there are but zeros to the end, which pad and are no mistake.
fn only_zeros(mut source: impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            return Ok(true);
        }
        if bytes.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        let count = bytes.len();
        source.consume(count);
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            match member.read(buffer) {
                Ok(0) => self.next_member()?,
                Ok(count) => return Ok(count),
                // It only looked like the beginning of another member.
                Err(error) if is_no_header(&error, member) && !self.first => {
                    self.garbage.found();
                    self.member = None;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;
    use flate2::Compression;

    use super::*;

    fn member(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// What comes out, and whether there was garbage.
    fn decoded(bytes: &[u8]) -> io::Result<(Vec<u8>, bool)> {
        let garbage = Garbage::default();
        let mut text = Vec::new();
        // One byte at a time: nothing may depend on how much lies in the buffer.
        let source = io::BufReader::with_capacity(1, bytes);
        Decoder::new(source, garbage.clone()).read_to_end(&mut text)?;
        Ok((text, garbage.warning().is_some()))
    }

    #[test]
    fn members_follow_each_other_and_garbage_behind_them_is_left() {
        let two = [member(b"a;b 1\n"), member(b""), member(b"c 2\n")].concat();
        let text = b"a;b 1\nc 2\n".to_vec();
        for (behind, garbage) in [
            (&b""[..], false),
            (&[0; 700], false),
            (b"\0\0x", true),
            (b"x", true),
            (b"-- signature --", true),
            (b"\x1f\x00 looks like one at first", true),
        ] {
            let bytes = [&two[..], behind].concat();
            assert_eq!(
                decoded(&bytes).unwrap(),
                (text.clone(), garbage),
                "{behind:?}"
            );
        }
    }

    #[test]
    fn a_member_that_is_cut_short_or_wrong_is_an_error() {
        let whole = member(b"a;b 1\n");
        for cut in [5, 12, whole.len() - 1] {
            assert!(decoded(&whole[..cut]).is_err(), "{cut}");
            assert!(
                decoded(&[&whole[..], &whole[..cut]].concat()).is_err(),
                "{cut}"
            );
        }
        for at in [10, whole.len() - 8] {
            let mut wrong = whole.clone();
            wrong[at] ^= 6;
            assert!(decoded(&wrong).is_err(), "{at}");
            assert!(decoded(&[&whole[..], &wrong].concat()).is_err(), "{at}");
        }
    }
}
