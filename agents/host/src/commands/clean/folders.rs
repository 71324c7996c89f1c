//! Folders and files of ours. All is done by descriptors of the folders it is in, by a thread that has their owner's
//! rights and no others, so that whatever traps lie there it can do no more than their owner could.

use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{
    flock, fstat, openat, openat2, statat, unlinkat, AtFlags, Dir, FileType, FlockOperation, Mode,
    OFlags, ResolveFlags, Stat, CWD,
};
use rustix::io::Errno;

use super::elsewhere;
use super::names::{self, Named};
use super::profilers;
use super::{Cleaning, Stranger};
use crate::engine::perf::placeholder;
use crate::os::audit;
use crate::os::files::check_private;
use crate::os::identity::Shoes;
use crate::staging::folders::{is_free, is_usual};
use crate::wire::events::{Entry, Found, Kind, State};

/// A folder of ours has no more files, and one with more is not read to its end.
const MOST_FILES: usize = 10_000;
const TOO_MANY: &str = "more than 10000 files";
/// How long a folder that all may write to is read.
const TO_READ: Duration = Duration::from_secs(3);
/// What is younger may be on its way to the host, in seconds.
const ON_ITS_WAY: u64 = 300;

/// A folder in which ours may be.
pub struct Base<'a> {
    dir: OwnedFd,
    /// As whoever uses it calls it.
    path: String,
    shoes: &'a Shoes,
}

impl<'a> Base<'a> {
    pub fn open(shoes: &'a Shoes, path: &str) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(CWD, shoes.path(path), flags, Mode::empty()).ok()?;
        let path = path.trim_end_matches('/').to_owned();
        Some(Self { dir, path, shoes })
    }

    /// Whether it was not looked through before, by another JVM of this user.
    fn is_first(&self, cleaning: &Cleaning) -> bool {
        let stat = fstat(&self.dir);
        stat.is_ok_and(|stat| cleaning.looks((stat.st_dev, stat.st_ino), self.shoes.uid))
    }

    /// The names of ours in it, and whether that is all of them.
    pub fn ours(&self) -> (Vec<(String, Named)>, bool) {
        let end = Instant::now() + TO_READ;
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_str().unwrap_or_default();
            if profilers::is_own_probe(name) {
                continue;
            }
            found.extend(names::kind(name).map(|kind| (name.to_owned(), kind)));
            if found.len() > MOST_FILES || Instant::now() > end {
                return (found, false);
            }
        }
        (found, true)
    }

    pub fn stat(&self, name: &str) -> Option<Stat> {
        statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Meet everything of ours in it.
    pub fn look(&self, cleaning: &Cleaning, found: &mut Found) {
        if !self.is_first(cleaning) {
            return;
        }
        let (ours, all) = self.ours();
        for (name, kind) in ours {
            self.meet(cleaning, &name, kind, found);
        }
        if !all {
            found.fail(&self.path, "it has too many files to look through");
        }
    }

    /// Meet what has this name.
    pub fn meet(&self, cleaning: &Cleaning, name: &str, named: Named, found: &mut Found) {
        let Some(stat) = self.stat(name) else {
            return;
        };
        let path = format!("{}/{name}", self.path);
        let user = cleaning.users.name(stat.st_uid);
        let kind = match named {
            Named::Once => Kind::File,
            _ => Kind::Folder,
        };
        let entry = Entry::of_path(kind, path, &stat, user, cleaning.now);
        let id = (stat.st_dev, stat.st_ino);
        let private = matches!(named, Named::Private | Named::Once);
        if stat.st_uid != self.shoes.uid {
            let owner = stat.st_uid;
            let stranger = Stranger {
                owner,
                private,
                entry,
            };
            cleaning.stranger(id, stranger);
            return;
        }
        if !cleaning.is_first(id) {
            return;
        }
        if private && cleaning.kept {
            return;
        }
        if private && !cleaning.may(stat.st_uid) {
            let reason = entry.of_another_user();
            found.meet(&cleaning.order, entry.judged(State::Foreign, reason));
            return;
        }
        match named {
            Named::Once => self.meet_file(cleaning, name, &stat, entry, found),
            _ => self.meet_folder(cleaning, name, named, &stat, entry, found),
        }
    }

    fn meet_file(
        &self,
        cleaning: &Cleaning,
        name: &str,
        stat: &Stat,
        entry: Entry,
        found: &mut Found,
    ) {
        let young = entry.seconds.is_some_and(|seconds| seconds < ON_ITS_WAY);
        let entry = match strange(stat, self.shoes.uid) {
            Some(what) => entry.judged(State::Foreign, format!("it is {what}")),
            None if stat.st_nlink > 1 => entry.judged(State::Foreign, "it has other names"),
            None if cleaning.runs(stat) => entry.judged(State::Used, "an agent runs from it"),
            None if young => entry.judged(State::Used, "it may be on its way to the host"),
            None => entry.judged(State::Left, "the session that it was sent for is gone"),
        };
        let path = entry.path.clone();
        if found.meet(&cleaning.order, entry) {
            match unlinkat(&self.dir, name, AtFlags::empty()) {
                Ok(()) => removed(found, path),
                Err(error) => found.fail(path, error.to_string()),
            }
        }
    }

    fn meet_folder(
        &self,
        cleaning: &Cleaning,
        name: &str,
        named: Named,
        stat: &Stat,
        entry: Entry,
        found: &mut Found,
    ) {
        let opened = self.open_ours(name, stat, &entry.path);
        let (dir, held) = match opened {
            Ok(dir) => {
                let held = Contents::read(&dir, named, self.shoes.uid, cleaning.now);
                (dir, held)
            }
            // A folder of everybody's caches may well be called as ours is.
            Err(_) if name == names::CACHE => return,
            Err(reason) => {
                found.meet(&cleaning.order, entry.judged(State::Foreign, reason));
                return;
            }
        };
        let entry = Entry {
            bytes: Some(held.bytes),
            seconds: Some(cleaning.now.saturating_sub(held.newest)),
            own: cleaning.own == Some((stat.st_dev, stat.st_ino)),
            ..entry
        };
        let entry = judge(cleaning, &dir, named, stat, &held, entry);
        if entry.state == State::Foreign && name == names::CACHE {
            return;
        }
        let path = entry.path.clone();
        if found.meet(&cleaning.order, entry) {
            match self.delete(name, stat, &dir, &held) {
                Ok(()) if held.strange.is_none() => removed(found, path),
                // All that was promised: the folder is somebody else's from now on. Each file is noted as it goes.
                Ok(()) => {
                    let files = held.ours.iter().map(|file| format!("{path}/{file}"));
                    found.cleaned.removed.extend(files);
                }
                Err(reason) => found.fail(path, reason),
            }
        }
    }

    /// Open a folder that only its owner can enter and that nothing is mounted on. Err says what is wrong with it.
    fn open_ours(&self, name: &str, seen: &Stat, path: &str) -> Result<OwnedFd, String> {
        let flags = OFlags::RDONLY
            | OFlags::DIRECTORY
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let within = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        let opened = match openat2(&self.dir, name, flags, Mode::empty(), within) {
            // Kernels before 5.6, and filters that do not know it.
            Err(Errno::NOSYS | Errno::PERM) => openat(&self.dir, name, flags, Mode::empty()),
            opened => opened,
        };
        let dir = opened.map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => "it is a link or no folder".to_owned(),
            Errno::XDEV => "something is mounted there".to_owned(),
            error => error.to_string(),
        })?;
        let stat = fstat(&dir).map_err(|error| error.to_string())?;
        if (stat.st_dev, stat.st_ino) != (seen.st_dev, seen.st_ino) {
            return Err("it was changed while it was looked at".to_owned());
        }
        check_private(path, &stat, self.shoes.uid).map(|()| dir)
    }

    /// Delete what a file of a run is in `/tmp` as well, if it is a map that a JVM was told to write.
    fn remove_map(&self, dir: &OwnedFd, file: &str) {
        let tmp = Base::open(self.shoes, "/tmp");
        let (Some(name), Some(tmp)) = (placeholder::usual_name(file), tmp) else {
            return;
        };
        let is_ours = placeholder::is_same(dir, file, &tmp.dir, &name);
        if is_ours && unlinkat(&tmp.dir, &name, AtFlags::empty()).is_ok() {
            audit::note("removed", || format!("{}/{name}", tmp.path));
        }
    }

    /// Delete what is ours in a folder, and the folder unless there is something else in it. Err says what stays.
    fn delete(
        &self,
        name: &str,
        seen: &Stat,
        dir: &OwnedFd,
        held: &Contents,
    ) -> Result<(), String> {
        // Held until it is gone, so that no session begins to use it meanwhile.
        if flock(dir, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err("a session holds it by now".to_owned());
        }
        for file in &held.ours {
            self.remove_map(dir, file);
            match unlinkat(dir, file, AtFlags::empty()) {
                Ok(()) => audit::note("removed", || format!("{}/{name}/{file}", self.path)),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(format!("{file}: {error}")),
            }
        }
        if held.more {
            return Err(format!("it stays, for it holds {TOO_MANY}"));
        }
        if held.strange.is_some() {
            return Ok(());
        }
        let there = self.stat(name).map(|stat| (stat.st_dev, stat.st_ino));
        if there != Some((seen.st_dev, seen.st_ino)) {
            return Err("it was moved meanwhile".to_owned());
        }
        unlinkat(&self.dir, name, AtFlags::REMOVEDIR).map_err(|error| error.to_string())
    }
}

fn removed(found: &mut Found, path: String) {
    audit::note("removed", || path.clone());
    found.cleaned.removed.push(path);
}

fn judge(
    cleaning: &Cleaning,
    dir: &OwnedFd,
    named: Named,
    stat: &Stat,
    held: &Contents,
    entry: Entry,
) -> Entry {
    let strange = held.strange.as_ref();
    if held.ours.is_empty() && strange.is_some() {
        return entry.judged(State::Foreign, "nothing of ours is in it");
    }
    let strange = strange.map(String::as_str);
    let strange = strange.or_else(|| held.more.then_some(TOO_MANY));
    let also = strange.map_or(String::new(), |it| format!("; it holds {it}, which stays"));
    if named == Named::Private {
        let age = cleaning.now.saturating_sub(held.newest);
        let base = entry.path.rsplit_once('/').map_or("", |(base, _)| base);
        return match elsewhere::may_run(dir, age, is_usual(base)) {
            _ if cleaning.runs(stat) => entry.judged(State::Used, "an agent runs from it"),
            _ if held.comes => entry.judged(State::Used, "a file in it is on its way to the host"),
            Some(seconds) => entry.ending(seconds, "agents of other hosts may run from it"),
            None => entry.judged(State::Left, format!("cache, kept for the next run{also}")),
        };
    }
    let id = (stat.st_dev, stat.st_ino);
    let library = (named == Named::Library).then(|| cleaning.needs.of(id, stat.st_uid));
    if let Some(why) = library.flatten() {
        return entry.judged(State::Used, why);
    }
    if is_free(dir) {
        return entry.judged(State::Left, format!("no session holds it{also}"));
    }
    if let Some(agent) = cleaning.locks.held_by_ending(stat.st_ino) {
        let what = agent.words();
        return entry.of_agent(&agent, format!("{what}, holds it{also}"));
    }
    let holder = cleaning.locks.holder(stat.st_ino);
    let holder = holder.map_or("a session".to_owned(), |pid| format!("process {pid}"));
    entry.judged(State::Used, format!("{holder} holds it"))
}

/// What is in a folder of ours.
struct Contents {
    ours: Vec<String>,
    /// Something that is not ours.
    strange: Option<String>,
    /// Whether there is more than is looked through.
    more: bool,
    /// Whether a file is being brought for a session that is about to begin.
    comes: bool,
    bytes: u64,
    /// When something was last written, or recorded with, in seconds since 1970.
    newest: u64,
}

impl Contents {
    fn read(dir: &OwnedFd, named: Named, owner: u32, now: u64) -> Self {
        let mut contents = Self {
            ours: Vec::new(),
            strange: None,
            more: false,
            comes: false,
            bytes: 0,
            newest: fstat(dir).map_or(0, |stat| u64::try_from(stat.st_mtime).unwrap_or(0)),
        };
        let entries = Dir::read_from(dir).into_iter().flatten().flatten();
        for (number, entry) in entries.enumerate() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if number > MOST_FILES {
                contents.more = true;
                break;
            }
            let Ok(stat) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            contents.take(&name.to_string_lossy(), named, &stat, (owner, now));
        }
        contents
    }

    fn take(&mut self, name: &str, named: Named, stat: &Stat, (owner, now): (u32, u64)) {
        // Nobody but its owner can have linked what is kept; what is deleted is a name.
        let may_be = named == Named::Private || placeholder::usual_name(name).is_some();
        let linked = stat.st_nlink > 1 && !may_be;
        let other = "a file that has other names".to_owned();
        let strange = strange(stat, owner)
            .or_else(|| linked.then_some(other))
            .or_else(|| (!names::fits(named, name)).then(|| format!("a file named {name:?}")));
        if strange.is_some() {
            self.strange = self.strange.take().or(strange);
            return;
        }
        let age = now.saturating_sub(u64::try_from(stat.st_mtime).unwrap_or(0));
        if named == Named::Private && names::is_on_its_way(name) && age < ON_ITS_WAY {
            self.comes = true;
        }
        self.ours.push(name.to_owned());
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        self.newest = self.newest.max(u64::try_from(stat.st_mtime).unwrap_or(0));
    }
}

/// Why something is no file of ours, whatever its name is. Under sudo a file may be root's for a moment.
fn strange(stat: &Stat, owner: u32) -> Option<String> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_uid != owner && stat.st_uid != 0 => {
            return Some(format!("a file of user {}", stat.st_uid));
        }
        FileType::RegularFile => return None,
        FileType::Directory => "a folder",
        FileType::Symlink => "a link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    Some(what.to_owned())
}
