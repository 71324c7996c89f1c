//! What `/proc` tells of processes. They vanish at any time, which is never an error here.

pub mod attempt;
pub mod cmdline;
pub mod maps;
pub mod mask;
pub mod named;
pub mod open_files;
pub mod scan;
pub mod stat;
pub mod status;
pub mod target;
pub mod users;

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Read at most `limit` bytes; None where the file cannot be read (gone, or not ours to see).
pub fn read_bounded(path: impl AsRef<Path>, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(limit)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// As `read_bounded`, for text that a host made: what is not UTF-8 is replaced.
pub fn read_text(path: impl AsRef<Path>, limit: u64) -> Option<String> {
    read_bounded(path, limit).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
