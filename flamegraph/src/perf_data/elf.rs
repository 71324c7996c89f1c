//! Symbols of ELF files: programs, libraries, the vdso, and the files their symbols were split off to.

use std::io::{Read, Seek};

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym};
use object::read::ReadCache;
use object::Endianness;

use super::symbols::{Binding, Ends, Symbols};

/// Most bytes of one table of symbols, and of its names.
const MOST_TABLE: u64 = 1 << 29;
/// Most sections, and most segments.
const MOST_HEADERS: u32 = 1 << 20;
/// Most bytes of a section of notes.
const MOST_NOTES: u64 = 1 << 20;
/// Most program headers that are looked at for each symbol.
const MOST_SEGMENTS: usize = 256;

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
    stubs: Vec<Stub>,
}

/// A stub through which another library is called.
struct Stub {
    address: u64,
    size: u64,
    name: Vec<u8>,
}

impl Elf {
    /// Reads a file's build id, segments and symbols; `None` when it is no ELF file or a broken one.
    pub(crate) fn read(mut file: impl Read + Seek) -> Option<Elf> {
        let mut identity = [0; 5];
        file.read_exact(&mut identity).ok()?;
        let data = ReadCache::new(file);
        match identity {
            [0x7f, b'E', b'L', b'F', 1] => Elf::of::<FileHeader32<Endianness>, _>(&data),
            [0x7f, b'E', b'L', b'F', 2] => Elf::of::<FileHeader64<Endianness>, _>(&data),
            _ => None,
        }
    }

    fn of<H, R>(data: &ReadCache<R>) -> Option<Elf>
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
        let file = File::<H, R> {
            header,
            endian,
            sections,
            data,
        };
        let mut elf = Elf {
            build_id: file.build_id(),
            segments: file.segments(),
            has_symtab: false,
            symbols: Symbols::new(true),
            stubs: Vec::new(),
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
        for stub in &self.stubs {
            if !symbols.add(stub.address, stub.size, &stub.name, Binding::Global) {
                break;
            }
        }
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
    sections: SectionTable<'a, H, &'a ReadCache<R>>,
    data: &'a ReadCache<R>,
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

    /// A section's bytes, if they are not too many.
    fn content(&self, section: &H::SectionHeader) -> Option<&'a [u8]> {
        let size: u64 = section.sh_size(self.endian).into();
        if size > MOST_TABLE {
            return None;
        }
        section.data(self.endian, self.data).ok()
    }

    /// The symbols of a table and the names they refer to.
    fn table(&self, kind: elf::SectionType) -> Option<(&'a [H::Sym], &'a [u8])> {
        let mut all = self.sections.iter();
        let section = all.find(|section| section.sh_type(self.endian) == kind)?;
        self.content(section)?;
        let symbols = section.data_as_array(self.endian, self.data).ok()?;
        let names = self.sections.section(section.link(self.endian)).ok()?;
        Some((symbols, self.content(names)?))
    }

    fn add_table(&self, kind: elf::SectionType, to: &mut Symbols) -> Option<()> {
        let (symbols, names) = self.table(kind)?;
        for symbol in symbols {
            let Some(name) = name_at(names, symbol.st_name(self.endian)) else {
                continue;
            };
            if !self.is_wanted(symbol, name) {
                continue;
            }
            let address = symbol.st_value(self.endian).into();
            let size = symbol.st_size(self.endian).into();
            if !to.add(address, size, name, binding(symbol.st_bind())) {
                break;
            }
        }
        Some(())
    }

    /// Functions, objects, and labels of assembly code.
    fn is_wanted(&self, symbol: &H::Sym, name: &[u8]) -> bool {
        let section = symbol.st_shndx(self.endian);
        if name.is_empty() || section == elf::SHN_UNDEF || section == elf::SHN_ABS {
            return false;
        }
        match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_OBJECT => true,
            elf::STT_NOTYPE => self.is_label(symbol, name),
            _ => false,
        }
    }

    fn is_label(&self, symbol: &H::Sym, name: &[u8]) -> bool {
        let visible = symbol.st_visibility();
        if visible == elf::STV_HIDDEN || visible == elf::STV_INTERNAL {
            return false;
        }
        // Marks of ARM's, between code and data.
        if matches!(name, [b'$', b'a' | b'd' | b't' | b'x', ..]) {
            return false;
        }
        let section = usize::from(symbol.st_shndx(self.endian).0);
        let section = self.sections.section(object::SectionIndex(section));
        let name = section.and_then(|section| self.sections.section_name(self.endian, section));
        name.is_ok_and(|name| contains(name, b"text") || contains(name, b"data"))
    }

    /// The stubs through which other libraries are called: `name@plt`.
    fn add_plt(&self, stubs_found: &mut Vec<Stub>) -> Option<()> {
        let (symbols, names) = self.table(elf::SHT_DYNSYM)?;
        let by_name = |name| self.sections.section_by_name(self.endian, name);
        let (_, calls) = by_name(b".rela.plt")?;
        let (_, stubs) = by_name(b".plt")?;
        let start: u64 = stubs.sh_addr(self.endian).into();
        let machine = self.header.e_machine(self.endian);
        let (head, each) = match machine {
            elf::EM_AARCH64 => (32, 16),
            elf::EM_X86_64 => (16, 16),
            _ => return None,
        };
        self.content(calls)?;
        let calls: &[<H as FileHeader>::Rela] = calls.data_as_array(self.endian, self.data).ok()?;
        // With control-flow protection the calls go to stubs of their own, without a head.
        let second = by_name(b".plt.sec").map(|(_, section)| section.sh_addr(self.endian).into());
        for (number, call) in calls.iter().enumerate() {
            let index = call.r_sym(self.endian, false) as usize;
            let name = symbols.get(index).map(|symbol| symbol.st_name(self.endian));
            let name = name
                .and_then(|name| name_at(names, name))
                .unwrap_or_default();
            if name.is_empty() {
                continue;
            }
            let name = [
                super::demangle::demangle(&String::from_utf8_lossy(name)).as_bytes(),
                b"@plt",
            ]
            .concat();
            let offset = each * number as u64;
            for address in std::iter::once(start.saturating_add(head)).chain(second) {
                stubs_found.push(Stub {
                    address: address.saturating_add(offset),
                    size: each,
                    name: name.clone(),
                });
            }
        }
        Some(())
    }
}

fn name_at(names: &[u8], offset: u32) -> Option<&[u8]> {
    let rest = names.get(offset as usize..)?;
    Some(&rest[..memchr::memchr(0, rest)?])
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
