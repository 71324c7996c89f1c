//! The file that a JVM writes its map to where it is told no path (17 to 24): `/tmp/perf-PID.map`.
//!
//! It is made before the JVM is asked, which then neither follows a link nor writes over a map that was there. By a
//! second name, in the folder of the run, `clean` knows it for ours however the agent ends.

use std::io;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    flock, linkat, openat, statat, unlinkat, AtFlags, Dir, FlockOperation, Mode, OFlags,
};
use rustix::io::Errno;

use super::written::{Form, Written};
use crate::os::audit;
use crate::os::files::open_private;
use crate::staging::folders::{runs_of, Held, PLACEHOLDER};
use crate::wire::outcome::{Code, Failure};

/// Deleted when this is dropped, however that comes, unless it stays.
pub struct Placeholder {
    run: OwnedFd,
    run_path: String,
    /// Its name there.
    mark: String,
    tmp: OwnedFd,
    name: String,
    stays: bool,
}

impl Placeholder {
    /// Make it in `/tmp`, which is open; `stem` begins its name in the run's folder. Err where a file of that name is
    /// there.
    pub fn make(run: &Held, stem: &str, tmp: OwnedFd, name: String) -> Result<Self, Failure> {
        let cannot = |error: io::Error| {
            Failure::plain(format!("no file for the map: {error}")).coded(Code::NoWritableFolder)
        };
        let mark = format!("{stem}{PLACEHOLDER}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let dir = run.dir.try_clone().map_err(cannot)?;
        openat(&dir, &mark, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| cannot(error.into()))?;
        let made = Self {
            run: dir,
            run_path: run.path.clone(),
            mark,
            tmp,
            name,
            stays: false,
        };
        audit::note("file", || made.mark_path());
        match linkat(
            &made.run,
            &made.mark,
            &made.tmp,
            &made.name,
            AtFlags::empty(),
        ) {
            Ok(()) => {
                audit::note("file", || made.path());
                Ok(made)
            }
            Err(Errno::EXIST) => Err(Failure::new(
                format!("{} exists, and the JVM would overwrite it", made.path()),
                format!("remove {} if nobody needs it", made.path()),
            )
            .coded(Code::NoWritableFolder)),
            Err(error) => Err(Failure::plain(format!("{}: {error}", made.path()))),
        }
    }

    /// The map that the JVM wrote to it.
    pub fn written(&self, owner: u32) -> Result<Written, String> {
        Written::open(&self.run, &self.mark, owner, Form::Text)
    }

    /// Whether nothing was written to it.
    pub fn is_empty(&self) -> bool {
        let there = statat(&self.run, &self.mark, AtFlags::SYMLINK_NOFOLLOW);
        there.is_ok_and(|there| there.st_size == 0)
    }

    /// Leave it to a JVM that may yet write to it. Its path.
    pub fn stay(mut self) -> String {
        self.stays = true;
        self.path()
    }

    fn path(&self) -> String {
        format!("/tmp/{}", self.name)
    }

    fn mark_path(&self) -> String {
        format!("{}/{}", self.run_path, self.mark)
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        if is_same(&self.run, &self.mark, &self.tmp, &self.name)
            && unlinkat(&self.tmp, &self.name, AtFlags::empty()).is_ok()
        {
            audit::note("removed", || self.path());
        }
        if unlinkat(&self.run, &self.mark, AtFlags::empty()).is_ok() {
            audit::note("removed", || self.mark_path());
        }
    }
}

/// A file that the JVM was told to write a map to, and has not in time. Whoever drops it does not know whether the JVM
/// still comes to it: then it is left as to one that does.
pub struct Late {
    /// None once it is seen to.
    kept: Option<(Placeholder, Held)>,
}

impl Late {
    pub fn new(placeholder: Placeholder, run: Held) -> Self {
        let kept = Some((placeholder, run));
        Self { kept }
    }

    /// Delete it, unless the JVM `lives` and has not come to it: then it stays, so that the JVM writes to nothing else.
    /// What is left.
    pub fn leave(mut self, lives: bool) -> Option<String> {
        self.see_to(lives)
    }

    fn see_to(&mut self, lives: bool) -> Option<String> {
        let (placeholder, run) = self.kept.take()?;
        if lives && placeholder.is_empty() {
            run.keep();
            let path = placeholder.stay();
            return Some(format!("{path}, which the JVM may still write"));
        }
        drop(placeholder);
        run.release(|_| true).err()
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        // Nobody asks any more what is left; `clean` finds it.
        let _ = self.see_to(true);
    }
}

/// Delete what an earlier session left under this name, as `clean` does: nobody holds the folder with its other name.
/// `base`: the path of `tmp`, in which the folders are of which it may have a name.
pub fn remove_left(base: &str, tmp: &OwnedFd, name: &str, owner: u32) {
    // What a JVM or its user made has one name, and then no folder is looked into.
    let there = statat(tmp, name, AtFlags::SYMLINK_NOFOLLOW);
    if !there.is_ok_and(|there| there.st_nlink > 1) {
        return;
    }
    for folder in runs_of(base, owner).unwrap_or_default() {
        let path = format!("{base}/{folder}");
        let Ok(dir) = open_private(&path, owner) else {
            continue;
        };
        if flock(&dir, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let files = Dir::read_from(&dir).into_iter().flatten().flatten();
        let marks = files.filter_map(|file| Some(file.file_name().to_str().ok()?.to_owned()));
        let is_its = |mark: &String| usual_name(mark).is_some_and(|its| its == name);
        for mark in marks.filter(is_its) {
            if is_same(&dir, &mark, tmp, name) && unlinkat(tmp, name, AtFlags::empty()).is_ok() {
                audit::note("removed", || format!("{base}/{name}"));
                let _ = unlinkat(&dir, &mark, AtFlags::empty());
                audit::note("removed", || format!("{path}/{mark}"));
            }
        }
    }
}

/// The name in `/tmp` of what has this name in the folder of a run.
pub fn usual_name(mark: &str) -> Option<String> {
    let stem = mark.strip_suffix(PLACEHOLDER)?;
    let mut numbers = stem.split('-').skip(1);
    let pid: u32 = numbers.next()?.parse().ok()?;
    Some(format!("perf-{pid}.map"))
}

/// Whether two names are those of one file.
pub fn is_same(dir: impl AsFd, name: &str, other_dir: impl AsFd, other: &str) -> bool {
    let one = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let other = statat(other_dir, other, AtFlags::SYMLINK_NOFOLLOW);
    match (one, other) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::identity::Shoes;
    use crate::staging::folders::run_folder_in;
    use rustix::process::{getegid, geteuid};
    use std::fs::{create_dir, read_to_string, remove_dir_all, remove_file, write, File};
    use std::path::{Path, PathBuf};

    /// A folder that stands for `/tmp`, with a run's folder in it.
    fn tmp(name: &str) -> (PathBuf, Held) {
        let path = std::env::temp_dir().join(format!("hprofiler-{name}-{}", std::process::id()));
        create_dir(&path).unwrap();
        let shoes = Shoes::of_user(geteuid().as_raw(), getegid().as_raw()).unwrap();
        let run = run_folder_in(&shoes, path.to_str().unwrap(), "1-2").unwrap();
        (path, run)
    }

    fn make(tmp: &Path, run: &Held) -> Result<Placeholder, Failure> {
        let open = File::open(tmp).unwrap().into();
        Placeholder::make(run, "4-7-9", open, "perf-7.map".to_owned())
    }

    #[test]
    fn what_the_jvm_writes_is_read_and_deleted() {
        let (tmp, run) = tmp("written");
        let placeholder = make(&tmp, &run).unwrap();
        assert!(placeholder.is_empty());
        write(tmp.join("perf-7.map"), "1000 10 a.b\n").unwrap();
        assert!(!placeholder.is_empty());
        let map = placeholder.written(geteuid().as_raw()).unwrap();
        drop(placeholder);
        assert!(!tmp.join("perf-7.map").exists());
        assert_eq!(map.read().unwrap().find(0x1000)[0].0, "a.b");
        run.release(|_| true).unwrap();
        remove_dir_all(tmp).unwrap();
    }

    #[test]
    fn what_was_there_is_refused_and_stays() {
        let (tmp, run) = tmp("there");
        write(tmp.join("perf-7.map"), "theirs").unwrap();
        let refused = make(&tmp, &run).err().unwrap();
        assert!(refused.reason.contains("write over it"));
        assert_eq!(read_to_string(tmp.join("perf-7.map")).unwrap(), "theirs");
        run.release(|_| true).unwrap();
        remove_dir_all(tmp).unwrap();
    }

    #[test]
    fn what_took_its_place_is_not_deleted() {
        let (tmp, run) = tmp("place");
        let placeholder = make(&tmp, &run).unwrap();
        remove_file(tmp.join("perf-7.map")).unwrap();
        write(tmp.join("perf-7.map"), "theirs").unwrap();
        drop(placeholder);
        assert_eq!(read_to_string(tmp.join("perf-7.map")).unwrap(), "theirs");
        run.release(|_| true).unwrap();
        remove_dir_all(tmp).unwrap();
    }

    #[test]
    fn one_that_the_jvm_has_not_come_to_stays_and_is_known_by_its_mark() {
        let (tmp, run) = tmp("stays");
        let placeholder = make(&tmp, &run).unwrap();
        let dir = File::open(&run.path).unwrap();
        let other = Shoes::of_user(geteuid().as_raw(), getegid().as_raw()).unwrap();
        let other = run_folder_in(&other, tmp.to_str().unwrap(), "1-2").unwrap();
        let left = Late::new(placeholder, run).leave(true);
        assert!(left.unwrap().starts_with("/tmp/perf-7.map"));
        // Others of the session delete what is theirs.
        assert!(other.release(|_| true).is_err());
        let mark = format!("4-7-9{PLACEHOLDER}");
        let name = usual_name(&mark).unwrap();
        assert!(is_same(&dir, &mark, File::open(&tmp).unwrap(), &name));
        assert_eq!(usual_name("4-7-9.map"), None);
        assert_eq!(usual_name(&format!("4{PLACEHOLDER}")), None);
        remove_dir_all(tmp).unwrap();
    }

    #[test]
    fn one_that_nobody_will_write_to_any_more_is_deleted() {
        for (lives, written) in [(false, ""), (true, "1000 10 a.b\n")] {
            let (tmp, run) = tmp(&format!("late-{lives}"));
            let placeholder = make(&tmp, &run).unwrap();
            write(tmp.join("perf-7.map"), written).unwrap();
            assert_eq!(Late::new(placeholder, run).leave(lives), None);
            // Nothing is in it any more.
            std::fs::remove_dir(tmp).unwrap();
        }
    }

    #[test]
    fn what_an_earlier_session_left_is_taken_away_once_nobody_holds_it() {
        let (tmp, run) = tmp("earlier");
        let base = tmp.to_str().unwrap();
        let (open, map) = (
            OwnedFd::from(File::open(&tmp).unwrap()),
            tmp.join("perf-7.map"),
        );
        let mark = PathBuf::from(&run.path).join(format!("4-7-9{PLACEHOLDER}"));
        let remove = || remove_left(base, &open, "perf-7.map", geteuid().as_raw());
        write(&map, "theirs").unwrap();
        remove();
        remove_file(&map).unwrap();
        make(&tmp, &run).unwrap().stay();
        remove();
        assert!(map.exists() && mark.exists(), "it is held");
        run.keep();
        remove();
        assert!(!map.exists() && !mark.exists());
        remove_dir_all(tmp).unwrap();
    }

    #[test]
    fn one_that_nobody_asks_for_is_left_to_the_jvm() {
        for written in ["", "1000 10 a.b\n"] {
            let (tmp, run) = tmp(&format!("dropped-{}", written.len()));
            let path = run.path.clone();
            let placeholder = make(&tmp, &run).unwrap();
            write(tmp.join("perf-7.map"), written).unwrap();
            drop(Late::new(placeholder, run));
            assert_eq!(tmp.join("perf-7.map").exists(), written.is_empty());
            assert_eq!(Path::new(&path).exists(), written.is_empty());
            remove_dir_all(tmp).unwrap();
        }
    }
}
