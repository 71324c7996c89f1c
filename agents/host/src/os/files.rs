//! Careful reading and writing in folders that others may write to.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{
    accessat, fallocate, fchown, fstat, mkdirat, openat, renameat, statat, unlinkat, Access,
    AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, Stat, Uid, CWD,
};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::os::audit;
use crate::os::proc;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Open a folder, to list it.
pub fn open_folder(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

/// Open a folder, to find files in it by their names, which needs no right to list it.
pub fn enter_folder(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

/// Whether a descriptor is ready within this time. A signal may end the wait early.
pub fn is_ready(fd: impl AsFd, wanted: PollFlags, patience: Duration) -> io::Result<bool> {
    let patience = Timespec {
        tv_sec: patience.as_secs() as i64,
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    match poll(&mut [PollFd::new(&fd, wanted)], Some(&patience)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of a file's first `size` bytes. Err: it has fewer.
pub fn hash_of(file: &mut File, size: u64) -> io::Result<String> {
    let mut hash = Sha256::new();
    file.rewind()?;
    let copied = io::copy(&mut file.take(size), &mut hash)?;
    if copied < size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(hex(&hash.finalize()))
}

pub fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Whether the calling thread could make files in a folder, by its effective ids, which `access` does not use.
pub fn could_make_files(folder: &str) -> Result<(), Errno> {
    let may = Access::WRITE_OK | Access::EXEC_OK;
    match accessat(CWD, folder, may, AtFlags::EACCESS) {
        // Kernels before 5.8 and old containers do not answer. Making a file will show.
        Err(Errno::NOSYS | Errno::PERM) => Ok(()),
        may => may,
    }
}

/// Read a whole regular file of at most `limit` bytes, without following a link or waiting for a pipe. With `owner`,
/// only a file of that user.
pub fn read_regular(
    dir: impl AsFd,
    name: &str,
    owner: Option<u32>,
    limit: u64,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(dir, name, owner, limit)?
        .0
        .take(limit + 1)
        .read_to_end(&mut bytes)?;
    within(name, bytes.len() as u64, limit)?;
    Ok(bytes)
}

/// As `read_regular`, without reading: the open file and its size.
pub fn open_regular(
    dir: impl AsFd,
    name: &str,
    owner: Option<u32>,
    limit: u64,
) -> io::Result<(File, u64)> {
    let found = openat(dir, name, FIND | OFlags::NOFOLLOW, Mode::empty())?;
    regular(open_found(&found, name)?, name, owner, limit)
}

/// A handle that shows what is there, and does nothing to it.
pub const FIND: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Open what was found with `FIND`, if it is a regular file: to open a device or a pipe can do something. Whatever the
/// agent reads where another user can put a file is opened here.
pub fn open_found(found: &OwnedFd, name: &str) -> io::Result<File> {
    let kind = FileType::from_raw_mode(fstat(found)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(io::Error::other(format!("{name} is not a regular file")));
    }
    let own = proc::own().ok_or(io::ErrorKind::NotFound)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let again = openat(
        own,
        format!("fd/{}", found.as_raw_fd()),
        flags,
        Mode::empty(),
    );
    Ok(File::from(again?))
}

/// Give back the disk space of the beginning of a regular file, whose length stays. The file is opened anew, to write.
/// Only whole blocks are given back, so the next call begins at the beginning again.
pub fn punch(file: &File, to: u64) -> io::Result<()> {
    let own = proc::own().ok_or(io::ErrorKind::NotFound)?;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let again = openat(
        own,
        format!("fd/{}", file.as_raw_fd()),
        flags,
        Mode::empty(),
    )?;
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(again, hole, 0, to)?)
}

/// The same for a file that is open already.
pub fn regular(file: File, name: &str, owner: Option<u32>, limit: u64) -> io::Result<(File, u64)> {
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::other(format!("{name} is not a regular file")));
    }
    if owner.is_some_and(|owner| owner != stat.st_uid) {
        return Err(io::Error::other(format!(
            "{name} belongs to user {}",
            stat.st_uid
        )));
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    within(name, size, limit)?;
    Ok((file, size))
}

fn within(name: &str, size: u64, limit: u64) -> io::Result<()> {
    match size > limit {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("{name} is larger than {} MiB", limit >> 20),
        )),
        false => Ok(()),
    }
}

/// Put a file in place whole or not at all. A file that is there keeps its own inode. With `owner`, the file that was
/// made is given away, not the one with its name, which the folder's owner can change at any moment.
pub fn write_whole(
    owner: Option<(Uid, Gid)>,
    dir: impl AsFd,
    name: &str,
    bytes: &[u8],
    mode: Mode,
) -> io::Result<()> {
    let temporary = format!(".new-{name}-{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&dir, &temporary, flags, mode)?;
    let mut file = File::from(file);
    let written = file
        .write_all(bytes)
        .and_then(|()| match owner {
            Some((uid, gid)) => Ok(fchown(&file, Some(uid), Some(gid))?),
            None => Ok(()),
        })
        .and_then(|()| Ok(renameat(&dir, &temporary, &dir, name)?));
    if written.is_err() {
        let _ = unlinkat(&dir, &temporary, AtFlags::empty());
    }
    written
}

pub fn is_temporary(name: &str) -> bool {
    name.starts_with(".new-")
}

/// Open a folder that only `owner` can enter. Err says what is wrong.
pub fn open_private(path: &str, owner: u32) -> Result<OwnedFd, String> {
    let dir = openat(CWD, path, FOLDER, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => format!("{path} is a link, or not a folder"),
        error => format!("{path}: {error}"),
    })?;
    let stat = fstat(&dir).map_err(|error| format!("{path}: {error}"))?;
    check_private(path, &stat, owner)?;
    Ok(dir)
}

/// As `open_private`, after making the folder if there is none.
pub fn make_private(path: &str, owner: u32) -> Result<OwnedFd, String> {
    match mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) => {
            audit::note("folder", || path.to_owned());
            open_private(path, owner)
        }
        Err(Errno::EXIST) => open_private(path, owner),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

pub fn check_private(path: &str, stat: &Stat, owner: u32) -> Result<(), String> {
    if stat.st_uid != owner {
        return Err(format!(
            "{path} belongs to user {} not to {owner}",
            stat.st_uid
        ));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(format!(
            "{path} is open to others (mode {:o})",
            stat.st_mode & 0o7777
        ));
    }
    Ok(())
}

/// Whether `path` still leads to the folder that is open.
pub fn is_at(dir: &OwnedFd, path: &str) -> bool {
    match (fstat(dir), statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(open), Ok(there)) => file_id(&open) == file_id(&there),
        _ => false,
    }
}

/// Device and inode.
pub fn file_id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::fs;
    use std::ops::Deref;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn equal_inodes_on_two_devices_are_two_files() {
        // The root folders of both file systems are number 1.
        let [proc, sys] = ["/proc", "/sys"].map(|root| rustix::fs::stat(root).unwrap());
        assert_eq!(proc.st_ino, sys.st_ino);
        assert_ne!(file_id(&proc), file_id(&sys));
    }

    #[test]
    fn the_beginning_of_a_file_takes_no_room_whatever_the_steps() {
        use std::os::unix::fs::MetadataExt;
        let folder = Folder::new();
        let file = File::open(folder.put("file", [7; 200_000])).unwrap();
        let blocks = || file.metadata().unwrap().blocks();
        let before = blocks();
        for to in (1..=200).map(|step| step * 1000) {
            punch(&file, to).unwrap();
        }
        assert!(blocks() * 10 < before, "{} of {before}", blocks());
        assert_eq!(file.metadata().unwrap().len(), 200_000);
    }

    /// An empty folder, until the end of the value.
    pub struct Folder(PathBuf);

    impl Folder {
        pub fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("hprofiler-test-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        /// Write a file, and make the folders above it.
        pub fn put(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
            let path = self.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }
    }

    impl Deref for Folder {
        type Target = Path;

        fn deref(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
