//! What a HotSpot JVM publishes of itself in `hsperfdata`, read without touching it.
//!
//! The file belongs to the JVM's user and may hold anything: every offset is checked.

use rustix::fs::{openat, Dir, Mode, OFlags, CWD};

use crate::files::read_regular;
use crate::identity::Shoes;

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const LIMIT: u64 = 4 << 20;
const MAX_ENTRIES: u32 = 20_000;

/// The options and flags the JVM says it was started with, from wherever they came; empty where it publishes nothing.
pub fn options(shoes: &Shoes, namespace_pid: i32) -> Vec<String> {
    let Some(bytes) = find(&shoes.path("/tmp"), shoes.uid, namespace_pid) else {
        return Vec::new();
    };
    // What came from a file of flags stands there as in that file, without what begins an option.
    let flags = text_entry(&bytes, "java.rt.vmFlags").unwrap_or_default();
    let flags = flags
        .split_ascii_whitespace()
        .map(|flag| format!("-XX:{flag}"));
    let arguments = text_entry(&bytes, "java.rt.vmArgs").unwrap_or_default();
    flags
        .chain(arguments.split_ascii_whitespace().map(str::to_owned))
        .collect()
}

/// The version the JVM says it is; `tmp` is where the caller finds the JVM's `/tmp`.
pub fn version(tmp: &str, uid: u32, namespace_pid: i32) -> Option<String> {
    text_entry(
        &find(tmp, uid, namespace_pid)?,
        "java.property.java.version",
    )
}

fn find(tmp: &str, uid: u32, namespace_pid: i32) -> Option<Vec<u8>> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let tmp = openat(
        CWD,
        tmp,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    for entry in Dir::read_from(&tmp).ok()?.flatten() {
        if !entry.file_name().to_bytes().starts_with(b"hsperfdata_") {
            continue;
        }
        let bytes = openat(&tmp, entry.file_name(), folder, Mode::empty())
            .ok()
            .and_then(|dir| read_regular(&dir, &namespace_pid.to_string(), Some(uid), LIMIT).ok());
        if bytes.is_some() {
            return bytes;
        }
    }
    None
}

/// The value of a text entry. Only the byte order of the machine is read: the JVM runs on it.
fn text_entry(bytes: &[u8], name: &str) -> Option<String> {
    if bytes.get(..4)? != MAGIC {
        return None;
    }
    let mut at = number(bytes, 24)? as usize;
    for _ in 0..number(bytes, 28)?.min(MAX_ENTRIES) {
        let length = number(bytes, at)? as usize;
        let entry = bytes.get(at..at.checked_add(length.max(20))?)?;
        if until_zero(entry.get(number(entry, 4)? as usize..)?) == name.as_bytes() {
            let value = until_zero(entry.get(number(entry, 16)? as usize..)?);
            return Some(String::from_utf8_lossy(value).into_owned());
        }
        at += entry.len();
    }
    None
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(24, 0);
        bytes.extend(32u32.to_ne_bytes());
        bytes.extend((entries.len() as u32).to_ne_bytes());
        for (name, value) in entries {
            let data = 20 + name.len() + 1;
            let length = data + value.len() + 1;
            bytes.extend((length as u32).to_ne_bytes());
            bytes.extend(20u32.to_ne_bytes());
            bytes.extend([0; 8]);
            bytes.extend((data as u32).to_ne_bytes());
            bytes.extend(format!("{name}\0{value}\0").bytes());
        }
        bytes
    }

    #[test]
    fn an_entry_by_its_name() {
        let bytes = file(&[("a", "1"), ("java.rt.vmArgs", "-Xmx1g -XX:+X"), ("b", "2")]);
        assert_eq!(
            text_entry(&bytes, "java.rt.vmArgs").as_deref(),
            Some("-Xmx1g -XX:+X")
        );
        assert_eq!(text_entry(&bytes, "java.rt"), None);
    }

    #[test]
    fn a_damaged_file_is_none() {
        let whole = file(&[("a", "1"), ("b", "2")]);
        for end in 0..whole.len() {
            text_entry(&whole[..end], "zz");
        }
        let mut endless = file(&[("a", "1")]);
        endless[28..32].fill(0xff);
        endless[32..36].fill(0);
        assert_eq!(text_entry(&endless, "zz"), None);
    }
}
