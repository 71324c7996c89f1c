//! pprof's `profile.proto`.
//!
//! A frame's plain name is the function's name, its annotated name the system name, so that kinds
//! survive. The profile's labels stand on every sample; read back, what all samples share are the
//! profile's labels.

mod read;
mod samples;
mod tables;
mod write;

pub(crate) use read::{detect, read_input};
