//! What records. An engine turns a sampling into commands, and what they wrote into a profile.

pub mod async_profiler;
