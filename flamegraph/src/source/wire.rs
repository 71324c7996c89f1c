//! The outermost layer of a protobuf message, field by field.
//!
//! prost decodes the inner messages. The outermost one is split here, so that samples are never held in a vector: an
//! empty sample is two bytes on the wire and a hundred in memory.

use prost::Message;

/// The value of a field, as it is on the wire.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A fixed-width field; profiles have none.
    Fixed,
}

/// The fields of a message; ends after the first error.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// The bytes that are not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn read(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        Some((key >> 3, value))
    }

    fn varint(&mut self) -> Option<u64> {
        varint(&mut self.rest)
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok()?;
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    /// A field's number and value; `Err` has the number of bytes left at the damage.
    type Item = Result<(u64, Value<'a>), usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let left = self.rest.len();
        let field = self.read();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or(left))
    }
}

/// Iterates over packed numbers; yields None at damage, and ends.
pub(crate) struct Numbers<'a> {
    rest: &'a [u8],
}

impl<'a> Numbers<'a> {
    pub(crate) fn of(packed: &'a [u8]) -> Numbers<'a> {
        Numbers { rest: packed }
    }

    /// The number of bytes that are not read yet.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }
}

impl Iterator for Numbers<'_> {
    type Item = Option<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let number = varint(&mut self.rest);
        if number.is_none() {
            self.rest = &[];
        }
        Some(number)
    }
}

/// Removes an unsigned LEB128 number from the front of some bytes.
pub(crate) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    // Most numbers have one byte or two.
    match **bytes {
        [first @ 0..0x80, ref rest @ ..] => {
            *bytes = rest;
            Some(u64::from(first))
        }
        [first, second @ 0..0x80, ref rest @ ..] => {
            *bytes = rest;
            Some(u64::from(first & 0x7f) | u64::from(second) << 7)
        }
        _ => long_varint(bytes),
    }
}

fn long_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        if index == 9 && byte > 1 {
            return None;
        }
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Some(number);
        }
    }
    None
}

/// Appends a number in unsigned LEB128, as protobuf and the viewer's data write it.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a length-delimited field of bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a length-delimited field that is a message.
pub(crate) fn put_message(out: &mut Vec<u8>, field: u64, message: &impl Message) {
    put_varint(out, field << 3 | 2);
    put_varint(out, message.encoded_len() as u64);
    message.encode_raw(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_written() {
        let mut message = Vec::new();
        put_bytes(&mut message, 6, b"name");
        put_varint(&mut message, 9 << 3);
        put_varint(&mut message, u64::MAX);
        let fields: Vec<_> = Fields::of(&message).map(Result::unwrap).collect();
        assert_eq!(
            fields,
            [(6, Value::Bytes(b"name")), (9, Value::Number(u64::MAX))]
        );
    }

    #[test]
    fn damage_is_an_error_and_the_end() {
        for damaged in [
            &b"\x32\x05abc"[..],
            b"\x33",
            b"\x80",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        ] {
            let fields: Vec<_> = Fields::of(damaged).collect();
            assert_eq!(fields, [Err(damaged.len())]);
        }
    }
}
