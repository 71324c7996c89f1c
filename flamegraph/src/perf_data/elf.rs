//! Symbols of ELF files: programs, libraries, the vdso, and the files their symbols were split off to.

use std::io::{Read, Seek};

use foldhash::{HashMap, HashSet};
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym};
use object::Endianness;

use super::elf_bytes::{Bytes, Names};
use super::symbols::{Binding, Ends, Room, Symbols, STUB};
use crate::options::{GoOn, SymbolOptions};

/// Most sections, and most segments.
const MOST_HEADERS: u32 = 1 << 20;
/// Most bytes of a section of notes.
const MOST_NOTES: u64 = 1 << 20;
/// Most stubs for calls of other libraries.
const MOST_STUBS: usize = 1 << 20;
/// Most program headers that are looked at for each symbol.
const MOST_SEGMENTS: usize = 256;
/// Most sections that symbols can be in; of their names so many bytes are looked at.
const MOST_LABELLED: usize = 1 << 16;
const MOST_SECTION_NAME: usize = 256;
/// Bytes of names: of each, and of all beyond those of the file's own tables of names.
const MOST_NAME: usize = 64 << 10;
const MORE_NAMES: usize = 64 << 20;
/// How many symbols are looked at before it is asked whether to go on.
const OFTEN: usize = 1 << 14;

/// A loadable segment: its addresses, and where in the file they lie.
#[derive(Clone, Copy)]
struct Segment {
    address: u64,
    end: u64,
    offset: u64,
}

/// An ELF file that was opened for its symbols.
pub(crate) struct Elf {
    pub(crate) build_id: Option<Vec<u8>>,
    /// Whether it has the full table of symbols, not just the dynamic one.
    pub(crate) has_symtab: bool,
    segments: Vec<Segment>,
    /// Addressed as the file says.
    symbols: Symbols,
    /// The stubs through which other libraries are called.
    stubs: Symbols,
}

impl Elf {
    /// Reads a file's build id, segments and symbols; `None` when it is no ELF file or a broken one.
    pub(crate) fn read(mut file: impl Read + Seek, options: &SymbolOptions) -> Option<Elf> {
        let mut identity = [0; 5];
        file.read_exact(&mut identity).ok()?;
        let data = Bytes::new(file, options.memory as u64);
        match identity {
            [0x7f, b'E', b'L', b'F', 1] => Elf::of::<FileHeader32<Endianness>, _>(&data, options),
            [0x7f, b'E', b'L', b'F', 2] => Elf::of::<FileHeader64<Endianness>, _>(&data, options),
            _ => None,
        }
    }

    fn of<H, R>(data: &Bytes<R>, options: &SymbolOptions) -> Option<Elf>
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
            section_names: Names::new(&[], 0, 0),
            labelled: Vec::new(),
            data,
            go_on: &options.go_on,
        };
        file.name_sections();
        let room = Room {
            name: MOST_NAME,
            all_names: MORE_NAMES,
            all: options.memory,
        };
        let mut elf = Elf {
            build_id: file.build_id(),
            segments: file.segments(),
            has_symtab: false,
            symbols: Symbols::mangled(room),
            stubs: Symbols::mangled(room),
        };
        elf.has_symtab = file.add_table(elf::SHT_SYMTAB, &mut elf.symbols).is_some();
        file.add_table(elf::SHT_DYNSYM, &mut elf.symbols);
        file.add_plt(&mut elf.stubs);
        Some(elf)
    }

    /// The table of these symbols, by their places in the file; with `debug` those of the file that
    /// its full table was split off to (whose own segments say nothing).
    pub(crate) fn into_symbols(self, debug: Option<Elf>) -> Symbols {
        let mut symbols = debug.map_or(self.symbols, |debug| debug.symbols);
        symbols.append(&self.stubs);
        symbols.move_to(|address| place(&self.segments, address));
        symbols.finish(Ends::Next);
        symbols
    }
}

/// Where in the file an address lies.
fn place(segments: &[Segment], address: u64) -> Option<u64> {
    let holds = |segment: &&Segment| segment.address <= address && address < segment.end;
    let segment = segments.iter().find(holds)?;
    Some((address - segment.address).wrapping_add(segment.offset))
}

struct File<'a, H: FileHeader, R: Read + Seek> {
    header: &'a H,
    endian: Endianness,
    sections: SectionTable<'a, H, &'a Bytes<R>>,
    section_names: Names<'a>,
    /// Which sections have labels of assembly code, or of data.
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

    /// Read what sections are called, and which of them have labels.
    fn name_sections(&mut self) -> Option<()> {
        let names = self.header.shstrndx(self.endian, self.data).ok()?;
        let names = self.sections.section(object::SectionIndex(names as usize));
        let names = names.ok()?.data(self.endian, self.data).ok()?;
        self.section_names = Names::new(names, MOST_SECTION_NAME, MORE_NAMES);
        let is_labelled = |section: &H::SectionHeader| {
            let name = self.section_names.at(section.sh_name(self.endian));
            name.is_some_and(|name| contains(name, b"text") || contains(name, b"data"))
        };
        let sections = self.sections.iter().take(MOST_LABELLED);
        self.labelled = sections.map(is_labelled).collect();
        Some(())
    }

    /// The section of this name.
    fn section(&self, name: &[u8]) -> Option<&'a H::SectionHeader> {
        let is_named = |section: &&H::SectionHeader| {
            self.section_names.is_at(section.sh_name(self.endian), name)
        };
        self.sections.iter().find(is_named)
    }

    /// The symbols of a table and the names they refer to.
    fn table(&self, kind: elf::SectionType) -> Option<(&'a [H::Sym], &'a [u8])> {
        let mut all = self.sections.iter();
        let section = all.find(|section| section.sh_type(self.endian) == kind)?;
        let symbols = section.data_as_array(self.endian, self.data).ok()?;
        let names = self.sections.section(section.link(self.endian)).ok()?;
        Some((symbols, names.data(self.endian, self.data).ok()?))
    }

    fn add_table(&self, kind: elf::SectionType, to: &mut Symbols) -> Option<()> {
        let (symbols, names) = self.table(kind)?;
        to.widen(names.len());
        let names = Names::new(names, MOST_NAME, MORE_NAMES);
        for (number, symbol) in symbols.iter().enumerate() {
            if names.are_exhausted() || number % OFTEN == 0 && !self.go_on.ask() {
                to.left_out += (symbols.len() - number) as u64;
                break;
            }
            if !self.is_wanted(symbol) {
                continue;
            }
            let name = names.at(symbol.st_name(self.endian));
            let Some(name) = name.filter(|name| !is_nameless(symbol, name)) else {
                continue;
            };
            let address = symbol.st_value(self.endian).into();
            let size = symbol.st_size(self.endian).into();
            to.add(address, size, name, binding(symbol.st_bind()));
        }
        Some(())
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
    fn add_plt(&self, stubs_found: &mut Symbols) -> Option<()> {
        let stubs = self.section(b".plt")?;
        let start: u64 = stubs.sh_addr(self.endian).into();
        let machine = self.header.e_machine(self.endian);
        let (head, each) = match machine {
            elf::EM_AARCH64 => (32, 16),
            elf::EM_X86_64 => (16, 16),
            _ => return None,
        };
        // With control-flow protection the calls go to stubs of their own, without a head.
        let second = self.section(b".plt.sec");
        let second = second.map(|section| section.sh_addr(self.endian).into());
        for (number, name) in self.called()?.into_iter().enumerate() {
            let Some(name) = name else { continue };
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
    /// Stubs lie in the order of the slots they jump through. The relocations need not: those of
    /// functions that a library chooses when it starts come last in the C library.
    fn called(&self) -> Option<Vec<Option<&'a [u8]>>> {
        let (symbols, names) = self.table(elf::SHT_DYNSYM)?;
        let names = Names::new(names, MOST_NAME, MORE_NAMES);
        let section = self.section(b".rela.plt")?;
        let calls: &[H::Rela] = section.data_as_array(self.endian, self.data).ok()?;
        let mut calls: Vec<&H::Rela> = calls.iter().take(MOST_STUBS).collect();
        calls.sort_by_key(|call| call.r_offset(self.endian).into());
        let chosen = self.chosen(&calls, symbols);
        let called = calls.iter().map(|call| {
            let symbol = match call.r_sym(self.endian, false) {
                0 => *chosen.get(&self.addend(call))?,
                number => symbols.get(number as usize)?,
            };
            let name = names.at(symbol.st_name(self.endian));
            name.filter(|name| !name.is_empty())
        });
        Some(called.collect())
    }

    /// The functions that the library chooses when it starts, by where the choice is made; a call of such
    /// a one says that place alone.
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
            // Of several names the standard's own: the others are weak.
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

/// Whether a symbol says nothing: it has no name, or is a mark of ARM's between code and data.
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
mod tests {
    use super::*;

    const HEADER: usize = 64;
    const STUBS: u64 = 0x1000;

    fn words(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    /// A section's header: where its name and bytes are, and the number of the one it refers to.
    fn section(name: u32, kind: u32, address: u64, bytes: (usize, usize), link: u32) -> Vec<u8> {
        let halves = |one: u32, other: u32| u64::from(one) | u64::from(other) << 32;
        let (at, size) = (bytes.0 as u64, bytes.1 as u64);
        let names = [halves(name, kind), 0, address];
        words(&[&names[..], &[at, size, halves(link, 0), 1, 24]].concat())
    }

    /// A library whose calls all go to one function of this name.
    fn calling(name: &[u8], calls: usize) -> Vec<u8> {
        let call = words(&[0, 1 << 32 | 7, 0]);
        library(&[name, b"\0"].concat(), &[], &call.repeat(calls))
    }

    /// A library with these names, calls, and symbols beside the function of the first name.
    fn library(names: &[u8], symbols: &[u64], calls: &[u8]) -> Vec<u8> {
        let section_names = b"\0.plt\0.rela.plt\0";
        let names = [b"\0", names].concat();
        let symbols = words(&[&[0, 0, 0, 1 | 0x12 << 32, 0, 0], symbols].concat());
        let parts = [&section_names[..], &names, &symbols, calls];
        let mut at = HEADER;
        let mut bytes = Vec::new();
        let places = parts.map(|part| {
            let place = (at, part.len());
            bytes.extend_from_slice(part);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            at = HEADER + bytes.len();
            place
        });
        let [strings, names, symbols, calls] = places;
        let sections = [
            vec![0; 64],
            section(0, 3, 0, strings, 0),
            section(0, 3, 0, names, 0),
            section(0, 11, 0, symbols, 2),
            section(1, 1, STUBS, (0, 0), 0),
            section(6, 4, 0, calls, 3),
        ];
        // One segment: all addresses, as they are.
        let segment = words(&[1 | 5 << 32, 0, 0, 0, 0, 1 << 32, 8]);
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(16, 0);
        let (segments, tables) = (at as u64, (at + segment.len()) as u64);
        header.extend(words(&[3 | 62 << 16 | 1 << 32, 0, segments, tables]));
        let halves = [0, 0, HEADER as u16, 56, 1, 64, sections.len() as u16, 1];
        header.extend(halves.map(u16::to_le_bytes).concat());
        [header, bytes, segment, sections.concat()].concat()
    }

    fn symbols(file: Vec<u8>) -> Symbols {
        symbols_by(file, &SymbolOptions::none())
    }

    fn symbols_by(file: Vec<u8>, options: &SymbolOptions) -> Symbols {
        let elf = Elf::read(std::io::Cursor::new(file), options).unwrap();
        elf.into_symbols(None)
    }

    #[test]
    fn calls_of_others_have_stubs() {
        let mut symbols = symbols(calling(b"malloc", 3));
        assert_eq!((symbols.len(), symbols.left_out), (3, 0));
        let found = symbols.find(STUBS + 16 + 2 * 16 + 5).unwrap();
        assert_eq!(symbols.name(found), "malloc@plt");
    }

    /// Named in the order of the calls, as perf before 6.3 does, two stubs would change their names.
    #[test]
    fn stubs_go_by_the_slots_of_their_calls() {
        let (chosen, weak) = (8 | 0x1a << 32 | 1 << 48, 15 | 0x2a << 32 | 1 << 48);
        let functions = [weak, 0x5000, 8, chosen, 0x5000, 8];
        let (malloc, at_start) = (1 << 32 | 7, 37);
        let calls = words(&[16, malloc, 0, 8, at_start, 0x5000, 24, at_start, 0x6000]);
        let mut symbols = symbols(library(b"malloc\0strlen\0length\0", &functions, &calls));
        let mut called = |stub: u64| {
            let found = symbols.find(STUBS + 16 + stub * 16 + 1)?;
            Some(symbols.name(found))
        };
        assert_eq!(called(0).unwrap(), "strlen@plt");
        assert_eq!(called(1).unwrap(), "malloc@plt");
        assert_eq!(called(2), None);
    }

    /// Else a small file would be a large table: each call is a reference to the name.
    #[test]
    fn names_that_many_refer_to_are_bounded() {
        let name = vec![b'A'; 60_000];
        let table = symbols(calling(&name, 2000));
        let fit = MORE_NAMES / (name.len() + "@plt".len());
        assert!(table.len() == fit && table.left_out > 0);
        assert!(table.bytes() <= MORE_NAMES + (1 << 20));
    }

    #[test]
    fn a_name_without_measure_is_left_out() {
        let symbols = symbols(calling(&[b'A'; 200_000], 20));
        assert_eq!((symbols.len(), symbols.left_out), (0, 20));
    }

    #[test]
    fn stubs_of_mangled_functions_are_readable() {
        let mut symbols = symbols(calling(b"_ZN4some8functionEv", 1));
        let stub = symbols.find(STUBS + 16 + 1).unwrap();
        assert_eq!(symbols.name(stub), "some::function@plt");
    }

    /// So many functions of one name.
    fn of_functions(count: usize) -> Vec<u8> {
        let function = [1 | 0x12 << 32 | 1 << 48, 0x5000, 8];
        library(b"f\0", &function.repeat(count), &[])
    }

    #[test]
    fn symbols_take_no_more_memory_than_there_is() {
        let file = of_functions(10_000);
        let memory = file.len();
        let with = |memory| {
            let options = SymbolOptions {
                memory,
                ..SymbolOptions::none()
            };
            symbols_by(file.clone(), &options)
        };
        let table = with(memory);
        assert!(table.bytes() <= memory && table.len() > 1000 && table.left_out > 1000);
        assert_eq!(table.len() as u64 + table.left_out, 10_000);
        assert_eq!(with(memory / 2).len(), 0, "it was read beyond that");
    }

    #[test]
    fn who_wants_no_more_symbols_is_given_none() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let asked = AtomicUsize::new(0);
        let options = SymbolOptions {
            go_on: GoOn::new(move || asked.fetch_add(1, Ordering::Relaxed) < 2),
            ..SymbolOptions::none()
        };
        let table = symbols_by(of_functions(5 * OFTEN), &options);
        assert!(
            (OFTEN..=2 * OFTEN).contains(&table.len()),
            "{}",
            table.len()
        );
        assert!(table.left_out >= 3 * OFTEN as u64);
    }
}
