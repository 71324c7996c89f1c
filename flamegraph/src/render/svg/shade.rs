//! The shade of a frame within its hue: three numbers from 0 to below 1.

/// The shade by the whole name: the same in every picture.
pub(super) fn by_name(name: &str) -> [f64; 3] {
    let hash = fnv(name);
    let folded = (hash ^ (hash >> 32)) as u32;
    let part = |byte: u32| f64::from(byte % 256) / 256.0;
    [part(folded), part(folded >> 8), part(folded >> 16)]
}

/// The shade by the first and last letters of a name with its annotation.
pub(super) fn by_letters(annotated: &str) -> [f64; 3] {
    let from_start = by_first_letters(annotated.bytes());
    let from_end = by_first_letters(annotated.bytes().rev());
    [from_start, from_end, from_end]
}

/// FNV-1a, because colours must not change with the process or the version.
fn fnv(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// flamegraph.pl's hash of the first three letters after the module (which ends in a backtick). Each letter is a digit
/// with its own base, and weighs seven tenths of the previous one. An empty name has 1, others less.
fn by_first_letters(letters: impl Iterator<Item = u8> + Clone) -> f64 {
    let module = letters.clone().skip(1).position(|letter| letter == b'`');
    let behind = letters.skip(module.map_or(0, |at| at + 2));
    let (mut sum, mut most, mut weight) = (0.0, 1.0, 1.0);
    for (letter, base) in behind.zip(10u8..13) {
        sum += f64::from(letter % base) / f64::from(base - 1) * weight;
        most += weight;
        weight *= 0.7;
    }
    1.0 - sum / most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_names_have_like_shades_by_hash() {
        let hash = |name: &str| by_first_letters(name.bytes());
        assert_eq!(hash("memcpy"), hash("memcmp"));
        assert_eq!(hash("libc`memcpy"), hash("memcpy"));
        assert_eq!(hash("`c`memcpy"), hash("memcpy"));
        assert_ne!(hash("memcpy"), hash("strcpy"));
        assert_eq!(hash(""), 1.0);
        // a = 97: 7 of 9; b = 98: 10 of 10; weights 1 and 0.7, and 1 for nothing.
        let expected = 1.0 - (7.0 / 9.0 + 0.7) / 2.7;
        assert!((hash("ab") - expected).abs() < 1e-12);
    }
}
