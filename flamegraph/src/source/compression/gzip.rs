//! gzip: member after member.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

use super::counted::Counted;
use super::{Decode, Garbage, GZIP};

pub(super) struct Decoder<R> {
    /// None at the end.
    member: Option<GzDecoder<Counted<R>>>,
    /// How many bytes the members before are; none before the second one.
    before: Option<u64>,
    garbage: Garbage,
}

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(source: R, garbage: Garbage) -> Decoder<R> {
        Decoder {
            member: Some(GzDecoder::new(Counted::new(source))),
            before: None,
            garbage,
        }
    }

    /// What stands behind a member: another one, or the end.
    fn next_member(&mut self) -> io::Result<()> {
        let Some(ended) = self.member.take() else {
            return Ok(());
        };
        let mut source = ended.into_inner();
        let before = source.taken();
        if source.fill_buf()?.first() == Some(&GZIP[0]) {
            self.member = Some(GzDecoder::new(source));
            self.before = Some(before);
        } else if !source.rest_is_padding()? {
            self.garbage.found("gzip", source.taken() - before);
        }
        Ok(())
    }

    /// It only looked like the beginning of another member: with all that follows it is none.
    fn leave(&mut self, before: u64) -> io::Result<()> {
        if let Some(member) = self.member.take() {
            let mut source = member.into_inner();
            source.rest_is_padding()?;
            self.garbage.found("gzip", source.taken() - before);
        }
        Ok(())
    }
}

fn is_no_header<R>(error: &io::Error, member: &GzDecoder<R>) -> bool {
    error.kind() == io::ErrorKind::InvalidInput && member.header().is_none()
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
                Err(error) => match self.before {
                    Some(before) if is_no_header(&error, member) => self.leave(before)?,
                    _ => return Err(error),
                },
            }
        }
        Ok(0)
    }
}

impl<R: BufRead> Decode for Decoder<R> {
    fn place(&self) -> Option<u64> {
        self.member.as_ref().map(|member| member.get_ref().taken())
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

    /// What comes out, and what is said of garbage.
    fn decoded(bytes: &[u8]) -> io::Result<(Vec<u8>, String)> {
        let garbage = Garbage::default();
        let mut text = Vec::new();
        // One byte at a time: nothing may depend on how much lies in the buffer.
        let source = io::BufReader::with_capacity(1, bytes);
        Decoder::new(source, garbage.clone()).read_to_end(&mut text)?;
        Ok((text, garbage.warnings().concat()))
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
            let (out, warning) = decoded(&[&two[..], behind].concat()).unwrap();
            assert_eq!(out, text, "{behind:?}");
            let expected = format!("gzip: {} bytes behind ", behind.len());
            assert!(!garbage || warning.starts_with(&expected), "{warning}");
            assert_eq!(!warning.is_empty(), garbage, "{behind:?}");
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
