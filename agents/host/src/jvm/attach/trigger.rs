//! The file that tells a JVM what SIGQUIT means this time. All tools that attach call it alike, and one that is there
//! serves whoever sends the signal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{openat, statat, AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::os::files::Passing;

/// How often it is tried to make it while others make and delete theirs.
const TRIES: u32 = 10;

/// One that is there; it goes with this where it was made here.
pub struct Trigger {
    own: Option<Passing>,
    /// How old it is where another tool made it, which is to delete it.
    pub others: Option<Duration>,
}

impl Trigger {
    /// What people may call it, where it was made here.
    pub fn path(&self) -> Option<String> {
        self.own.as_ref().map(Passing::path)
    }

    /// One of the JVM's own user that is there already.
    pub fn of_others(dir: impl AsFd, name: &str, uid: u32) -> Option<Self> {
        let there = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (there.st_uid == uid).then(|| Self {
            own: None,
            others: Some(age(&there)),
        })
    }

    /// Make it in a folder, which is told by the name `place`, unless there is one of the JVM's own user. Anybody else's
    /// the JVM would take for a request to dump its threads.
    pub fn put(dir: OwnedFd, name: &str, uid: u32, place: &'static str) -> Result<Self, Errno> {
        match make(&dir, name)? {
            None => Ok(Self {
                own: Some(Passing::new(dir, name, place)),
                others: None,
            }),
            Some(there) if there.st_uid == uid => Ok(Self {
                own: None,
                others: Some(age(&there)),
            }),
            Some(_) => Err(Errno::EXIST),
        }
    }
}

/// Make the file; what is there where there is one.
fn make(dir: impl AsFd, name: &str) -> Result<Option<Stat>, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        match openat(&dir, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(_) => return Ok(None),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => return Ok(Some(there)),
            Err(Errno::NOENT) => {} // whoever made it has just deleted it
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

/// By a clock that may have been set since: what comes from the future is new.
fn age(there: &Stat) -> Duration {
    let seconds = u64::try_from(there.st_ctime).unwrap_or(0);
    let nanos = u32::try_from(there.st_ctime_nsec).unwrap_or(0);
    let changed = UNIX_EPOCH + Duration::new(seconds, nanos);
    let age = SystemTime::now().duration_since(changed);
    age.unwrap_or(Duration::ZERO)
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
        assert!(own.others.is_none() && file.exists());
        drop(own);
        assert!(!file.exists());
        write(&file, "").unwrap();
        let theirs = put(me).unwrap();
        assert!(theirs.others.unwrap() < Duration::from_secs(60));
        let seen = |uid| Trigger::of_others(File::open(&path).unwrap(), "x", uid);
        assert!(seen(me).is_some() && seen(me + 1).is_none());
        drop(theirs);
        assert!(file.exists());
        assert_eq!(put(me + 1).err(), Some(Errno::EXIST));
        remove_dir_all(&path).unwrap();
    }
}
