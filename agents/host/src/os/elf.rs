//! Whether a library or its debug file knows a symbol. The files are those of a process's user: every number is checked.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::os::proc::named::Named;

const SYMTAB: u32 = 2;
/// The symbols that others are linked with, which no library can be stripped of.
const DYNSYM: u32 = 11;
const MAX_SECTIONS: u64 = 4096;
/// The names of a section, or one small section, are never larger; those of a JVM's symbols have about 5 MiB.
const MAX_NAMES: u64 = 64 << 20;
/// So many bytes of names are read at most of all the files that one process runs: it may have a thousand.
pub const ALL_NAMES: u64 = 256 << 20;
const SMALL: u64 = 4096;
const PIECE: u64 = 1 << 20;
const SECTION: u64 = 64;
const LONGEST_VERSION: u64 = 64;
/// Debug files may lie below this, by build id or by path.
const DEBUG: &str = "/usr/lib/debug";

/// Whether the library, or a file with its debug symbols, has a symbol whose name begins so.
pub fn has(named: &Named, library: &str, prefix: &str) -> bool {
    let Some(elf) = Elf::open(named, library) else {
        return false;
    };
    if elf.has(prefix) {
        return true;
    }
    let debug_files = elf.debug_files(library);
    debug_files
        .iter()
        .filter_map(|path| Elf::open(named, path))
        .any(|elf| elf.has(prefix))
}

/// Whether the library offers others a symbol whose name begins with one of these. `left`: how many bytes of names may
/// be read yet.
pub fn offers(named: &Named, library: &str, prefixes: &[&str], left: &Cell<u64>) -> bool {
    let elf = Elf::open(named, library);
    elf.is_some_and(|elf| elf.offers(prefixes, left))
}

/// A 64-bit ELF file of this machine's byte order.
pub struct Elf {
    file: File,
    sections: Vec<Section>,
    names: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Section {
    name: u32,
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

impl Elf {
    pub fn open(named: &Named, path: &str) -> Option<Self> {
        Self::of(named.open(path)?)
    }

    pub fn of(file: File) -> Option<Self> {
        let header = read(&file, 0, 64)?;
        if header[..5] != *b"\x7fELF\x02" {
            return None;
        }
        let table = u64_at(&header, 40)?;
        let count = u64::from(u16_at(&header, 60)?).min(MAX_SECTIONS);
        let table = read(&file, table, count * SECTION)?;
        let sections: Vec<Section> = table
            .chunks_exact(SECTION as usize)
            .filter_map(Section::parse)
            .collect();
        let names = sections.get(usize::from(u16_at(&header, 62)?))?;
        let names = read(&file, names.offset, names.size.min(PIECE))?;
        Some(Self {
            file,
            sections,
            names,
        })
    }

    /// Whether a symbol's name begins so, by the names of the symbol table.
    pub fn has(&self, prefix: &str) -> bool {
        self.knows(SYMTAB, &[prefix], &Cell::new(MAX_NAMES))
    }

    /// Whether it offers others one that begins with one of these.
    pub fn offers(&self, prefixes: &[&str], left: &Cell<u64>) -> bool {
        self.knows(DYNSYM, prefixes, left)
    }

    /// The same by a kind of table, and with any of these beginnings. A file has one of each; thousands of them would have the same names read as often.
    fn knows(&self, kind: u32, prefixes: &[&str], left: &Cell<u64>) -> bool {
        let mut sections = self.sections.iter();
        let table = sections.find(|section| section.kind == kind);
        let names = table.and_then(|table| self.sections.get(table.link as usize));
        names.is_some_and(|names| self.names_contain(names, prefixes, left))
    }

    /// Names stand one after the other, each after a zero byte. Read piece by piece, with what may be cut read again.
    fn names_contain(&self, names: &Section, prefixes: &[&str], left: &Cell<u64>) -> bool {
        let prefixes: Vec<Vec<u8>> = prefixes.iter().map(|it| format!("\0{it}").into()).collect();
        let longest = prefixes.iter().map(Vec::len).max().unwrap_or(0);
        let end = names.size.min(MAX_NAMES).min(left.get());
        let mut at = 0;
        while at < end {
            let length = (PIECE + longest as u64).min(end - at);
            let Some(piece) = read(&self.file, names.offset.saturating_add(at), length) else {
                return false;
            };
            left.set(left.get().saturating_sub(length));
            let is_in = |sought: &Vec<u8>| piece.windows(sought.len()).any(|name| name == sought);
            if prefixes.iter().any(is_in) {
                return true;
            }
            at += PIECE;
        }
        false
    }

    /// Where debuggers, and the profiler, look for the symbols of a stripped library.
    pub fn debug_files(&self, library: &str) -> Vec<String> {
        let mut files = Vec::new();
        if let Some(id) = self.build_id() {
            let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            let (folder, rest) = hex.split_at(2);
            files.push(format!("{DEBUG}/.build-id/{folder}/{rest}.debug"));
        }
        if let (Some(link), Some((folder, _))) = (self.debug_link(), library.rsplit_once('/')) {
            files.push(format!("{folder}/{link}"));
            files.push(format!("{folder}/.debug/{link}"));
            files.push(format!("{DEBUG}{folder}/{link}"));
        }
        files
    }

    /// A note: the sizes of name and contents, its kind, the name (`GNU`), the contents.
    fn build_id(&self) -> Option<Vec<u8>> {
        let note = self.small(".note.gnu.build-id")?;
        let size = u32_at(&note, 4)? as usize;
        let id = note.get(16..16usize.checked_add(size)?)?;
        (2..=64).contains(&size).then(|| id.to_vec())
    }

    fn debug_link(&self) -> Option<String> {
        let link = self.small(".gnu_debuglink")?;
        let name = link.split(|&byte| byte == 0).next()?;
        let name = std::str::from_utf8(name).ok()?;
        (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
    }

    fn small(&self, name: &str) -> Option<Vec<u8>> {
        let section = self.section(name)?;
        read(&self.file, section.offset, section.size.min(SMALL))
    }

    /// Names are compared, and no end of them is looked for: each of thousands of sections may have one of a MiB.
    fn section(&self, name: &str) -> Option<&Section> {
        let is_named = |section: &&Section| {
            let rest = self.names.get(section.name as usize..);
            let after = rest.and_then(|rest| rest.strip_prefix(name.as_bytes()));
            after.is_some_and(|after| after.first() == Some(&0))
        };
        self.sections.iter().find(is_named)
    }

    /// The first version that follows these words among the texts of the program. Read piece by piece.
    pub fn version_after(&self, words: &[u8]) -> Option<String> {
        let texts = self.section(".rodata")?;
        let end = texts.size.min(MAX_NAMES);
        let mut at = 0;
        while at < end {
            let length = (PIECE + words.len() as u64 + LONGEST_VERSION).min(end - at);
            let piece = read(&self.file, texts.offset.saturating_add(at), length)?;
            let mut places = (0..piece.len()).filter(|&place| piece[place..].starts_with(words));
            let found = places.find_map(|place| version(&piece[place + words.len()..]));
            if found.is_some() {
                return found;
            }
            at += PIECE;
        }
        None
    }
}

/// `1.8.0_504` of `1.8.0_504-b08), built on …`.
fn version(text: &[u8]) -> Option<String> {
    let text = &text[..text.len().min(LONGEST_VERSION as usize)];
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"._".contains(byte);
    let length = text.iter().position(|byte| !is_part(byte))?;
    let is_one = text[0].is_ascii_digit() && b"-+)".contains(&text[length]);
    is_one.then(|| String::from_utf8_lossy(&text[..length]).into_owned())
}

impl Section {
    fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            name: u32_at(bytes, 0)?,
            kind: u32_at(bytes, 4)?,
            offset: u64_at(bytes, 24)?,
            size: u64_at(bytes, 32)?,
            link: u32_at(bytes, 40)?,
        })
    }
}

/// Exactly so many bytes; callers bound them.
fn read(file: &File, at: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Named {
        Named::new(File::open("/").unwrap().into(), None)
    }

    fn own_binary() -> String {
        let path = std::env::current_exe().unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn names_of_this_very_binary() {
        assert!(has(&root(), &own_binary(), "main"));
        assert!(!has(&root(), &own_binary(), "_ZN11NoSuchSymbol"));
        assert!(!has(&root(), "/etc/passwd", "main"));
        assert!(!has(&root(), "/no/such/file", "main"));
    }

    #[test]
    fn what_a_library_offers() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let paths = maps.lines().filter_map(|line| line.get(line.find('/')?..));
        for library in paths.filter(|path| path.contains("/libc.so")) {
            assert!(
                offers(&root(), library, &["no_such_thing", "mallo"], &all()),
                "{library}"
            );
            assert!(
                !offers(&root(), library, &["no_such_thing"], &all()),
                "{library}"
            );
        }
        assert!(!offers(&root(), "/etc/passwd", &["root"], &all()));
    }

    fn all() -> Cell<u64> {
        Cell::new(ALL_NAMES)
    }

    #[test]
    fn of_many_files_no_more_is_read_than_of_all_together() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps.lines().filter_map(|line| line.get(line.find('/')?..));
        let library = paths.find(|path| path.contains("/libc.so")).unwrap();
        let left = Cell::new(1 << 20);
        for _ in 0..2000 {
            assert!(!offers(&root(), library, &["no_such_thing"], &left));
        }
        assert_eq!(left.get(), 0);
        assert!(!offers(&root(), library, &["mallo"], &left));
    }

    #[test]
    fn where_debug_symbols_are_looked_for() {
        let elf = Elf::open(&root(), "/proc/self/exe");
        assert!(elf.is_none(), "files of /proc are not read");
        let elf = Elf::open(&root(), &own_binary()).unwrap();
        let files = elf.debug_files("/opt/jdk/libjvm.so");
        assert!(
            files
                .iter()
                .all(|file| file.starts_with("/usr/lib/debug/.build-id/")),
            "{files:?}"
        );
    }

    #[test]
    fn versions_in_texts() {
        for (text, want) in [
            ("1.8.0_504-b08), built", Some("1.8.0_504")),
            ("17.0.9+9-LTS)", Some("17.0.9")),
            ("25)", Some("25")),
            ("25", None),
            ("%s)", None),
            ("1 2", None),
            (")", None),
            ("", None),
        ] {
            assert_eq!(version(text.as_bytes()).as_deref(), want, "{text}");
        }
        let told = "words of a test, and then version 12.34.56_7-ours";
        let elf = Elf::open(&root(), &own_binary()).unwrap();
        let words = &told.as_bytes()[..told.find("12").unwrap()];
        let found = elf.version_after(words);
        assert_eq!(found.as_deref(), Some("12.34.56_7"), "{told}");
        assert_eq!(elf.version_after(&[1, 2, 3, 250, 251, 252, 253]), None);
    }

    #[test]
    fn a_damaged_file_has_no_symbols() {
        let whole = std::fs::read(own_binary()).unwrap();
        let path = std::env::temp_dir().join(format!("hprofiler-elf-{}", std::process::id()));
        let mut lying = whole[..64].to_vec();
        lying[40..48].fill(0xff);
        for bytes in [&whole[..64], &whole[..4], &lying] {
            std::fs::write(&path, bytes).unwrap();
            assert!(!has(&root(), path.to_str().unwrap(), "main"));
        }
        std::fs::remove_file(path).unwrap();
    }

    /// A file in memory with as many sections as are looked at, all of this kind and size, at its begin, with these names.
    fn of_many_sections(kind: u32, size: u64, names: &[u8]) -> Elf {
        let mut bytes = vec![0; 64 + (MAX_SECTIONS * SECTION) as usize];
        bytes[..5].copy_from_slice(b"\x7fELF\x02");
        bytes[40..48].copy_from_slice(&64u64.to_ne_bytes());
        bytes[60..62].copy_from_slice(&(MAX_SECTIONS as u16).to_ne_bytes());
        for section in bytes[64..].chunks_exact_mut(SECTION as usize) {
            section[4..8].copy_from_slice(&kind.to_ne_bytes());
            section[32..40].copy_from_slice(&size.to_ne_bytes());
        }
        let file = rustix::fs::memfd_create("many", rustix::fs::MemfdFlags::CLOEXEC);
        let file = File::from(file.unwrap());
        file.write_all_at(&bytes, 0).unwrap();
        file.set_len(size.max(bytes.len() as u64)).unwrap();
        let mut elf = Elf::of(file).unwrap();
        elf.names = names.to_vec();
        elf
    }

    #[test]
    fn many_tables_take_no_longer_than_one() {
        let begin = std::time::Instant::now();
        assert!(!of_many_sections(SYMTAB, 8 << 20, b"").has("_ZN"));
        assert!(begin.elapsed().as_secs() < 60);
    }

    #[test]
    fn a_name_ends_with_a_zero_byte() {
        for (names, found) in [
            (&b".rodata\0"[..], true),
            (b".rodata\0.text", true),
            (b".rodata", false),
            (b".rodata1\0", false),
            (b".rod", false),
            (b"", false),
        ] {
            let elf = of_many_sections(1, 0, names);
            assert_eq!(elf.section(".rodata").is_some(), found, "{names:?}");
        }
    }
}
