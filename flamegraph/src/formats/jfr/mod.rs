//! Recordings of the JDK Flight Recorder's format, as async-profiler and the JDK itself write them.
//!
//! A recording is a row of chunks, each complete in itself: a header, events, metadata that says how
//! events are laid out, and checkpoints with the constants they refer to by number. A chunk is held in
//! memory, and its constants are decoded only when a sample refers to them. Samples are counted by place (`places`);
//! the stack of each place is decoded once on a second thread and added to the tree (`grow`). Damaged and
//! unfinished parts are left out, with a warning.

mod allocations;
mod bytes;
mod chunk;
mod clock;
mod columns;
mod events;
mod grow;
mod layout;
mod metadata;
mod moments;
mod names;
mod numbered;
mod places;
mod pools;
mod read;
mod samples;
mod settings;
mod stacks;
mod unfreed;
mod weights;

pub(crate) use read::read_input;
pub use read::{read_jfr, read_jfr_part, Recording, Sampled, MOST_LIVE};
pub use settings::Settings;
pub use unfreed::unfreed;

/// What every chunk begins with.
const MAGIC: &[u8] = b"FLR\0";

/// Whether a file that begins so is a recording.
pub(crate) fn detect(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}
