//! The pieces that recordings of perf are made of by hand.

/// Numbers of eight bytes.
pub fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Numbers of four bytes.
pub fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// A record: its type, its flags, and what follows its header.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = 8 + body.len() as u16;
    let header = [
        &kind.to_le_bytes()[..],
        &misc.to_le_bytes(),
        &size.to_le_bytes(),
    ]
    .concat();
    [header, body.to_vec()].concat()
}

/// Text and its NULs, up to a multiple of eight.
pub fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() / 8 + 1) * 8, 0);
    bytes
}
