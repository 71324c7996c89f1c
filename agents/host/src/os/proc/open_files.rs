//! The files that a process has open: what the links in `/proc/PID/fd` read.

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{openat, readlinkat, Dir, DirEntry, Mode, OFlags};
use rustix::io::Errno;

/// As many as a process may have by most systems' limits.
const MOST: usize = 1 << 20;

/// What each of them is, of the process whose folder of `/proc` this is; Err where that cannot be seen, and nothing of
/// those that were closed meanwhile. None where which there are is not ours to see, or the process is gone.
pub fn of(process: BorrowedFd) -> Option<impl Iterator<Item = Result<String, Errno>>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(process, "fd", flags, Mode::empty()).ok()?;
    let entries = Dir::read_from(&dir).ok()?;
    let numbers = entries
        .flatten()
        .filter(|entry| !entry.file_name().to_bytes().starts_with(b"."));
    Some(
        numbers
            .take(MOST)
            .filter_map(move |entry| link(&dir, &entry)),
    )
}

fn link(dir: &OwnedFd, entry: &DirEntry) -> Option<Result<String, Errno>> {
    match readlinkat(dir, entry.file_name(), Vec::new()) {
        Ok(link) => Some(Ok(link.to_string_lossy().into_owned())),
        Err(Errno::NOENT) => None,
        Err(error) => Some(Err(error)),
    }
}
