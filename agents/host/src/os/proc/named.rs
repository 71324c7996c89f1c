//! Files that a process's user named: on its command line, by its JDK, in its `/tmp`.
//!
//! Such a name may lead anywhere. It is looked up within the process's root, with the rights of the calling thread: one
//! with that user's rights (`identity`) reads nothing that the user may not read.

use std::cell::Cell;
use std::fs::File;
use std::io::Read;

use rustix::fd::OwnedFd;
use rustix::fs::{
    fstat, fstatfs, openat, openat2, FileType, Mode, OFlags, ResolveFlags, PROC_SUPER_MAGIC,
};
use rustix::io::Errno;

/// The most bytes of all texts that are read for one process.
const ALL_TEXTS: u64 = 1 << 20;

pub struct Named {
    root: OwnedFd,
    cwd: Option<String>,
    left: Cell<u64>,
}

impl Named {
    /// Relative names start at `cwd` in `root`, a directory.
    pub fn new(root: OwnedFd, cwd: Option<String>) -> Self {
        Self {
            root,
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

    /// Open a regular file for reading, without waiting for a pipe.
    pub fn open(&self, path: &str) -> Option<File> {
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{}/{path}", self.cwd.as_ref()?),
        };
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let file = match openat2(&self.root, &path, READ, Mode::empty(), within) {
            // Kernels before 5.6, and containers that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => open_without_links(&self.root, &path),
            opened => opened,
        };
        let file = file.ok()?;
        let regular = FileType::from_raw_mode(fstat(&file).ok()?.st_mode) == FileType::RegularFile;
        // `/proc/self` would be the agent's own.
        let process = fstatfs(&file).ok()?.f_type == PROC_SUPER_MAGIC;
        (regular && !process).then(|| File::from(file))
    }
}

const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Without links and `..` no path leads out of the root.
fn open_without_links(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
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
    openat(&dir, last, READ | OFlags::NOFOLLOW, Mode::empty())
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
            assert_eq!(open_without_links(&dir, path).is_ok(), found, "{path}");
        }
    }

    #[test]
    fn files_of_a_process_are_not_read() {
        let named = Named::new(OwnedFd::from(File::open("/").unwrap()), None);
        assert_eq!(named.text("/proc/self/environ"), None);
        assert_eq!(named.text("relative"), None);
    }
}
