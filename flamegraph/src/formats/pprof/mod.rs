//! pprof's `profile.proto`.
//!
//! A frame's plain name is the function's name and its annotated name the system name, which keeps the kinds. Every
//! sample has the profile's labels. A reader makes the labels that all samples share the profile's.

mod mappings;
mod proto;
mod prune;
mod read;
mod samples;
mod tables;
mod threads;
mod write;

/// The label that names a sample's thread.
const THREAD: &str = "thread";

pub(crate) use read::{detect, read_input};
#[cfg(feature = "formats")]
pub(crate) use tables::intern_function;
pub(crate) use write::{Stack, Strings};
