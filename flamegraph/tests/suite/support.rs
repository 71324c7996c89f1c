//! Profiles from bytes and back, and the few encodings that tests write by hand.

use std::io::{Read, Write};

use flamegraph::svg::Options;
use flamegraph::{read, write, Format, Profile, ReadOptions, ValueType, WriteFormat, WriteOptions};
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::Compression;

/// A profile of folded text.
pub fn samples(text: &str) -> Profile {
    read(text.as_bytes(), &ReadOptions::of(Some(Format::Folded))).unwrap()
}

/// A profile of samples and CPU time; rows are a stack and its two values.
pub fn two_values<S: AsRef<[u8]>>(rows: &[(Vec<S>, i64, i64)]) -> Profile {
    let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
    for (stack, samples, nanoseconds) in rows {
        profile.add_stack(stack, &[*samples, *nanoseconds]).unwrap();
    }
    profile
}

/// What is read where the format is not named.
pub fn detected(bytes: &[u8]) -> Result<Profile, String> {
    read(bytes, &ReadOptions::default()).map_err(|error| error.to_string())
}

/// Folded text of one value.
pub fn folded(profile: &Profile, value: usize) -> String {
    let mut out = Vec::new();
    profile.write_folded(&mut out, value, true).unwrap();
    String::from_utf8(out).unwrap()
}

/// Folded text of the first value.
pub fn text(profile: &Profile) -> String {
    folded(profile, 0)
}

pub fn written(profile: &Profile, format: WriteFormat) -> Vec<u8> {
    let mut out = Vec::new();
    write(profile, format, &mut out, &WriteOptions::default()).unwrap();
    out
}

pub fn svg(profile: &Profile, options: &Options) -> String {
    let mut out = Vec::new();
    profile.write_svg(&mut out, 0, options).unwrap();
    String::from_utf8(out).unwrap()
}

/// The message of a refusal.
pub fn error<T>(result: flamegraph::Result<T>) -> String {
    result.err().unwrap().to_string()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    MultiGzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

/// A compact profile with this body.
pub fn compact(body: &[u8]) -> Vec<u8> {
    compact_of(b"HPT1", body)
}

/// The same that begins so.
pub fn compact_of(magic: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = ZlibEncoder::new(magic.to_vec(), Compression::fast());
    out.write_all(body).unwrap();
    out.finish().unwrap()
}

pub fn inflated(packed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut out).unwrap();
    out
}

/// The body of a compact profile.
pub fn body(file: &[u8]) -> Vec<u8> {
    inflated(&file[4..])
}
