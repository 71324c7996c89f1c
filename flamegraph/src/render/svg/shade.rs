//! The shade of a frame within its hue: three numbers from 0 to 1, below 1.

use std::hash::{BuildHasher, RandomState};

use super::options::Shades;

/// Picks shades.
pub(super) enum Shader {
    Name,
    Hash,
    /// Seeded by chance, anew for each picture.
    Random(RandomState),
}

impl Shader {
    pub(super) fn new(shades: Shades) -> Shader {
        match shades {
            Shades::Name => Shader::Name,
            Shades::Hash => Shader::Hash,
            Shades::Random => Shader::Random(RandomState::new()),
        }
    }

    /// The shade of a name, which stands with its annotation in `annotated`.
    pub(super) fn shade(&self, name: &str, annotated: &str) -> [f64; 3] {
        match self {
            Shader::Name => parts(fnv(name)),
            Shader::Hash => {
                let from_start = by_first_letters(annotated.bytes());
                let from_end = by_first_letters(annotated.bytes().rev());
                [from_start, from_end, from_end]
            }
            Shader::Random(seed) => parts(seed.hash_one(name)),
        }
    }
}

fn parts(hash: u64) -> [f64; 3] {
    let folded = (hash ^ (hash >> 32)) as u32;
    let part = |byte: u64| (byte % 256) as f64 / 256.0;
    [
        part(u64::from(folded)),
        part(u64::from(folded >> 8)),
        part(u64::from(folded >> 16)),
    ]
}

/// FNV-1a: the colours must not change with the process or the version.
fn fnv(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// flamegraph.pl's hash: the first three letters behind the module (what ends in a backtick), each a digit
/// of its own base that weighs seven tenths of the one before; 1 for nothing, less for more.
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

    #[test]
    fn a_name_keeps_its_shade_unless_it_is_random() {
        let by_name = Shader::new(Shades::Name);
        assert_eq!(by_name.shade("f", "f_[j]"), by_name.shade("f", "f"));
        assert_ne!(by_name.shade("f", "f"), by_name.shade("g", "g"));
        let shades = || {
            let random = Shader::new(Shades::Random);
            ["a", "b", "c"].map(|name| random.shade(name, name))
        };
        assert!(shades() != shades(), "two pictures alike");
    }
}
