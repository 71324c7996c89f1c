//! Libraries that a JVM has loaded, and which of them it may be told to load again.
//!
//! The JVM loads a library again to run its commands. musl then opens the path and recognises the library by its file.
//! If the file and its folder in `/tmp` are gone, anybody can put another one there, and the JVM would run its code.

use std::collections::HashSet;

use rustix::fs::{statat, AtFlags, FileType, CWD};
use rustix::io::Errno;

use crate::os::identity::Namespaces;
use crate::os::proc::maps::{file_name, Mapped};
use crate::os::proc::target::Target;

#[derive(Default)]
pub struct Loaded {
    files: Vec<Mapped>,
    pub musl: bool,
}

impl Loaded {
    /// None: the agent may not read the map. To be called before the thread takes the process's user and files.
    pub fn of(target: &Target) -> Option<Self> {
        let files = target.mapped(|mapping| mapping.is_code())?;
        Some(Self {
            musl: files.iter().any(|file| is_musl(file_name(&file.path))),
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
        let mut mapped = self.files.iter().filter(|file| file.path == path);
        mapped.any(|file| namespaces.named.open_mapped(file).is_some())
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
