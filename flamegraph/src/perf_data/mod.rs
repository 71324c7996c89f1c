//! `perf.data`, from `perf record`: read directly, in file and in pipe mode.
//!
//! What `perf script` would print of each sample is worked out here (who ran, where each address lies, the
//! name of the symbol there) and folded as stackcollapse-perf.pl would fold that text. A sample counts as
//! one; its period is a second value. Not followed: inlined functions of debug information, and user stacks that
//! were copied (`--call-graph dwarf`), which are counted in [`Unknown::copied_stacks`].
//!
//! Sizes and names in the file are not believed; see `tests/perf_data.rs`.

mod demangle;
mod elf;
mod elf_bytes;
mod event;
mod event_values;
mod files;
mod fold;
mod grow;
mod header;
mod jit_map;
mod live;
mod modules;
mod processes;
mod records;
mod resolve;
mod samples;
mod space;
mod symbols;
mod text_tables;
mod unknown;
#[cfg(feature = "formats")]
mod unpack;
#[cfg(not(feature = "formats"))]
#[path = "unpack_refused.rs"]
mod unpack;
mod visit;
mod wire;

pub use demangle::demangle;
pub(crate) use header::detect;
pub use jit_map::{JitMap, JitMaps};
pub use live::{Counted, Finish, Live, LiveLimits, Recorded, RecordedEvent, Wanted};
pub use unknown::Unknown;
pub use visit::{for_each_sample, SampleFrame, SampleView};

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};

use crate::error::Result;
use crate::input::{Format, Input};
use crate::options::ReadOptions;
use crate::profile::Profile;
use symbols::Symbols;

/// The names that a file of symbols (ELF, or the text of `/proc/kallsyms`) has for these addresses: what a hostile
/// one does to us is seen best without a recording around it.
#[doc(hidden)]
pub fn symbols_at(file: &[u8], addresses: &[u64]) -> Option<Vec<Option<String>>> {
    let elf = elf::Elf::read(Cursor::new(file), &crate::SymbolOptions::none())
        .map(|elf| elf.into_symbols(None));
    Some(names_at(
        elf.or_else(|| text_tables::kallsyms(file))?,
        addresses,
    ))
}

/// The same for the text of a `perf-PID.map`.
#[doc(hidden)]
pub fn perf_map_at(text: &[u8], addresses: &[u64]) -> Vec<Option<String>> {
    names_at(text_tables::perf_map(text), addresses)
}

fn names_at(mut symbols: Symbols, addresses: &[u64]) -> Vec<Option<String>> {
    let name = |&address: &u64| symbols.find(address).map(|number| symbols.name(number));
    addresses.iter().map(name).collect()
}

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
