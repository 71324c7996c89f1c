//! Libraries that a JVM has loaded, and which of them it may be told to load again.
//!
//! The JVM loads a library again to run its commands. musl then opens the path and recognises the library by its file.
//! If the file and its folder in `/tmp` are gone, anybody can put another one there, and the JVM would run its code.

use std::collections::HashSet;
use std::fs::File;
use std::ptr::null_mut;

use rustix::fd::OwnedFd;
use rustix::fs::{openat, statat, AtFlags, FileType, Mode, OFlags, CWD};
use rustix::io::Errno;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

use crate::os::files::enter_folder;
use crate::os::identity::Namespaces;
use crate::os::proc::maps::{self, file_name, Mapped, Mapping};
use crate::os::proc::target::Target;

/// Enough to see the kernel's numbers for a mapped file. Nothing is read.
const MAPPED: usize = 1;

#[derive(Default)]
pub struct Loaded {
    files: Vec<Mapped>,
    pub musl: bool,
    /// The agent's own `/proc`, which another mount namespace does not have.
    own: Option<OwnedFd>,
}

impl Loaded {
    /// None: the agent may not read the map. To be called before the thread takes the process's user and files.
    pub fn of(target: &Target) -> Option<Self> {
        let files = target.mapped(|mapping| mapping.is_code)?;
        Some(Self {
            musl: files.iter().any(|file| is_musl(file_name(&file.path))),
            own: enter_folder("/proc/self").ok(),
            files,
        })
    }

    pub fn paths(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let paths = self.files.iter().map(|file| &file.path);
        paths.filter(|path| seen.insert(*path)).cloned().collect()
    }

    /// Whether the JVM may be told to load this path again without running somebody else's code.
    pub fn may_be_named(&self, namespaces: &Namespaces, path: &str) -> bool {
        self.is_at(namespaces, path) || !self.musl && is_closed_to_others(namespaces, path)
    }

    /// Whether the file there is the mapped one.
    fn is_at(&self, namespaces: &Namespaces, path: &str) -> bool {
        let there = namespaces.named.open(path);
        let Some(there) = there.and_then(|file| self.as_mapped(&file)) else {
            return false;
        };
        let is_same = |file: &Mapped| (&file.device, file.inode) == (&there.device, there.inode);
        let mut mapped = self.files.iter().filter(|file| file.path == path);
        mapped.any(is_same)
    }

    /// The kernel's numbers for a mapped file. On stacked file systems `stat` shows others.
    fn as_mapped(&self, file: &File) -> Option<Mapped> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let own = self.own.as_ref()?;
        // SAFETY: the kernel chooses a free place, and nothing is read or written there.
        let at = unsafe {
            mmap(
                null_mut(),
                MAPPED,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                file,
                0,
            )
        }
        .ok()?;
        let map = openat(own, "maps", flags, Mode::empty());
        let is_there = |mapping: &Mapping| mapping.range.contains(&(at as u64));
        let there = map
            .ok()
            .and_then(|map| maps::files(File::from(map), is_there)?.pop());
        // SAFETY: this was mapped above, and nothing else refers to it.
        let _ = unsafe { munmap(at, MAPPED) };
        there
    }
}

/// glibc finds a library by its name, even if the file is gone or changed. If it was loaded by another name (a link's),
/// glibc opens what is there now. In a folder that only the JVM's user or root can change, that is theirs. Without the
/// folder the JVM finds the library by its name or not at all.
fn is_closed_to_others(namespaces: &Namespaces, path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    match statat(CWD, namespaces.path(folder), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && [0, namespaces.uid].contains(&stat.st_uid)
                && stat.st_mode & 0o022 == 0
        }
        Err(error) => error == Errno::NOENT,
    }
}

/// Whether this is musl's library, by its own name or that of the link's target. (glibc's has a version at its end.)
pub fn is_musl(name: &str) -> bool {
    name.starts_with("ld-musl-") || name.starts_with("libc.musl-") || name == "libc.so"
}
