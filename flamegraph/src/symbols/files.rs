//! Finds symbol files. The machine need not be the one that was recorded.

use std::fs::{File, OpenOptions};
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::text_tables::{self, MOST_TEXT};
use crate::symbols::SymbolOptions;
use crate::symbols::Symbols;

/// `O_NONBLOCK | O_NOCTTY`: opening a pipe or a terminal of a recorded name must not block.
const DO_NOT_WAIT: i32 = 0o4000 | 0o400;
/// `O_NOFOLLOW`, whose bit is not the same on every processor.
const NO_LINK: i32 = if cfg!(any(target_arch = "aarch64", target_arch = "arm")) {
    0o100000
} else {
    0o400000
};

/// Opens a file if it is a regular one. The recorded process chooses the names.
fn open(path: &Path) -> Option<File> {
    open_as(path, DO_NOT_WAIT)
}

fn open_as(path: &Path, flags: i32) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// Identifies the file that was mapped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proof<'a> {
    pub(crate) build_id: Option<&'a [u8]>,
    pub(crate) inode: Option<u64>,
}

impl Proof<'_> {
    /// Compares the build id if it is known, else the inode. If neither is, every file fits.
    fn fits(&self, inode: u64, elf: &Elf) -> bool {
        match (self.build_id, self.inode) {
            (Some(wanted), _) => elf
                .build_id
                .as_deref()
                .is_some_and(|id| same_build(id, wanted)),
            (None, Some(wanted)) => wanted == inode,
            (None, None) => true,
        }
    }
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

    /// Whether there is memory for the symbols of another file, if `held` bytes are in use.
    pub(crate) fn have_room_beside(&self, held: usize) -> bool {
        held < self.options.memory && self.options.go_on.ask()
    }

    fn open(&self, path: &Path) -> Option<File> {
        match &self.options.open {
            Some(open) => open.file(path),
            None => open(path),
        }
    }

    fn read_elf(&self, file: impl Read + Seek) -> Option<Elf> {
        Elf::read(file, self.options)
    }

    /// The build-id cache's folder of one file.
    fn cached(&self, build_id: &[u8]) -> Option<PathBuf> {
        let id = hex(build_id);
        let (first, rest) = id.split_at_checked(2)?;
        let cache = self.options.build_id_cache.as_ref()?;
        Some(cache.join(".build-id").join(first).join(rest))
    }

    /// The symbols of a program or library, if exactly that file is found.
    pub(crate) fn elf(&self, path: &str, wanted: Proof<'_>, pid: u32) -> Option<Symbols> {
        let elf = self.find_elf(path, wanted, pid)?;
        let debug = match &elf.build_id {
            Some(id) if !elf.has_symtab => self.debug_file(id),
            _ => None,
        };
        Some(elf.into_symbols(debug))
    }

    fn find_elf(&self, path: &str, wanted: Proof<'_>, pid: u32) -> Option<Elf> {
        let read = |path: &PathBuf| {
            let file = self.open(path)?;
            let inode = file.metadata().ok()?.ino();
            Some((inode, self.read_elf(file)?))
        };
        if let Some(folder) = wanted.build_id.and_then(|id| self.cached(id)) {
            let mut cached = [folder.join("elf"), folder.join("vdso")].into_iter();
            if let Some((_, elf)) =
                cached.find_map(|path| read(&path).filter(|(_, elf)| wanted.fits(0, elf)))
            {
                return Some(elf);
            }
        }
        let places = self.places(path, wanted, pid);
        let mut found = places.iter().filter_map(read);
        let (_, elf) = found.find(|(inode, elf)| wanted.fits(*inode, elf))?;
        Some(elf)
    }

    /// Where a process's file may be: in the process's own root, then in ours. A container's file is searched in our
    /// root only if it can be identified.
    fn places(&self, path: &str, wanted: Proof<'_>, pid: u32) -> Vec<PathBuf> {
        let Some(path) = path.strip_prefix('/') else {
            return Vec::new();
        };
        let path = path.trim_start_matches('/');
        let process = self.options.process_root.as_ref();
        let process = process.map(|all| all.join(pid.to_string()));
        let mut places: Vec<PathBuf> = process
            .iter()
            .map(|process| process.join("root").join(path))
            .collect();
        let can_be_told = wanted.build_id.is_some() || wanted.inode.is_some();
        if can_be_told || !process.is_some_and(|process| sees_other_files(&process)) {
            places.push(self.options.root.join(path));
        }
        places
    }

    /// The separate debug file with the full symbol table.
    fn debug_file(&self, build_id: &[u8]) -> Option<Elf> {
        let id = hex(build_id);
        let (first, rest) = id.split_at_checked(2)?;
        let folder = self
            .options
            .root
            .join("usr/lib/debug/.build-id")
            .join(first);
        let debug = self.read_elf(self.open(&folder.join(format!("{rest}.debug")))?)?;
        let same = debug.build_id.as_deref() == Some(build_id);
        (same && debug.has_symtab).then_some(debug)
    }

    /// The symbols of the code that a process generated at run time.
    pub(crate) fn perf_map(&self, pid: u32) -> Option<Symbols> {
        let mut text = Vec::new();
        let file = self.perf_map_file(pid)?;
        file.take(MOST_TEXT).read_to_end(&mut text).ok()?;
        Some(text_tables::perf_map(&text))
    }

    /// The `perf-PID.map` of a process.
    pub(crate) fn perf_map_file(&self, pid: u32) -> Option<File> {
        let name = |pid: u32| format!("perf-{pid}.map");
        let process = self.options.process_root.as_ref();
        let process = process.map(|all| all.join(pid.to_string()));
        let status = process
            .as_ref()
            .and_then(|process| read_text(&process.join("status")));
        let user = status.as_deref().and_then(user_of);
        let inside = status.as_deref().and_then(innermost_pid).zip(process);
        let inside = inside.map(|(pid, process)| process.join("root/tmp").join(name(pid)));
        let folders = self.options.perf_maps.iter();
        let places = folders.map(|folder| folder.join(name(pid))).chain(inside);
        places.into_iter().find_map(|place| open_map(&place, user))
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
        if let Some(text) = &self.options.kallsyms_text {
            return text_tables::kallsyms(text);
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

    /// The symbols of the vdso; from our own memory if it is the same.
    pub(crate) fn vdso(&self, build_id: Option<&[u8]>, release: &str) -> Option<Symbols> {
        let cached = Proof {
            build_id,
            inode: None,
        };
        if let Some(symbols) = build_id.and_then(|_| self.elf("[vdso]", cached, 0)) {
            return Some(symbols);
        }
        let elf = self.read_elf(Cursor::new(own_vdso()?))?;
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

/// Compares the length that both ids have: some are padded, some cut to 20 bytes.
fn same_build(one: &[u8], other: &[u8]) -> bool {
    let length = one.len().min(other.len());
    length > 0 && one[..length] == other[..length]
}

/// Opens a perf map. In a world-writable folder, only a file of the process's user, of root, or of our own user counts.
fn open_map(path: &Path, user: Option<u32>) -> Option<File> {
    let file = open_as(path, DO_NOT_WAIT | NO_LINK)?;
    let owner = file.metadata().ok()?.uid();
    let is_theirs = owner == 0 || Some(owner) == user || Some(owner) == our_user();
    is_theirs.then_some(file)
}

fn our_user() -> Option<u32> {
    user_of(&std::fs::read("/proc/self/status").ok()?)
}

/// Whether a running process is in another mount namespace than ours.
fn sees_other_files(process: &Path) -> bool {
    let namespace = |process: &Path| std::fs::read_link(process.join("ns/mnt")).ok();
    match (namespace(process), namespace(Path::new("/proc/self"))) {
        (Some(theirs), Some(ours)) => theirs != ours,
        // The process has ended, or we may not see it.
        _ => false,
    }
}

/// The last number after `NStgid:`.
fn innermost_pid(status: &[u8]) -> Option<u32> {
    field(status, "NStgid:")?.last()?.parse().ok()
}

/// The effective user: the second number after `Uid:`.
fn user_of(status: &[u8]) -> Option<u32> {
    field(status, "Uid:")?.get(1)?.parse().ok()
}

fn field(status: &[u8], name: &str) -> Option<Vec<String>> {
    let status = String::from_utf8_lossy(status);
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().map(str::to_string).collect())
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

    fn read(bytes: Vec<u8>) -> Option<Elf> {
        Elf::read(Cursor::new(bytes), &SymbolOptions::none())
    }

    #[test]
    fn the_kernels_own_library_has_symbols() {
        let bytes = own_vdso().unwrap();
        let elf = read(bytes).unwrap();
        assert!(elf.build_id.is_some());
        let symbols = elf.into_symbols(None);
        assert!(symbols.len() > 2);
    }

    #[test]
    fn the_innermost_pid_is_the_last() {
        let status = b"Name:\tjava\nNStgid:\t4711\t12\nNSpid:\t4711\t12\n";
        assert_eq!(innermost_pid(status), Some(12));
        assert_eq!(innermost_pid(b"Name:\tjava\n"), None);
    }
}
