//! Profiles to texts and back, as several of these tests need it.

use flamegraph::{read, write, Profile, ReadOptions, WriteFormat, WriteOptions};

pub fn detected(bytes: &[u8]) -> Result<Profile, String> {
    read(bytes, &ReadOptions::default()).map_err(|error| error.to_string())
}

pub fn written(profile: &Profile, format: WriteFormat) -> Vec<u8> {
    let mut out = Vec::new();
    write(profile, format, &mut out, &WriteOptions::default()).unwrap();
    out
}

pub fn folded(profile: &Profile, value: usize) -> String {
    let mut out = Vec::new();
    profile.write_folded(&mut out, value, true).unwrap();
    String::from_utf8(out).unwrap()
}
