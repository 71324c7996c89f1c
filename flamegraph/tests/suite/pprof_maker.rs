//! Messages of pprof made by hand.

pub fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

pub fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

pub fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [
        varint(field << 3 | 2),
        varint(content.len() as u64),
        content.to_vec(),
    ]
    .concat()
}

const SAMPLES: u64 = 1;
const COUNT: u64 = 2;
pub const NAME: u64 = 3;

/// A message with one value, one function (1) and one location (1), and what else is given.
pub fn message(more: &[Vec<u8>]) -> Vec<u8> {
    let mut message = Vec::new();
    for string in ["", "samples", "count", "f"] {
        message.extend(bytes(6, string.as_bytes()));
    }
    message.extend(bytes(1, &[number(1, SAMPLES), number(2, COUNT)].concat()));
    message.extend(bytes(5, &[number(1, 1), number(2, NAME)].concat()));
    message.extend(bytes(4, &[number(1, 1), bytes(4, &number(1, 1))].concat()));
    message.extend(more.concat());
    message
}

pub fn sample(locations: &[u64], values: &[u64]) -> Vec<u8> {
    let pack = |numbers: &[u64]| numbers.iter().flat_map(|&n| varint(n)).collect::<Vec<u8>>();
    bytes(
        2,
        &[bytes(1, &pack(locations)), bytes(2, &pack(values))].concat(),
    )
}
