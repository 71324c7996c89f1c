//! Recordings of the JDK Flight Recorder's format, as async-profiler and the JDK itself write them.
//!
//! A recording is a row of chunks, each complete in itself: a header, events, metadata that says how
//! events are laid out, and checkpoints with the constants they refer to by number. A chunk is held in
//! memory, and its constants are looked at only when a sample refers to them. Samples are counted by what
//! decides on their node (`places`); each place goes once to the tree (`grow`); its stack is decoded beside (`paths`). What is damaged or was never finished is counted, said, and left out.

mod bytes;
mod chunk;
mod columns;
mod events;
mod file_calls;
mod frames;
mod grow;
mod layout;
mod metadata;
mod names;
mod numbered;
mod paths;
mod places;
mod pools;
mod read;
mod recording;
mod samples;
mod settings;
mod stacks;
mod survey;
mod timeline;
mod weights;

pub(crate) use read::read_input;
pub use recording::{read_jfr, Recording, Sampled};

/// What every chunk begins with.
const MAGIC: &[u8] = b"FLR\0";

/// Whether a file that begins so is a recording.
pub(crate) fn detect(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}
