//! What a JVM has loaded, and which of it may be named to that JVM once more.
//!
//! To ask a library that is loaded is to have the JVM load it again. musl then opens the path and knows the library by
//! its file: where that is gone, and its folder in `/tmp` with it, anybody can put another one there, and the JVM would
//! run its code.

use std::collections::HashSet;
use std::fs::File;
use std::ptr::null_mut;

use rustix::fd::OwnedFd;
use rustix::fs::{openat, statat, AtFlags, FileType, Mode, OFlags, CWD};
use rustix::io::Errno;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

use crate::os::identity::Namespaces;
use crate::os::proc::maps::{self, file_name, Mapped};
use crate::os::proc::target::Target;

/// Enough to see what the kernel calls a file that is mapped; none of it is read.
const MAPPED: usize = 1;

/// The files whose code a JVM may run.
#[derive(Default)]
pub struct Loaded {
    files: Vec<Mapped>,
    /// Whether its C library is musl.
    pub musl: bool,
    /// The agent's own `/proc`, which is not there among the files of another.
    own: Option<OwnedFd>,
}

impl Loaded {
    /// None where the map is not ours to read. To be called before the thread takes the process's user, and sees its
    /// files.
    pub fn of(target: &Target) -> Option<Self> {
        let files = target.programs()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Some(Self {
            musl: files.iter().any(|file| is_musl(file_name(&file.path))),
            own: openat(CWD, "/proc/self", flags, Mode::empty()).ok(),
            files,
        })
    }

    /// Their paths, each once.
    pub fn paths(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let paths = self.files.iter().map(|file| &file.path);
        paths.filter(|path| seen.insert(*path)).cloned().collect()
    }

    /// Whether the JVM may be told to load this path, which it has loaded already, without being given the code of
    /// somebody else.
    pub fn may_be_named(&self, namespaces: &Namespaces, path: &str) -> bool {
        self.is_at(namespaces, path) || !self.musl && is_closed_to_others(namespaces, path)
    }

    /// Whether what lies there is what is mapped.
    fn is_at(&self, namespaces: &Namespaces, path: &str) -> bool {
        let there = namespaces.named.open(path);
        let Some(there) = there.and_then(|file| self.as_mapped(&file)) else {
            return false;
        };
        let is_same = |file: &Mapped| (&file.device, file.inode) == (&there.device, there.inode);
        let mut mapped = self.files.iter().filter(|file| file.path == path);
        mapped.any(is_same)
    }

    /// What the kernel tells of a file once it is mapped: by other numbers than `stat`, where file systems lie on others.
    fn as_mapped(&self, file: &File) -> Option<Mapped> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let own = self.own.as_ref()?;
        // SAFETY: the kernel chooses a place where nothing is, and nothing is read or written there.
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
        let there = map
            .ok()
            .and_then(|map| maps::file_at(File::from(map), at as u64));
        // SAFETY: that is what was mapped above, and nobody else was told of it.
        let _ = unsafe { munmap(at, MAPPED) };
        there
    }
}

/// glibc finds a library by the name it was loaded by, whatever became of the file; but it may have been by another name
/// (a link's), and then it opens what is there. What lies in a folder that only the JVM's user or root can change is
/// theirs; where there is none, the JVM finds the library by its name or not at all.
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

/// Whether this is musl's one library: under its own name, or where that is a link, what the link leads to. (The C
/// library of glibc has a version at its end.)
pub fn is_musl(name: &str) -> bool {
    name.starts_with("ld-musl-") || name.starts_with("libc.musl-") || name == "libc.so"
}
