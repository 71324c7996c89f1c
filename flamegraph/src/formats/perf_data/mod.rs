//! `perf.data`, from `perf record`: read directly, in file and in pipe mode.
//!
//! What `perf script` would print of each sample is worked out here (who ran, where each address lies, the
//! name of the symbol there) and folded as stackcollapse-perf.pl would fold that text. A sample counts as
//! one; its period is a second value. Not followed: inlined functions of debug information, and user stacks that
//! were copied (`--call-graph dwarf`), which are counted in [`Unknown::copied_stacks`].
//!
//! Sizes and names in the file are not believed; see `tests/perf_data.rs`.

mod code;
mod event;
mod file;
mod finish;
mod groups;
mod header;
mod live;
mod modules;
mod moments;
mod naming;
mod off_cpu;
mod processes;
mod records;
mod space;
mod stacks;
mod take;
mod tally;
mod unpack;

pub use self::code::{frame_name, Code};
pub use crate::profile::Unknown;
pub use crate::symbols::{demangle, perf_map_at, symbols_at, JitMap, JitMaps, Section};
pub(crate) use header::detect;
pub use live::{Counted, Finish, Live, LiveLimits, Recorded, RecordedEvent, Wanted};

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};

use crate::formats::{Format, ReadOptions};
use crate::profile::{Profile, Result};
use crate::source::Input;

/// Reads a perf.data file that is at hand or comes as a stream.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let bytes = input.into_bytes("bytes of a perf.data file", options.limits.perf_data_bytes)?;
    file::read(Cursor::new(&bytes[..]), options)
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
    file::read(input, options).map(Some)
}
