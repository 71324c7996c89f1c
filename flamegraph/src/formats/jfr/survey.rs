//! A first walk over a chunk: where its metadata and its checkpoints are, and how far it can be read.
//!
//! The header says so too, but not of a chunk that was never finished or is cut off.

use super::bytes::Cursor;
use super::chunk::{Chunk, Event, Events, CHECKPOINT, METADATA};
use super::metadata::Types;

/// Where in a chunk the things are that the rest is read by.
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
