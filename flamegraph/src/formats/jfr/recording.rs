//! A recording as a whole: its profile, and what the call tree has no place for.

use std::io::Read;

use super::read;
use crate::formats::ReadOptions;
use crate::profile::{Profile, Result};
use crate::source::Input;

/// What a recording holds.
pub struct Recording {
    /// All values that were sampled; what could not be read is among its warnings.
    pub profile: Profile,
    /// For each thing that was sampled its values, and when.
    pub sampled: Vec<Sampled>,
    /// Samples that were left out: their stack is not in the recording, or they are damaged.
    pub lost: u64,
    /// The most wall-clock samples of one thread: a sampler that keeps up takes one each interval of a thread that
    /// lives throughout.
    pub wall_busiest: u64,
    /// When it began, in nanoseconds since 1970.
    pub start: i64,
    /// What async-profiler says it sampled CPU time by: `perf_events`, `ctimer`, `itimer`, `wall` ...
    pub engine: Option<String>,
}

/// One thing that was sampled.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// The profile's value that counts it.
    pub count: usize,
    /// The profile's value that says what it amounts to: time, bytes.
    pub amount: Option<usize>,
    /// Samples taken in each second since the recording began, at most 86,460 of them. Where values are
    /// estimates these are not.
    pub timeline: Vec<u64>,
}

/// Reads a recording of the JDK Flight Recorder's format chunk by chunk: no more than one of them is in
/// memory. One that was never finished is read as far as it goes; an error when nothing of it can be.
pub fn read_jfr(input: impl Read + Send, options: &ReadOptions) -> Result<Recording> {
    read::read(
        Input::stream(Box::new(std::io::BufReader::new(input)))?,
        options,
    )
}
