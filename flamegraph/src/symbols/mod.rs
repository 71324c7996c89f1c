//! Names of addresses: symbols of ELF files, of the kernel, and of code made at run time.

mod demangle;
mod elf;
mod elf_bytes;
mod files;
mod jit_map;
mod options;
mod python;
mod table;
mod text_tables;

pub(crate) mod bytes;

pub use demangle::demangle;
pub(crate) use elf::Elf;
pub use elf::Section;
pub(crate) use files::{Files, Proof};
pub use jit_map::{JitMap, JitMaps};
pub use options::{GoOn, Open, SymbolOptions};
pub use python::python_frame;
pub(crate) use table::{SymbolId, Symbols};

use std::io::Cursor;

/// The names that a symbol file (ELF, or the text of `/proc/kallsyms`) has for these addresses. For fuzzing such files
/// without a recording.
#[doc(hidden)]
pub fn symbols_at(file: &[u8], addresses: &[u64]) -> Option<Vec<Option<String>>> {
    let elf =
        elf::Elf::read(Cursor::new(file), &SymbolOptions::none()).map(|elf| elf.into_symbols(None));
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
