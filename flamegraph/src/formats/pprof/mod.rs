//! pprof's `profile.proto`.
//!
//! A frame's plain name is the function's name, its annotated name the system name, so that kinds
//! survive. The profile's labels stand on every sample; read back, what all samples share are the
//! profile's labels.

mod mappings;
mod proto;
mod read;
mod samples;
mod tables;
mod threads;
mod write;

/// The label that names a sample's thread.
const THREAD: &str = "thread";

pub(crate) use read::{detect, read_input};
