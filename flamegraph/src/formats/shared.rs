//! What two pieces of bytes have in common.

/// How many bytes two pieces end with that are the same.
pub(crate) fn shared_suffix(one: &[u8], other: &[u8]) -> usize {
    const WORD: usize = 8;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let mut shared = 0;
    for (one, other) in one.rchunks_exact(WORD).zip(other.rchunks_exact(WORD)) {
        let unlike = word(one) ^ word(other);
        if unlike != 0 {
            return shared + unlike.leading_zeros() as usize / 8;
        }
        shared += WORD;
    }
    let rest = |bytes: &[u8]| bytes.len() - shared;
    let pairs = one[..rest(one)]
        .iter()
        .rev()
        .zip(other[..rest(other)].iter().rev());
    shared + pairs.take_while(|(one, other)| one == other).count()
}

/// How many bytes two pieces begin with that are the same.
pub(crate) fn shared_prefix(one: &[u8], other: &[u8]) -> usize {
    const WORD: usize = 8;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let mut shared = 0;
    for (one, other) in one.chunks_exact(WORD).zip(other.chunks_exact(WORD)) {
        let unlike = word(one) ^ word(other);
        if unlike != 0 {
            return shared + unlike.trailing_zeros() as usize / 8;
        }
        shared += WORD;
    }
    let rest = one[shared..].iter().zip(&other[shared..]);
    shared + rest.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_counted_by_byte() {
        for (one, other, shared) in [
            ("", "a", 0),
            ("xbc", "abc", 2),
            ("abcdefghi", "abcdefghi", 9),
            ("abcdXfghijklmnop", "abcdefghijklmnop", 11),
            ("abcdefgh", "zabcdefgh", 8),
        ] {
            assert_eq!(shared_suffix(one.as_bytes(), other.as_bytes()), shared);
        }
    }

    #[test]
    fn prefixes_are_counted_by_byte() {
        for (one, other, shared) in [
            ("", "a", 0),
            ("abc", "abd", 2),
            ("abcdefghi", "abcdefghi", 9),
            ("abcdefghijklmnop", "abcdefghijklXnop", 12),
            ("abcdefgh", "abcdefghi", 8),
        ] {
            assert_eq!(shared_prefix(one.as_bytes(), other.as_bytes()), shared);
        }
    }
}
