//! `perf.data`, from `perf record`: read directly, in file and in pipe mode.
//!
//! What `perf script` would print of each sample is worked out here (who ran, where each address lies, the
//! name of the symbol there) and folded as stackcollapse-perf.pl would fold that text. A sample counts as
//! one; its period is a second value. Not followed: inlined functions of debug information, and user stacks that
//! were copied (`--call-graph dwarf`), which are counted in [`Unknown::copied_stacks`].
//!
//! Sizes and names in the file are not believed; see `tests/perf_data.rs`.

mod event;
mod event_values;
mod fold;
mod grow;
mod header;
mod live;
mod modules;
mod processes;
mod records;
mod resolve;
mod samples;
mod space;
#[cfg(feature = "formats")]
mod unpack;
#[cfg(not(feature = "formats"))]
#[path = "unpack_refused.rs"]
mod unpack;
mod visit;

pub use crate::profile::Unknown;
pub use crate::symbols::{demangle, perf_map_at, symbols_at, JitMap, JitMaps};
pub(crate) use header::detect;
pub use live::{Counted, Finish, Live, LiveLimits, Recorded, RecordedEvent, Wanted};
pub use visit::{for_each_sample, SampleFrame, SampleView};

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};

use crate::formats::{Format, ReadOptions};
use crate::profile::{Profile, Result};
use crate::source::Input;

/// Reads a perf.data file that is at hand or comes as a stream.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let bytes = input.into_bytes("bytes of a perf.data file", options.limits.perf_data_bytes)?;
    fold(Cursor::new(&bytes[..]), options)
}

/// Reads a perf.data file without holding it in memory; `None` when it is not one.
pub(crate) fn read_file(file: &File, options: &ReadOptions) -> Result<Option<Profile>> {
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut head = Vec::new();
    input.by_ref().take(8).read_to_end(&mut head)?;
    input.rewind()?;
    if !detect(&head) {
        return Ok(None);
    }
    options.check_for(Format::PerfData)?;
    fold(input, options).map(Some)
}

fn fold(input: impl Read + Seek, options: &ReadOptions) -> Result<Profile> {
    let samples = samples::Samples::new(input, &options.symbols)?;
    fold::fold(samples, options)
}
