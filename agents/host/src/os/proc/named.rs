//! Files that a process's user named: on its command line, by its JDK, in its `/tmp`, by what it maps.
//!
//! Such a name may lead anywhere. It is looked up within the process's root, and only a regular file is opened: to open
//! a device or a pipe can do something. Where that is possible, a thread or a child with that user's rights does it
//! (`identity`, `fence`). Then the agent reads nothing that the user may not read.

use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::ptr::null_mut;
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::{
    fstat, fstatfs, openat, openat2, FileType, Mode, OFlags, ResolveFlags, PROC_SUPER_MAGIC,
};
use rustix::io::Errno;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

use super::maps::{self, Mapped};
use super::own;
use crate::os::files::{open_found, FIND};

/// The most bytes of all texts that are read for one process.
const ALL_TEXTS: u64 = 1 << 20;

pub struct Named {
    pub root: Arc<OwnedFd>,
    cwd: Option<String>,
    left: Cell<u64>,
}

impl Named {
    /// Relative names start at `cwd` in `root`, a directory.
    pub fn new(root: OwnedFd, cwd: Option<String>) -> Self {
        Self {
            root: Arc::new(root),
            cwd,
            left: Cell::new(ALL_TEXTS),
        }
    }

    pub fn text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let mut file = self.open(path)?.take(self.left.get());
        file.read_to_end(&mut bytes).ok()?;
        self.left.set(file.limit());
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Open a regular file for reading.
    pub fn open(&self, path: &str) -> Option<File> {
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{}/{path}", self.cwd.as_ref()?),
        };
        open_within(&self.root, &path)
    }

    /// Open the file that a process maps. None: another one is at its place now.
    pub fn open_mapped(&self, mapped: &Mapped) -> Option<File> {
        let file = self.open(&mapped.path)?;
        let there = as_mapped(&file)?;
        let same = (&there.device, there.inode) == (&mapped.device, mapped.inode);
        same.then_some(file)
    }
}

/// Open a regular file by an absolute path in a root.
pub fn open_within(root: &OwnedFd, path: &str) -> Option<File> {
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let found = match openat2(root, path, FIND, Mode::empty(), within) {
        // Kernels before 5.6, and containers that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => find_without_links(root, path),
        found => found,
    };
    let found = found.ok()?;
    // `/proc/self` would be the agent's own.
    let process = fstatfs(&found).ok()?.f_type == PROC_SUPER_MAGIC;
    (!process).then(|| open_found(&found, path).ok())?
}

/// The kernel's numbers for a mapped file. On stacked file systems `stat` shows others.
fn as_mapped(file: &File) -> Option<Mapped> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
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
    let map = own().and_then(|own| openat(own, "maps", flags, Mode::empty()).ok());
    let is_there = |mapping: &maps::Mapping| mapping.range.contains(&(at as u64));
    let there = map.and_then(|map| maps::files(File::from(map), is_there)?.pop());
    // SAFETY: this was mapped above, and nothing else refers to it.
    let _ = unsafe { munmap(at, MAPPED) };
    there
}

/// Enough to see the kernel's numbers for a mapped file. Nothing is read.
const MAPPED: usize = 1;

/// Without links and `..` no path leads out of the root.
fn find_without_links(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    let mut names: Vec<&str> = path
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    if names.contains(&"..") {
        return Err(Errno::XDEV);
    }
    let last = names.pop().ok_or(Errno::ISDIR)?;
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = openat(root, ".", folder, Mode::empty())?;
    for name in names {
        dir = openat(&dir, name, folder, Mode::empty())?;
    }
    let last = openat(&dir, last, FIND | OFlags::NOFOLLOW, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&last)?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP),
        _ => Ok(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::files::tests::Folder;
    use std::os::unix::fs::symlink;

    /// A root with `within/file` and links out of it, in a folder with `secret`.
    fn root() -> (OwnedFd, Folder) {
        let folder = Folder::new();
        let root = folder.join("root");
        folder.put("secret", "secret");
        folder.put("root/within/file", "text");
        symlink("/within/file", root.join("link")).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("/proc/self/environ", root.join("environ")).unwrap();
        (OwnedFd::from(File::open(&root).unwrap()), folder)
    }

    #[test]
    fn no_name_leads_out_of_the_root() {
        let (dir, _folder) = root();
        let named = Named::new(dir, Some("/within".to_owned()));
        for (path, want) in [
            ("/within/file", Some("text")),
            ("file", Some("text")),
            ("../link", Some("text")),
            ("/out", None),
            ("/../secret", None),
            ("../../../secret", None),
            ("/environ", None),
            ("/within", None),
            ("", None),
        ] {
            assert_eq!(named.text(path).as_deref(), want, "{path}");
        }
    }

    #[test]
    fn nor_where_the_kernel_does_not_help() {
        let (dir, _folder) = root();
        for (path, found) in [
            ("/within/file", true),
            ("//within/./file", true),
            ("/link", false),
            ("/out", false),
            ("/../secret", false),
            ("/", false),
        ] {
            assert_eq!(find_without_links(&dir, path).is_ok(), found, "{path}");
        }
    }

    #[test]
    fn only_the_file_that_is_mapped_is_opened() {
        let (dir, folder) = root();
        let named = Named::new(dir, None);
        let mut mapped = as_mapped(&named.open("/within/file").unwrap()).unwrap();
        mapped.path = "/link".to_owned();
        assert!(named.open_mapped(&mapped).is_some());
        folder.put("root/within/other", "text");
        mapped.path = "/within/other".to_owned();
        assert!(named.open_mapped(&mapped).is_none());
        let device = std::mem::replace(&mut mapped.device, "ff:ff".to_owned());
        mapped.path = "/within/file".to_owned();
        assert!(named.open_mapped(&mapped).is_none());
        mapped.device = device;
        assert!(named.open_mapped(&mapped).is_some());
    }

    #[test]
    fn files_of_a_process_are_not_read() {
        let named = Named::new(OwnedFd::from(File::open("/").unwrap()), None);
        assert_eq!(named.text("/proc/self/environ"), None);
        assert_eq!(named.text("relative"), None);
    }
}
