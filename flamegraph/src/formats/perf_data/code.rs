//! The code of one ELF file: the names of its frames, and what is needed to walk up its stacks.

use std::convert::Infallible;
use std::io::{Read, Seek};

use super::modules::UNKNOWN;
use crate::formats::options::PerfOptions;
use crate::formats::perf_script::{Names, StackLine};
use crate::symbols::{Elf, Section, SymbolOptions, Symbols};

/// An ELF file that a process runs.
pub struct Code {
    /// The file's virtual address of the first byte that was mapped.
    pub address: u64,
    /// `.eh_frame` and its index, if they are there.
    pub sections: Vec<Section>,
    symbols: Symbols,
}

impl Code {
    /// Reads a file whose code is mapped from this file offset on. `None` if it is not an ELF file.
    pub fn read(file: impl Read + Seek, offset: u64, options: &SymbolOptions) -> Option<Code> {
        let sections = &[".eh_frame", ".eh_frame_hdr"];
        let mut elf = Elf::read_with(file, options, sections)?;
        Some(Code {
            address: elf.code_address(offset)?,
            sections: elf.take_sections(),
            symbols: elf.into_symbols(None),
        })
    }

    /// The symbol at a file offset.
    pub fn symbol(&mut self, offset: u64) -> Option<String> {
        let symbol = self.symbols.find(offset)?;
        Some(self.symbols.name(symbol))
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        let sections = self.sections.iter().map(|section| section.bytes.len());
        self.symbols.bytes() + sections.sum::<usize>()
    }
}

/// The frame of a symbol of a module (a path), as profiles by perf have it. Without a symbol it is `[module]`.
pub fn frame_name(symbol: Option<&str>, module: &str) -> String {
    let line = StackLine {
        address: b"",
        symbol: symbol.unwrap_or(UNKNOWN).as_bytes(),
        module: module.as_bytes(),
    };
    let (options, mut found) = (PerfOptions::default(), String::new());
    let names = Names {
        options: &options,
        java: false,
    };
    let Ok(()) = names.each(&line, |name| {
        found = String::from_utf8_lossy(name).into_owned();
        Ok::<(), Infallible>(())
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_programs_own_functions_are_named() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let address = a_programs_own_functions_are_named as fn() as usize as u64;
        let (mapped, offset, path) = maps
            .lines()
            .find_map(|line| {
                let words: Vec<&str> = line.split_ascii_whitespace().collect();
                let (from, to) = words[0].split_once('-')?;
                let number = |text| u64::from_str_radix(text, 16).unwrap();
                let holds = (number(from)..number(to)).contains(&address);
                holds.then(|| (number(from), number(words[2]), words[5].to_owned()))
            })
            .unwrap();
        let file = File::open(&path).unwrap();
        let mut code = Code::read(file, offset, &SymbolOptions::none()).unwrap();
        let symbol = code.symbol(address - mapped + offset);
        let name = frame_name(symbol.as_deref(), &path);
        assert!(
            name.contains("a_programs_own_functions_are_named"),
            "{name}"
        );
        assert_eq!(code.sections.len(), 2);
        let moved = mapped.wrapping_sub(code.address);
        assert_eq!(moved % 4096, 0);
        assert_eq!(frame_name(None, "/lib/libx.so.1"), "[libx.so.1]");
    }
}
