//! `/proc/PID/smaps`: each mapping, and how much of it is in memory.

use std::io::{BufRead, BufReader, Read};

use crate::os::proc::maps::{mapping, Mapping};

/// No more is read: a process has at most 65,530 mappings, of some 700 bytes each, unless the host allows more.
const LIMIT: u64 = 256 << 20;

pub struct Piece {
    pub mapping: Mapping,
    pub resident: u64,
    pub proportional: u64,
    pub swap: u64,
    /// Mapped without a reservation of memory (`MAP_NORESERVE`), as glibc does for its arenas.
    pub unreserved: bool,
}

impl Piece {
    pub fn size(&self) -> u64 {
        self.mapping.range.end - self.mapping.range.start
    }

    /// Reserved, or a guard: nobody may touch it.
    pub fn is_protected(&self) -> bool {
        self.mapping.is_anonymous() && &self.mapping.permissions == b"---p"
    }
}

/// None: it cannot be read, or not to its end.
pub fn pieces(smaps: impl Read) -> Option<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut smaps = BufReader::new(smaps.take(LIMIT));
    let mut line = Vec::new();
    while smaps.read_until(b'\n', &mut line).ok()? > 0 {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        if let Some(mapping) = mapping(text) {
            pieces.push(Piece {
                mapping,
                resident: 0,
                proportional: 0,
                swap: 0,
                unreserved: false,
            });
        } else if let (Some(piece), Some((name, value))) = (pieces.last_mut(), text.split_once(':'))
        {
            let bytes = || {
                let kibibytes: Option<u64> = value.trim().strip_suffix(" kB")?.parse().ok();
                kibibytes.map(|number| number.saturating_mul(1024))
            };
            match name {
                "Rss" => piece.resident = bytes()?,
                "Pss" => piece.proportional = bytes()?,
                "Swap" => piece.swap = bytes()?,
                "VmFlags" => {
                    piece.unreserved = value.split_ascii_whitespace().any(|one| one == "nr")
                }
                _ => {}
            }
        }
        line.clear();
    }
    (smaps.into_inner().limit() > 0 && !pieces.is_empty()).then_some(pieces)
}
