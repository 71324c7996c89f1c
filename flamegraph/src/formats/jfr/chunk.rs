//! Chunks, one after the other, and the events of each.

use std::io::Read;

use super::bytes::Cursor;
use super::metadata::Types;
use super::MAGIC;
use crate::profile::{Error, Result};
use crate::source::Input;

pub(super) const HEADER_BYTES: usize = 68;
/// The longest recording in nanoseconds: a day, and the time to end it.
const LONGEST: i128 = 90_000 * 1_000_000_000;
/// Kinds of events that every chunk has.
pub(super) const METADATA: u64 = 0;
pub(super) const CHECKPOINT: u64 = 1;

/// What stands at the beginning of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Bytes of the whole chunk; 0 when it was never finished.
    size: u64,
    /// When it began, in nanoseconds since 1970 and in ticks.
    pub(super) start: i64,
    pub(super) start_ticks: i64,
    pub(super) ticks_per_second: i64,
}

impl Header {
    fn read(bytes: &[u8], place: u64) -> Result<Header> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            i64::from_be_bytes(word)
        };
        let major = u16::from_be_bytes([bytes[4], bytes[5]]);
        if major != 2 {
            return Err(damaged(
                place,
                format!(
                    "version {major} of the format cannot be read; version 2 can, which JDK 9 and later write, \
                     async-profiler, and JDK 8 from OpenJDK 8u262 on"
                ),
            ));
        }
        if bytes[67] & 1 == 0 {
            return Err(damaged(place, "its integers are not compressed"));
        }
        Ok(Header {
            size: word(8) as u64,
            start: word(32),
            start_ticks: word(48),
            ticks_per_second: word(56).max(1),
        })
    }
}

impl Header {
    /// Nanoseconds since another chunk began, by the ticks of one machine; none where these do not go on from there.
    pub(super) fn ticks_since(&self, earlier: &Header) -> Option<i64> {
        let ticks = self.start_ticks.checked_sub(earlier.start_ticks)?;
        let nanoseconds = i128::from(ticks) * 1_000_000_000 / i128::from(self.ticks_per_second);
        let one = self.ticks_per_second == earlier.ticks_per_second;
        (one && (0..=LONGEST).contains(&nanoseconds)).then_some(nanoseconds as i64)
    }
}

/// An error at a byte of the recording.
pub(super) fn damaged(place: u64, reason: impl std::fmt::Display) -> Error {
    Error::Jfr {
        place,
        reason: reason.to_string(),
    }
}

/// One chunk in memory, its header included.
pub(super) struct Chunk {
    pub(super) header: Header,
    pub(super) bytes: Vec<u8>,
    /// Where in the recording it begins.
    pub(super) place: u64,
    /// Whether all of it is there.
    pub(super) whole: bool,
}

/// The chunks of a recording.
pub(super) struct Chunks<'a> {
    input: Input<'a>,
    place: u64,
    /// Bytes of a chunk.
    limit: u64,
}

impl<'a> Chunks<'a> {
    pub(super) fn of(input: Input<'a>, limit: u64) -> Chunks<'a> {
        Chunks {
            input,
            place: 0,
            limit,
        }
    }

    /// The next chunk; `spent` is an earlier one whose memory may be used again.
    pub(super) fn next(&mut self, spent: Vec<u8>) -> Result<Option<Chunk>> {
        let (mut bytes, place) = (spent, self.place);
        bytes.clear();
        self.fill(&mut bytes, HEADER_BYTES as u64)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
            return Err(damaged(place, "no chunk begins here"));
        }
        if bytes.len() < HEADER_BYTES {
            return Err(damaged(
                place,
                "the recording ends within the header of a chunk",
            ));
        }
        let header = Header::read(&bytes, place)?;
        let sized = header.size >= HEADER_BYTES as u64;
        let rest = if sized {
            header.size - HEADER_BYTES as u64
        } else {
            u64::MAX
        };
        // A killed profiler leaves a size larger than what it wrote. Read what is there.
        self.fill(&mut bytes, rest)?;
        let whole = sized && bytes.len() as u64 == header.size;
        Ok(Some(Chunk {
            header,
            bytes,
            place,
            whole,
        }))
    }

    /// Reads this many bytes more, or what there is.
    fn fill(&mut self, bytes: &mut Vec<u8>, count: u64) -> Result<()> {
        let room = (self.limit + 1).saturating_sub(bytes.len() as u64);
        self.place += self
            .input
            .by_ref()
            .take(count.min(room))
            .read_to_end(bytes)? as u64;
        if bytes.len() as u64 > self.limit {
            return Err(Error::Limit {
                what: "bytes of a chunk",
                limit: self.limit,
            });
        }
        Ok(())
    }
}

/// One event: its kind, and where its fields begin and end within the chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) kind: u64,
    pub(super) fields: usize,
    pub(super) end: usize,
}

/// The events of a chunk in their order; ends at the first that cannot be one.
pub(super) struct Events<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Events<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Events<'a> {
        Events {
            bytes,
            at: HEADER_BYTES,
        }
    }

    /// Where the next event should begin; the end of the chunk, once all were seen.
    pub(super) fn at(&self) -> usize {
        self.at
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        let mut cursor = Cursor::new(self.bytes, self.at);
        let size = usize::try_from(cursor.number()?).ok()?;
        let kind = cursor.number()?;
        let end = self.at.checked_add(size)?;
        if end > self.bytes.len() || end < cursor.at() {
            return None;
        }
        self.at = end;
        Some(Event {
            kind,
            fields: cursor.at(),
            end,
        })
    }
}

/// The positions of metadata and checkpoints in a chunk.
pub(super) struct Survey {
    metadata: Option<Event>,
    pub(super) checkpoints: Vec<Event>,
    /// Where the events end that can be read.
    pub(super) end: usize,
}

impl Survey {
    pub(super) fn of(chunk: &Chunk) -> Survey {
        let mut survey = Survey {
            metadata: None,
            checkpoints: Vec::new(),
            end: 0,
        };
        let mut events = Events::of(&chunk.bytes);
        for event in events.by_ref() {
            match event.kind {
                // The last is the most complete.
                METADATA => survey.metadata = Some(event),
                CHECKPOINT => survey.checkpoints.push(event),
                _ => {}
            }
        }
        survey.end = events.at();
        survey
    }

    pub(super) fn types<'a>(&self, chunk: &'a Chunk) -> Option<Types<'a>> {
        let event = self.metadata?;
        Types::read(Cursor::new(&chunk.bytes[..event.end], event.fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_on_where_a_clock_is_set() {
        let header = |start_ticks, ticks_per_second| Header {
            size: 0,
            start: 0,
            start_ticks,
            ticks_per_second,
        };
        let first = header(1_000, 100);
        for (later, want) in [
            (header(1_500, 100), Some(5_000_000_000)),
            (header(1_000, 100), Some(0)),
            // Another machine's, or another JVM's.
            (header(999, 100), None),
            (header(1_500, 101), None),
            (header(i64::MAX, 100), None),
            (header(i64::MIN, 100), None),
        ] {
            assert_eq!(later.ticks_since(&first), want, "{later:?}");
        }
    }
}
