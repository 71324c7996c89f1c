//! Profiles from folded text and back, for tests that say in text what they mean.

use flamegraph::{read, Format, Profile, ReadOptions};

pub fn samples(text: &str) -> Profile {
    read(text.as_bytes(), &ReadOptions::of(Some(Format::Folded))).unwrap()
}

pub fn text(profile: &Profile) -> String {
    let mut out = Vec::new();
    profile.write_folded(&mut out, 0, true).unwrap();
    String::from_utf8(out).unwrap()
}
