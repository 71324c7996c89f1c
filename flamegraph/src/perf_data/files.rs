//! Where symbols are looked for, on a machine that need not be the one that was recorded.

use std::fs::{File, OpenOptions};
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::symbols::Symbols;
use super::text_tables::{self, MOST_TEXT};
use crate::options::SymbolOptions;

/// `O_NONBLOCK | O_NOCTTY`: a pipe or terminal of a recorded name must not hold us up.
const DO_NOT_WAIT: i32 = 0o4000 | 0o400;

/// Opens a regular file; names in a recording are the recorded process's choice.
fn open(path: &Path) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(DO_NOT_WAIT)
        .open(path)
        .ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

fn read_text(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    open(path)?.take(MOST_TEXT).read_to_end(&mut text).ok()?;
    Some(text)
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Finds symbols; see [`SymbolOptions`].
pub(crate) struct Files<'a> {
    options: &'a SymbolOptions,
}

impl<'a> Files<'a> {
    pub(crate) fn new(options: &'a SymbolOptions) -> Files<'a> {
        Files { options }
    }

    /// The build-id cache's folder of one file.
    fn cached(&self, build_id: &[u8]) -> Option<PathBuf> {
        let id = hex(build_id);
        let (first, rest) = id.split_at_checked(2)?;
        let cache = self.options.build_id_cache.as_ref()?;
        Some(cache.join(".build-id").join(first).join(rest))
    }

    /// The symbols of a program or library. With a build id only a file with the same one will do.
    pub(crate) fn elf(&self, path: &str, build_id: Option<&[u8]>, pid: u32) -> Option<Symbols> {
        let elf = self.find_elf(path, build_id, pid)?;
        let debug = match &elf.build_id {
            Some(id) if !elf.has_symtab => self.debug_file(id),
            _ => None,
        };
        Some(elf.into_symbols(debug))
    }

    fn find_elf(&self, path: &str, build_id: Option<&[u8]>, pid: u32) -> Option<Elf> {
        let mut candidates = Vec::new();
        if let Some(folder) = build_id.and_then(|id| self.cached(id)) {
            candidates.extend([folder.join("elf"), folder.join("vdso")]);
        }
        if path.starts_with('/') {
            let path = path.trim_start_matches('/');
            candidates.push(self.options.root.join(path));
            if let Some(processes) = &self.options.process_root {
                candidates.push(processes.join(pid.to_string()).join("root").join(path));
            }
        }
        let fits = |elf: &Elf| {
            build_id.is_none_or(|wanted| {
                let id = elf.build_id.as_deref();
                id.is_some_and(|id| same_build(id, wanted))
            })
        };
        candidates
            .iter()
            .filter_map(|path| Elf::read(open(path)?))
            .find(fits)
    }

    /// The file that the full table of symbols was split off to.
    fn debug_file(&self, build_id: &[u8]) -> Option<Elf> {
        let id = hex(build_id);
        let (first, rest) = id.split_at_checked(2)?;
        let folder = self
            .options
            .root
            .join("usr/lib/debug/.build-id")
            .join(first);
        let debug = Elf::read(open(&folder.join(format!("{rest}.debug")))?)?;
        let same = debug.build_id.as_deref() == Some(build_id);
        (same && debug.has_symtab).then_some(debug)
    }

    /// The symbols of the code a process made at run time.
    pub(crate) fn perf_map(&self, pid: u32) -> Option<Symbols> {
        let text = self.perf_map_text(pid)?;
        Some(text_tables::perf_map(&text))
    }

    fn perf_map_text(&self, pid: u32) -> Option<Vec<u8>> {
        let name = |pid: u32| format!("perf-{pid}.map");
        for folder in &self.options.perf_maps {
            if let Some(text) = read_text(&folder.join(name(pid))) {
                return Some(text);
            }
        }
        let process = self.options.process_root.as_ref()?.join(pid.to_string());
        let inside = innermost_pid(&read_text(&process.join("status"))?)?;
        read_text(&process.join("root/tmp").join(name(inside)))
    }

    /// The kernel's symbols: from the build-id cache, or from this machine if it runs the same kernel.
    pub(crate) fn kernel(&self, build_id: Option<&[u8]>, release: &str) -> Option<Symbols> {
        if let Some(folder) = build_id.and_then(|id| self.cached(id)) {
            let cached = read_text(&folder.join("kallsyms"));
            if let Some(symbols) = cached.and_then(|text| text_tables::kallsyms(&text)) {
                return Some(symbols);
            }
        }
        if !self.is_running_kernel(build_id, release) {
            return None;
        }
        let path = self.options.kallsyms.as_ref()?;
        text_tables::kallsyms(&read_text(path)?)
    }

    fn is_running_kernel(&self, build_id: Option<&[u8]>, release: &str) -> bool {
        if let Some(id) = build_id {
            let notes = std::fs::read("/sys/kernel/notes").unwrap_or_default();
            return notes.windows(id.len()).any(|window| window == id);
        }
        let running = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        release.is_empty() || running.trim_end() == release
    }

    /// The symbols of the code the kernel lends to every process; from our own memory if it is the same.
    pub(crate) fn vdso(&self, build_id: Option<&[u8]>, release: &str) -> Option<Symbols> {
        if let Some(symbols) = build_id.and_then(|id| self.elf("[vdso]", Some(id), 0)) {
            return Some(symbols);
        }
        let elf = Elf::read(Cursor::new(own_vdso()?))?;
        let same = match build_id {
            Some(wanted) => elf
                .build_id
                .as_deref()
                .is_some_and(|id| same_build(id, wanted)),
            None => self.is_running_kernel(None, release),
        };
        same.then(|| elf.into_symbols(None))
    }
}

/// Ids are compared as far as both go: some are padded, some cut to 20 bytes.
fn same_build(one: &[u8], other: &[u8]) -> bool {
    let length = one.len().min(other.len());
    length > 0 && one[..length] == other[..length]
}

/// The last of the numbers behind `NStgid:`.
fn innermost_pid(status: &[u8]) -> Option<u32> {
    let status = String::from_utf8_lossy(status);
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NStgid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// The bytes of our own vdso.
fn own_vdso() -> Option<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, rest) = line.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(rest.split(' ').next()?, 16).ok()?;
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    let size = end.checked_sub(start)?.min(MOST);
    memory.take(size).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_library_has_symbols() {
        let bytes = own_vdso().unwrap();
        let elf = Elf::read(Cursor::new(bytes)).unwrap();
        assert!(elf.build_id.is_some());
        let symbols = elf.into_symbols(None);
        assert!(symbols.len() > 2);
    }

    /// Each is read to an end or refused; the test is that it comes back.
    #[test]
    fn damaged_libraries_do_no_harm() {
        let whole = own_vdso().unwrap();
        for place in (0..whole.len()).step_by(3) {
            for value in [0, 0x7f, 0xff] {
                let mut changed = whole.clone();
                let end = whole.len().min(place + 4);
                changed[place..end].fill(value);
                if let Some(elf) = Elf::read(Cursor::new(changed)) {
                    elf.into_symbols(None).find(0x800);
                }
            }
        }
        for length in (0..whole.len()).step_by(7) {
            Elf::read(Cursor::new(whole[..length].to_vec()));
        }
    }

    #[test]
    fn the_innermost_pid_is_the_last() {
        let status = b"Name:\tjava\nNStgid:\t4711\t12\nNSpid:\t4711\t12\n";
        assert_eq!(innermost_pid(status), Some(12));
        assert_eq!(innermost_pid(b"Name:\tjava\n"), None);
    }
}
