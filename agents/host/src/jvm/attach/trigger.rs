//! The file that tells a JVM what SIGQUIT means this time. All tools that attach call it alike, and one that is there
//! serves whoever sends the signal.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{openat, statat, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::os::files::Passing;

/// How often it is tried to make it while others make and delete theirs.
const TRIES: u32 = 10;

/// One that is there. It is deleted with this where it was made here; another tool deletes its own.
pub struct Trigger {
    own: Option<Passing>,
}

impl Trigger {
    /// What people may call it, where it was made here.
    pub fn path(&self) -> Option<String> {
        self.own.as_ref().map(Passing::path)
    }

    /// Make it in a folder, which is told by the name `place`, unless there is one of the JVM's own user. Anybody else's
    /// the JVM would take for a request to dump its threads.
    pub fn put(dir: OwnedFd, name: &str, uid: u32, place: &'static str) -> Result<Self, Errno> {
        match make(&dir, name)? {
            None => Ok(Self {
                own: Some(Passing::new(dir, name, place)),
            }),
            Some(owner) if owner == uid => Ok(Self { own: None }),
            Some(_) => Err(Errno::EXIST),
        }
    }
}

/// Make the file; its owner where there is one.
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
            Err(Errno::NOENT) => {} // whoever made it has just deleted it
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::fs::{create_dir, remove_dir_all, write, File};

    #[test]
    fn what_another_tool_made_is_left_to_it() {
        let path = std::env::temp_dir().join(format!("hprofiler-trigger-{}", std::process::id()));
        create_dir(&path).unwrap();
        let (file, me) = (path.join("x"), geteuid().as_raw());
        let put = |uid| Trigger::put(File::open(&path).unwrap().into(), "x", uid, "/tmp");
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
        remove_dir_all(&path).unwrap();
    }
}
