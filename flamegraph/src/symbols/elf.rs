//! Symbols of ELF files: programs, libraries, the vdso, and separate debug files.

use std::io::{Read, Seek};
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym};
use object::{Endianness, Pod, ReadRef};

use super::elf_bytes::{name_at, Bytes};
use crate::symbols::table::{Binding, Ends, Symbols, STUB};
use crate::symbols::{GoOn, SymbolOptions};

/// Most sections, and most segments.
const MOST_HEADERS: u32 = 1 << 20;
/// Most bytes of a section of notes.
const MOST_NOTES: u64 = 1 << 20;
/// Most PLT stubs.
const MOST_STUBS: usize = 1 << 20;
/// Most program headers that are searched for each symbol.
const MOST_SEGMENTS: usize = 256;
/// Most sections that symbols can be in, and most bytes of their names that are read.
const MOST_LABELLED: usize = 1 << 16;
const MOST_SECTION_NAME: usize = 256;
/// Most bytes of a symbol's name.
const MOST_NAME: usize = 64 << 10;
/// Symbols between two calls of `go_on`.
const OFTEN: usize = 1 << 14;

/// A loadable segment: its addresses, and where in the file they lie.
#[derive(Clone, Copy)]
struct Segment {
    address: u64,
    end: u64,
    offset: u64,
    executable: bool,
}

/// An ELF file that was opened for its symbols.
pub(crate) struct Elf {
    pub(crate) build_id: Option<Vec<u8>>,
    /// Whether it has the full table of symbols, not just the dynamic one.
    pub(crate) has_symtab: bool,
    segments: Vec<Segment>,
    /// With the file's virtual addresses.
    symbols: Symbols,
    /// The PLT stubs, through which other libraries are called.
    stubs: Symbols,
    /// The sections that were asked for, as far as there was room.
    sections: Vec<Section>,
}

/// A section of an ELF file, with its virtual address.
pub struct Section {
    /// Its name, such as `.eh_frame`.
    pub name: &'static str,
    /// Where it begins.
    pub address: u64,
    /// What it contains.
    pub bytes: Arc<[u8]>,
}

impl Elf {
    /// Reads a file's build id, segments and symbols; `None` if it is not an ELF file, or a broken one.
    pub(crate) fn read(file: impl Read + Seek, options: &SymbolOptions) -> Option<Elf> {
        Elf::read_with(file, options, &[])
    }

    /// The same, with these sections.
    pub(crate) fn read_with(
        mut file: impl Read + Seek,
        options: &SymbolOptions,
        sections: &[&'static str],
    ) -> Option<Elf> {
        let mut identity = [0; 5];
        file.read_exact(&mut identity).ok()?;
        let data = Bytes::new(file, options.memory as u64);
        match identity {
            [0x7f, b'E', b'L', b'F', 1] => {
                Elf::of::<FileHeader32<Endianness>, _>(&data, options, sections)
            }
            [0x7f, b'E', b'L', b'F', 2] => {
                Elf::of::<FileHeader64<Endianness>, _>(&data, options, sections)
            }
            _ => None,
        }
    }

    fn of<H, R>(data: &Bytes<R>, options: &SymbolOptions, wanted: &[&'static str]) -> Option<Elf>
    where
        H: FileHeader<Endian = Endianness>,
        R: Read + Seek,
    {
        let header = H::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let headers = (header.shnum(endian, data), header.phnum(endian, data));
        if headers.0.ok()? > MOST_HEADERS || headers.1.ok()? > MOST_HEADERS {
            return None;
        }
        let sections = header.sections(endian, data).ok()?;
        let mut file = File::<H, R> {
            header,
            endian,
            sections,
            section_names: &[],
            labelled: Vec::new(),
            data,
            go_on: &options.go_on,
        };
        file.name_sections();
        let mut elf = Elf {
            build_id: file.build_id(),
            segments: file.segments(),
            has_symtab: false,
            symbols: Symbols::mangled(options.memory),
            stubs: Symbols::mangled(options.memory),
            sections: wanted.iter().filter_map(|name| file.read(name)).collect(),
        };
        let dynamic = file.table(elf::SHT_DYNSYM);
        if let Some(dynamic) = &dynamic {
            file.add_plt(dynamic, &mut elf.stubs);
        }
        let full = file.table(elf::SHT_SYMTAB);
        elf.has_symtab = full.is_some();
        for table in [full, dynamic].iter().flatten() {
            file.add_table(table, &mut elf.symbols);
        }
        Some(elf)
    }

    /// The sections that were asked for.
    pub(crate) fn take_sections(&mut self) -> Vec<Section> {
        std::mem::take(&mut self.sections)
    }

    /// The virtual address of the code at a file offset. The offset may be up to a page before the code, because whole
    /// pages are mapped.
    pub(crate) fn code_address(&self, offset: u64) -> Option<u64> {
        const PAGE: u64 = 64 << 10;
        let holds = |segment: &&Segment| {
            let size = segment.end - segment.address;
            let end = segment.offset.saturating_add(size);
            segment.executable && offset < end && segment.offset <= offset.saturating_add(PAGE - 1)
        };
        let segment = self.segments.iter().find(holds)?;
        Some(
            offset
                .wrapping_sub(segment.offset)
                .wrapping_add(segment.address),
        )
    }

    /// The table of these symbols by file offset. `debug` is the separate debug file: its symbols are used unless there
    /// was no room for them, with the segments of this file.
    pub(crate) fn into_symbols(self, debug: Option<Elf>) -> Symbols {
        let mut symbols = self.symbols;
        if let Some(full) = debug.map(|debug| debug.symbols) {
            match full.left_out == 0 || full.len() >= symbols.len() {
                true => symbols = full,
                false => symbols.left_out += full.left_out,
            }
        }
        symbols.append(&self.stubs);
        symbols.move_to(|address| place(&self.segments, address));
        symbols.finish(Ends::Next);
        symbols
    }
}

/// The file offset of an address.
fn place(segments: &[Segment], address: u64) -> Option<u64> {
    let holds = |segment: &&Segment| segment.address <= address && address < segment.end;
    let segment = segments.iter().find(holds)?;
    Some((address - segment.address).wrapping_add(segment.offset))
}

/// A table of symbols and their names.
struct Table<'a, S> {
    symbols: &'a [S],
    names: &'a [u8],
    /// Symbols that are not read, because there is no room for all of them.
    unread: u64,
}

struct File<'a, H: FileHeader, R: Read + Seek> {
    header: &'a H,
    endian: Endianness,
    sections: SectionTable<'a, H, &'a Bytes<R>>,
    section_names: &'a [u8],
    /// Which sections have labels of assembly code or data.
    labelled: Vec<bool>,
    data: &'a Bytes<R>,
    go_on: &'a GoOn,
}

impl<'a, H: FileHeader<Endian = Endianness>, R: Read + Seek> File<'a, H, R> {
    fn segments(&self) -> Vec<Segment> {
        let headers = self.header.program_headers(self.endian, self.data);
        let headers = headers.unwrap_or_default().iter().take(MOST_SEGMENTS);
        headers
            .filter(|segment| segment.p_type(self.endian) == elf::PT_LOAD)
            .map(|segment| {
                let address = segment.p_vaddr(self.endian).into();
                Segment {
                    address,
                    end: address.saturating_add(segment.p_memsz(self.endian).into()),
                    offset: segment.p_offset(self.endian).into(),
                    executable: segment.p_flags(self.endian).contains(elf::PF_X),
                }
            })
            .collect()
    }

    fn build_id(&self) -> Option<Vec<u8>> {
        for section in self.sections.iter() {
            if section.sh_size(self.endian).into() > MOST_NOTES {
                continue;
            }
            let Ok(Some(mut notes)) = section.notes(self.endian, self.data) else {
                continue;
            };
            while let Ok(Some(note)) = notes.next() {
                if note.name() == elf::ELF_NOTE_GNU
                    && note.n_type(self.endian) == elf::NT_GNU_BUILD_ID
                {
                    return Some(note.desc().to_vec());
                }
            }
        }
        None
    }

    /// Read the names of sections, and which of them have labels.
    fn name_sections(&mut self) -> Option<()> {
        let names = self.header.shstrndx(self.endian, self.data).ok()?;
        let names = self.sections.section(object::SectionIndex(names as usize));
        self.section_names = names.ok()?.data(self.endian, self.data).ok()?;
        let is_labelled = |section: &H::SectionHeader| {
            let name = section.sh_name(self.endian);
            let name = name_at(self.section_names, name, MOST_SECTION_NAME);
            name.is_some_and(|name| contains(name, b"text") || contains(name, b"data"))
        };
        let sections = self.sections.iter().take(MOST_LABELLED);
        self.labelled = sections.map(is_labelled).collect();
        Some(())
    }

    /// The section of this name.
    fn section(&self, name: &[u8]) -> Option<&'a H::SectionHeader> {
        let is_named = |section: &&H::SectionHeader| {
            let its = section.sh_name(self.endian);
            name_at(self.section_names, its, name.len()) == Some(name)
        };
        self.sections.iter().find(is_named)
    }

    fn read(&self, name: &'static str) -> Option<Section> {
        let section = self.section(name.as_bytes())?;
        Some(Section {
            name,
            address: section.sh_addr(self.endian).into(),
            bytes: section.data(self.endian, self.data).ok()?.into(),
        })
    }

    /// The symbols of a table and their names; empty if there is no room for both.
    fn table(&self, kind: elf::SectionType) -> Option<Table<'a, H::Sym>> {
        let mut all = self.sections.iter();
        let section = all.find(|section| section.sh_type(self.endian) == kind)?;
        let names = self.sections.section(section.link(self.endian)).ok()?;
        let size = |section: &H::SectionHeader| u128::from(section.sh_size(self.endian).into());
        if size(section) + size(names) > self.data.left().into() {
            let unread = section.sh_size(self.endian).into() / size_of::<H::Sym>() as u64;
            let (symbols, names) = (&[][..], &[][..]);
            return Some(Table {
                symbols,
                names,
                unread,
            });
        }
        Some(Table {
            symbols: self.entries(section)?,
            names: self.entries(names)?,
            unread: 0,
        })
    }

    /// A section's entries.
    fn entries<T: Pod>(&self, section: &H::SectionHeader) -> Option<&'a [T]> {
        let (offset, size) = section.file_range(self.endian)?;
        let count = size / size_of::<T>() as u64;
        self.data.read_slice_at(offset, count as usize).ok()
    }

    fn add_table(&self, table: &Table<'a, H::Sym>, to: &mut Symbols) {
        to.left_out += table.unread;
        let mut room = names_room(table.names);
        for (number, symbol) in table.symbols.iter().enumerate() {
            if number % OFTEN == 0 && !self.go_on.ask() {
                to.left_out += (table.symbols.len() - number) as u64;
                break;
            }
            if !self.is_wanted(symbol) {
                continue;
            }
            let Some(name) = name_at(table.names, symbol.st_name(self.endian), MOST_NAME) else {
                continue;
            };
            if is_nameless(symbol, name) {
                continue;
            }
            let Some(left) = room.checked_sub(name.len()) else {
                to.left_out += 1;
                continue;
            };
            room = left;
            let address = symbol.st_value(self.endian).into();
            let size = symbol.st_size(self.endian).into();
            to.add(address, size, name, binding(symbol.st_bind()));
        }
    }

    /// Functions, objects, and labels of assembly code.
    fn is_wanted(&self, symbol: &H::Sym) -> bool {
        let section = symbol.st_shndx(self.endian);
        if section == elf::SHN_UNDEF || section == elf::SHN_ABS {
            return false;
        }
        match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_OBJECT => true,
            elf::STT_NOTYPE => self.is_label(symbol),
            _ => false,
        }
    }

    fn is_label(&self, symbol: &H::Sym) -> bool {
        let visible = symbol.st_visibility();
        let section = usize::from(symbol.st_shndx(self.endian).0);
        visible != elf::STV_HIDDEN
            && visible != elf::STV_INTERNAL
            && self.labelled.get(section) == Some(&true)
    }

    /// The stubs through which other libraries are called: `name@plt`.
    fn add_plt(&self, dynamic: &Table<'a, H::Sym>, stubs_found: &mut Symbols) -> Option<()> {
        let stubs = self.section(b".plt")?;
        let start: u64 = stubs.sh_addr(self.endian).into();
        let machine = self.header.e_machine(self.endian);
        let (head, each) = match machine {
            elf::EM_AARCH64 => (32, 16),
            elf::EM_X86_64 => (16, 16),
            _ => return None,
        };
        // With control-flow protection, calls go to separate stubs without a header.
        let second = self.section(b".plt.sec");
        let second = second.map(|section| section.sh_addr(self.endian).into());
        let calls = self.entries(self.section(b".rela.plt")?)?;
        let mut room = names_room(dynamic.names);
        for (number, name) in self.called(dynamic, calls).into_iter().enumerate() {
            let Some(name) = name else { continue };
            let Some(left) = room.checked_sub(name.len()) else {
                break;
            };
            room = left;
            let name = [name, STUB.as_bytes()].concat();
            let offset = each * number as u64;
            for address in std::iter::once(start.saturating_add(head)).chain(second) {
                let address = address.saturating_add(offset);
                stubs_found.add(address, each, &name, Binding::Global);
            }
        }
        Some(())
    }

    /// The function that each stub calls.
    ///
    /// Stubs are in the order of the slots that they jump through. Relocations may not be: in the C library those of
    /// ifuncs come last.
    fn called(&self, dynamic: &Table<'a, H::Sym>, calls: &[H::Rela]) -> Vec<Option<&'a [u8]>> {
        let symbols = dynamic.symbols;
        let mut calls: Vec<&H::Rela> = calls.iter().take(MOST_STUBS).collect();
        calls.sort_by_key(|call| call.r_offset(self.endian).into());
        let chosen = self.chosen(&calls, symbols);
        let called = calls.iter().map(|call| {
            let symbol = match call.r_sym(self.endian, false) {
                0 => *chosen.get(&self.addend(call))?,
                number => symbols.get(number as usize)?,
            };
            let name = name_at(dynamic.names, symbol.st_name(self.endian), MOST_NAME);
            name.filter(|name| !name.is_empty())
        });
        called.collect()
    }

    /// The ifuncs that calls refer to, by the address of their resolver; such a call names only that address.
    fn chosen(&self, calls: &[&H::Rela], symbols: &'a [H::Sym]) -> HashMap<u64, &'a H::Sym> {
        let nameless = calls
            .iter()
            .filter(|call| call.r_sym(self.endian, false) == 0);
        let places: HashSet<u64> = nameless.map(|call| self.addend(call)).collect();
        let mut chosen: HashMap<u64, &H::Sym> = HashMap::default();
        for symbol in symbols {
            let place = symbol.st_value(self.endian).into();
            if symbol.st_type() != elf::STT_GNU_IFUNC || !places.contains(&place) {
                continue;
            }
            // Of several names prefer the standard one: the others are weak.
            let best = chosen.entry(place).or_insert(symbol);
            if best.st_bind() == elf::STB_WEAK {
                *best = symbol;
            }
        }
        chosen
    }

    fn addend(&self, call: &H::Rela) -> u64 {
        let addend: i64 = call.r_addend(self.endian).into();
        addend as u64
    }
}

/// Bytes of the names of all symbols together: some symbols share a name, but in a hostile file all share a long one.
fn names_room(names: &[u8]) -> usize {
    const SHARED: usize = 1 << 20;
    names.len().saturating_mul(2).saturating_add(SHARED)
}

/// Whether a symbol has no useful name: it is empty, or an ARM mapping symbol.
fn is_nameless<S: Sym>(symbol: &S, name: &[u8]) -> bool {
    let is_mark = || matches!(name, [b'$', b'a' | b'd' | b't' | b'x', ..]);
    name.is_empty() || symbol.st_type() == elf::STT_NOTYPE && is_mark()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn binding(bind: elf::SymbolBind) -> Binding {
    match bind {
        elf::STB_WEAK => Binding::Weak,
        elf::STB_GLOBAL => Binding::Global,
        _ => Binding::Local,
    }
}

#[cfg(test)]
mod tests;
