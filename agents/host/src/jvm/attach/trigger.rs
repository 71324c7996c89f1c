//! The file that makes a JVM take SIGQUIT as an attach request. All tools that attach use the same name, so one file
//! serves them all.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{openat, statat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::os::audit;

/// How often to try, while others make and delete theirs.
const TRIES: u32 = 10;

/// A trigger file. Dropping it deletes the file, if it was made here.
pub struct Trigger {
    dir: OwnedFd,
    name: String,
    /// The folder's name in messages.
    place: &'static str,
    is_own: bool,
}

impl Trigger {
    pub fn path(&self) -> Option<String> {
        self.is_own.then(|| format!("{}/{}", self.place, self.name))
    }

    /// Make it in a folder, unless the JVM's user has one there. For other users' files the JVM dumps its threads.
    pub fn put(dir: OwnedFd, name: &str, uid: u32, place: &'static str) -> Result<Self, Errno> {
        let owner = make(&dir, name)?;
        if owner.is_some_and(|owner| owner != uid) {
            return Err(Errno::EXIST);
        }
        let trigger = Self {
            dir,
            name: name.to_owned(),
            place,
            is_own: owner.is_none(),
        };
        if let Some(path) = trigger.path() {
            audit::note("file", || path);
        }
        Ok(trigger)
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        if let Some(path) = self.path() {
            if unlinkat(&self.dir, &self.name, AtFlags::empty()).is_ok() {
                audit::note("removed", || path);
            }
        }
    }
}

/// Returns the owner of a file that is there.
fn make(dir: impl AsFd, name: &str) -> Result<Option<u32>, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        match openat(&dir, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(_) => return Ok(None),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => return Ok(Some(there.st_uid)),
            Err(Errno::NOENT) => {} // its maker has just deleted it
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::files::tests::Folder;
    use rustix::process::geteuid;
    use std::fs::{write, File};

    #[test]
    fn the_file_of_another_tool_stays() {
        let folder = Folder::new();
        let (file, me) = (folder.join("x"), geteuid().as_raw());
        let put = |uid| Trigger::put(File::open(&*folder).unwrap().into(), "x", uid, "/tmp");
        let own = put(me).unwrap();
        assert!(own.path().is_some() && file.exists());
        drop(own);
        assert!(!file.exists());
        write(&file, "").unwrap();
        let theirs = put(me).unwrap();
        assert!(theirs.path().is_none());
        drop(theirs);
        assert!(file.exists());
        assert_eq!(put(me + 1).err(), Some(Errno::EXIST));
    }
}
