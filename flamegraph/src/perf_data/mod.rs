//! `perf.data`, from `perf record`: read directly, in file and in pipe mode.
//!
//! What `perf script` would print of each sample is worked out here (who ran, where each address lies, the
//! name of the symbol there) and folded as stackcollapse-perf.pl would fold that text. A sample counts as
//! one, whatever its period. Not followed: inlined functions of debug information, and user stacks that
//! were copied (`--call-graph dwarf`), which are counted in [`Unknown::copied_stacks`].
//!
//! Sizes and names in the file are not believed; see `tests/perf_data.rs`.

mod demangle;
mod elf;
mod event;
mod files;
mod fold;
mod header;
mod modules;
mod processes;
mod records;
mod resolve;
mod samples;
mod space;
mod symbols;
mod text_tables;
mod unknown;
mod unpack;
mod visit;
mod wire;

pub(crate) use header::detect;
pub use unknown::Unknown;
pub use visit::{for_each_sample, SampleFrame, SampleView};

use std::io::Cursor;

use crate::error::Result;
use crate::input::Input;
use crate::options::ReadOptions;
use crate::profile::Profile;

/// Reads a perf.data file that is at hand or comes as a stream.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let bytes = input.into_bytes("bytes of a perf.data file", options.limits.perf_data_bytes)?;
    let samples = samples::Samples::new(Cursor::new(&bytes[..]), &options.symbols)?;
    fold::Folder::new(options).fold(samples)
}
