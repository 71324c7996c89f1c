//! The names of a map: each once.

use crate::profile::{Error, Result};

/// Most bytes of one name, and of all names.
pub(super) const MOST_NAME: usize = 4096;
const MOST_BYTES: usize = 256 << 20;

/// The number of a name.
pub(super) type NameId = u32;

/// Names by number.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    text: String,
    ends: Vec<u32>,
}

impl NameTable {
    /// Adds a name, at most [`MOST_NAME`] bytes of it. Bytes that are no text are replaced, and so is the
    /// semicolon, which parts frames.
    pub(super) fn add(&mut self, name: &[u8]) -> Result<NameId> {
        let plain = |character: char| if character == ';' { ':' } else { character };
        for piece in name[..name.len().min(MOST_NAME)].utf8_chunks() {
            self.text.extend(piece.valid().chars().map(plain));
            if !piece.invalid().is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        if self.text.len() > MOST_BYTES {
            return Err(Error::Limit {
                what: "bytes of names in a map of compiled code",
                limit: MOST_BYTES as u64,
            });
        }
        self.ends.push(self.text.len() as u32);
        Ok(self.ends.len() as NameId - 1)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn name(&self, id: NameId) -> &str {
        let id = id as usize;
        let start = match id {
            0 => 0,
            _ => self.ends[id - 1] as usize,
        };
        &self.text[start..self.ends[id] as usize]
    }
}
