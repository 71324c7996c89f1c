//! What an ELF library or its debug file says of itself: symbols, build id, texts.
//!
//! The files are those of a process's user, so what is read of them is bounded.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use object::Endianness;

use crate::os::proc::named::Named;

/// The most bytes of names that are read of one table. Those of a JVM's symbols take about 5 MiB.
const MAX_NAMES: u64 = 64 << 20;
/// The most bytes of names that are read of all the files that one process runs: it may have a thousand.
pub const ALL_NAMES: u64 = 256 << 20;
/// The most bytes of headers, section names and notes that are read of one file, and the longest section name.
const MAX_HEADERS: u64 = 16 << 20;
const MAX_SECTION_NAME: u64 = 256;
const PIECE: u64 = 1 << 20;
const LONGEST_VERSION: u64 = 64;
/// Debug files may lie below this, by build id or by path.
const DEBUG: &str = "/usr/lib/debug";

/// Whether the library, or a file with its debug symbols, has a symbol whose name begins with `prefix`.
pub fn has(named: &Named, library: &str, prefix: &str) -> bool {
    let Some(elf) = open(named, library) else {
        return false;
    };
    let debug_files = elf.debug_files(library);
    elf.has(prefix)
        || debug_files
            .iter()
            .filter_map(|path| open(named, path))
            .any(|elf| elf.has(prefix))
}

/// Whether the library exports a symbol whose name begins with one of these. `left`: how many more bytes of names may
/// be read.
pub fn exports(named: &Named, library: &str, prefixes: &[&str], left: &Cell<u64>) -> bool {
    open(named, library).is_some_and(|elf| elf.exports(prefixes, left))
}

/// The version of the JRE in the text that every `libjvm.so` has: `… for linux-amd64 JRE (1.8.0_504-b08), built on …`.
pub fn jre_version(named: &Named, library: &str) -> Option<String> {
    open(named, library)?.version_after(b" JRE (")
}

fn open(named: &Named, path: &str) -> Option<Elf> {
    Elf::of(named.open(path)?)
}

/// Where in a file something is: offset and size.
type Place = (u64, u64);

/// A 64-bit ELF file.
pub struct Elf {
    file: File,
    /// The names of all symbols, and of those that other libraries can be linked with.
    symbols: Option<Place>,
    exported: Option<Place>,
    texts: Option<Place>,
    build_id: Option<String>,
    debug_link: Option<String>,
}

impl Elf {
    pub fn of(file: File) -> Option<Self> {
        let data = &Bounded {
            cache: ReadCache::new(file.try_clone().ok()?),
            left: Cell::new(MAX_HEADERS),
        };
        let header = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let names = |kind| {
            let table = sections.iter().find(|one| one.sh_type(endian) == kind)?;
            sections
                .section(table.link(endian))
                .ok()?
                .file_range(endian)
        };
        let section = |name| Some(sections.section_by_name(endian, name)?.1);
        let build_id = || {
            let section = section(b".note.gnu.build-id".as_slice())?;
            let note = section.notes(endian, data).ok()??.next().ok()??;
            let id: String = note
                .desc()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            (4..=128).contains(&id.len()).then_some(id)
        };
        let debug_link = || {
            let link = section(b".gnu_debuglink".as_slice())?
                .data(endian, data)
                .ok()?;
            let name = std::str::from_utf8(link.split(|&byte| byte == 0).next()?).ok()?;
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        };
        Some(Self {
            symbols: names(elf::SHT_SYMTAB),
            exported: names(elf::SHT_DYNSYM),
            texts: section(b".rodata".as_slice()).and_then(|texts| texts.file_range(endian)),
            build_id: build_id(),
            debug_link: debug_link(),
            file,
        })
    }

    pub fn has(&self, prefix: &str) -> bool {
        self.names_contain(self.symbols, &[prefix], &Cell::new(MAX_NAMES))
    }

    pub fn exports(&self, prefixes: &[&str], left: &Cell<u64>) -> bool {
        self.names_contain(self.exported, prefixes, left)
    }

    /// Names stand one after the other, each after a zero byte.
    fn names_contain(&self, names: Option<Place>, prefixes: &[&str], left: &Cell<u64>) -> bool {
        let prefixes: Vec<Vec<u8>> = prefixes.iter().map(|it| format!("\0{it}").into()).collect();
        let longest = prefixes.iter().map(Vec::len).max().unwrap_or(0);
        let found = self.find(names, longest as u64, left, |piece| {
            let is_in = |sought: &Vec<u8>| piece.windows(sought.len()).any(|name| name == sought);
            prefixes.iter().any(is_in).then_some(())
        });
        found.is_some()
    }

    /// The first version that follows these words among the texts of the program.
    pub fn version_after(&self, words: &[u8]) -> Option<String> {
        let longest = words.len() as u64 + LONGEST_VERSION;
        self.find(self.texts, longest, &Cell::new(MAX_NAMES), |piece| {
            let mut places = (0..piece.len()).filter(|&at| piece[at..].starts_with(words));
            places.find_map(|at| version(&piece[at + words.len()..]))
        })
    }

    /// What `look` finds first in a part of the file. It is read in pieces, which overlap by `longest` bytes.
    fn find<T>(
        &self,
        place: Option<Place>,
        longest: u64,
        left: &Cell<u64>,
        look: impl Fn(&[u8]) -> Option<T>,
    ) -> Option<T> {
        let (offset, size) = place?;
        let end = size.min(MAX_NAMES).min(left.get());
        for at in (0..end).step_by(PIECE as usize) {
            let mut piece = vec![0; (PIECE + longest).min(end - at) as usize];
            self.file
                .read_exact_at(&mut piece, offset.saturating_add(at))
                .ok()?;
            left.set(left.get().saturating_sub(piece.len() as u64));
            let found = look(&piece);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Where debuggers, and the profiler, look for the symbols of a stripped library.
    pub fn debug_files(&self, library: &str) -> Vec<String> {
        let mut files = Vec::new();
        if let Some((folder, rest)) = self.build_id.as_ref().map(|id| id.split_at(2)) {
            files.push(format!("{DEBUG}/.build-id/{folder}/{rest}.debug"));
        }
        if let (Some(link), Some((folder, _))) = (&self.debug_link, library.rsplit_once('/')) {
            files.push(format!("{folder}/{link}"));
            files.push(format!("{folder}/.debug/{link}"));
            files.push(format!("{DEBUG}{folder}/{link}"));
        }
        files
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

/// A file of which `left` more bytes may be read.
struct Bounded {
    cache: ReadCache<File>,
    left: Cell<u64>,
}

impl<'a> ReadRef<'a> for &'a Bounded {
    fn len(self) -> Result<u64, ()> {
        (&self.cache).len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.left.set(self.left.get().checked_sub(size).ok_or(())?);
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, end: u8) -> Result<&'a [u8], ()> {
        let size = range.end.saturating_sub(range.start).min(MAX_SECTION_NAME);
        let bytes = self.read_bytes_at(range.start, size)?;
        let length = bytes.iter().position(|&byte| byte == end).ok_or(())?;
        Ok(&bytes[..length])
    }
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

    fn libc() -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps.lines().filter_map(|line| line.get(line.find('/')?..));
        paths
            .find(|path| path.contains("/libc.so"))
            .unwrap()
            .to_owned()
    }

    #[test]
    fn symbols_of_this_binary_and_of_nothing_else() {
        assert!(has(&root(), &own_binary(), "main"));
        assert!(!has(&root(), &own_binary(), "_ZN11NoSuchSymbol"));
        assert!(!has(&root(), "/etc/passwd", "main"));
        assert!(!has(&root(), "/no/such/file", "main"));
        assert!(
            open(&root(), "/proc/self/exe").is_none(),
            "files of /proc are not read"
        );
    }

    #[test]
    fn exported_symbols_are_read_within_one_bound_for_all_files() {
        let left = Cell::new(1 << 20);
        assert!(exports(
            &root(),
            &libc(),
            &["no_such_thing", "mallo"],
            &left
        ));
        assert!(left.get() < 1 << 20);
        for _ in 0..2000 {
            assert!(!exports(&root(), &libc(), &["no_such_thing"], &left));
        }
        assert_eq!(left.get(), 0);
        assert!(!exports(&root(), &libc(), &["mallo"], &left));
    }

    #[test]
    fn debug_files_are_found_by_build_id_and_link() {
        let mut elf = open(&root(), &own_binary()).unwrap();
        elf.build_id = Some("abcdef".to_owned());
        elf.debug_link = Some("jvm.debug".to_owned());
        let want = [
            "/usr/lib/debug/.build-id/ab/cdef.debug",
            "/opt/jdk/jvm.debug",
            "/opt/jdk/.debug/jvm.debug",
            "/usr/lib/debug/opt/jdk/jvm.debug",
        ];
        assert_eq!(elf.debug_files("/opt/jdk/libjvm.so"), want);
    }

    #[test]
    fn versions_in_texts() {
        for (text, want) in [
            ("1.8.0_504-b08), built", Some("1.8.0_504")),
            ("17.0.9+9-LTS)", Some("17.0.9")),
            ("25)", Some("25")),
            ("25", None),
            ("%s)", None),
            (")", None),
            ("", None),
        ] {
            assert_eq!(version(text.as_bytes()).as_deref(), want, "{text}");
        }
        let told = "words of a test, and then version 12.34.56_7-ours";
        let elf = open(&root(), &own_binary()).unwrap();
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
}
