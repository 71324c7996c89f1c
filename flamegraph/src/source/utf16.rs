//! Text in UTF-16, as PowerShell's `>` writes it, becomes UTF-8.

use std::io::{self, BufRead, Read};

/// The byte order mark of a text in UTF-16 of either order.
pub(super) fn detect(head: &[u8]) -> bool {
    matches!(head, [0xff, 0xfe, ..] | [0xfe, 0xff, ..])
}

/// Decodes a text that begins with a byte order mark, which is left out. What is not UTF-16 becomes `U+FFFD`.
pub(super) struct Decoder<R> {
    text: R,
    /// The order of bytes, as soon as the mark was read.
    is_big: Option<bool>,
    /// A unit that was read too early.
    next: Option<u16>,
    /// The bytes of the last character that are not returned yet.
    left: [u8; 4],
    count: usize,
}

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(text: R) -> Decoder<R> {
        Decoder {
            text,
            is_big: None,
            next: None,
            left: [0; 4],
            count: 0,
        }
    }

    /// The next unit; a last byte alone is none.
    fn unit(&mut self) -> io::Result<Option<u16>> {
        if let Some(unit) = self.next.take() {
            return Ok(Some(unit));
        }
        let mut bytes = [0; 2];
        match self.text.read_exact(&mut bytes) {
            Ok(()) if self.is_big == Some(true) => Ok(Some(u16::from_be_bytes(bytes))),
            Ok(()) => Ok(Some(u16::from_le_bytes(bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn character(&mut self) -> io::Result<Option<char>> {
        if self.is_big.is_none() {
            self.is_big = Some(self.unit()? == Some(0xfffe));
        }
        let Some(first) = self.unit()? else {
            return Ok(None);
        };
        let is_pair = (0xd800..0xdc00).contains(&first);
        let second = if is_pair { self.unit()? } else { None };
        let mut decoded = char::decode_utf16([first].into_iter().chain(second));
        let character = decoded.next().and_then(Result::ok);
        if character.is_none() {
            self.next = second;
        }
        Ok(Some(character.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < buffer.len() {
            if self.count == 0 {
                let Some(character) = self.character()? else {
                    break;
                };
                self.count = character.encode_utf8(&mut self.left).len();
            }
            let copied = self.count.min(buffer.len() - written);
            buffer[written..written + copied].copy_from_slice(&self.left[..copied]);
            self.left.copy_within(copied.., 0);
            self.count -= copied;
            written += copied;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_are_decoded() {
        let text = "a;ä;\u{1d11e} 1\r\n";
        let units: Vec<u16> = "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in [little, big] {
            assert!(detect(&bytes));
            // A buffer of one byte: characters are returned in parts.
            let mut decoder = Decoder::new(&bytes[..]);
            let (mut out, mut byte) = (Vec::new(), [0]);
            while decoder.read(&mut byte).unwrap() > 0 {
                out.push(byte[0]);
            }
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn what_is_not_utf_16_is_replaced() {
        let bytes = [0xff, 0xfe, 0x00, 0xd8, b'a', 0, 0x00, 0xdc, b'b'];
        let mut text = String::new();
        Decoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "\u{fffd}a\u{fffd}");
    }
}
