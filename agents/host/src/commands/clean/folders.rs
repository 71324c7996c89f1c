//! Finds and deletes our folders and files. A thread with only their owner's rights does it by descriptors, so that a
//! trap set by another user gains that user nothing.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{
    flock, fstat, openat, openat2, statat, unlinkat, AtFlags, Dir, FileType, FlockOperation, Mode,
    OFlags, ResolveFlags, Stat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use super::names::{self, Named};
use super::Sweep;
use crate::os::audit;
use crate::os::files::{check_private, file_id, open_folder};
use crate::os::identity::Namespaces;
use crate::os::proc::target::Target;
use crate::staging::folders::{is_free, USUAL};
use crate::wire::leftovers::{Done, Kind, Leftover, Leftovers, State};

const MOST_FILES: usize = 10_000;
/// The time limit for reading a world-writable folder.
const TO_READ: Duration = Duration::from_secs(3);
/// A younger file may be on its way to the host, in seconds.
const ON_ITS_WAY: u64 = 300;

/// A file system and the user to read it as.
#[derive(Clone)]
pub enum View {
    /// The host's own file system, as a user.
    User { uid: u32, gid: u32 },
    /// What a JVM sees, as its user.
    Jvm { pid: i32, start_time: u64 },
}

impl fmt::Display for View {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::User { uid, .. } => write!(formatter, "what user {uid} left"),
            Self::Jvm { pid, .. } => write!(formatter, "process {pid}"),
        }
    }
}

/// The users within reach that own files of ours on the host's own file system, with their groups. Changes the
/// thread's identity, as `sweep` does.
pub fn owners(sweep: &Sweep) -> BTreeSet<(u32, u32)> {
    let Ok(namespaces) = Namespaces::of_user(geteuid().as_raw(), getegid().as_raw()) else {
        return BTreeSet::new();
    };
    let bases = USUAL
        .into_iter()
        .filter_map(|path| Base::open(&namespaces, path));
    let stats = bases.flat_map(|base| {
        let (ours, _) = base.ours();
        let stats = ours.iter().filter_map(|(name, _)| base.stat(name));
        stats.collect::<Vec<_>>()
    });
    stats
        .filter(|stat| sweep.reaches(stat.st_uid) && !sweep.may(stat.st_uid))
        .map(|stat| (stat.st_uid, stat.st_gid))
        .collect()
}

/// List or remove what is left over in one view. `cache`: the folder that this agent uses.
pub fn sweep(sweep: &Sweep, view: &View, cache: Option<&str>) -> Leftovers {
    let mut found = Leftovers::default();
    let own = match *view {
        View::User { uid, .. } if sweep.may(uid) => Some(uid),
        _ => None,
    };
    // Asked before the thread acts as that user: then it must run no program.
    let homes = own.map(|uid| sweep.users.homes(uid)).unwrap_or_default();
    let namespaces = match *view {
        View::User { uid, gid } => Namespaces::of_user(uid, gid),
        View::Jvm { pid, start_time } => {
            Target::open(pid, start_time).and_then(|target| Namespaces::enter(&target))
        }
    };
    let Ok(namespaces) = namespaces else {
        return found;
    };
    let usual = USUAL.into_iter().map(str::to_owned);
    for path in usual
        .chain(namespaces.cwd_path.clone())
        .chain(homes.clone())
    {
        if let Some(base) = Base::open(&namespaces, &path) {
            base.look(sweep, &mut found);
        }
    }
    // Caches. Their folders may have any name.
    let caches = homes
        .iter()
        .map(|home| format!("{home}/.cache/{}", names::CACHE));
    for cache in caches.chain(cache.filter(|_| own.is_some()).map(str::to_owned)) {
        let path = Path::new(&cache);
        let parent = path.parent().and_then(Path::to_str);
        let name = path.file_name().and_then(|name| name.to_str());
        if let (Some(parent), Some(name)) = (parent, name) {
            let known = found.entries.iter().any(|entry| entry.path == cache);
            let base = Base::open(&namespaces, parent).filter(|_| !known);
            if let Some(base) = base {
                base.meet(sweep, name, Named::Private, &mut found);
            }
        }
    }
    found
}

struct Base<'a> {
    dir: OwnedFd,
    /// Its path as seen from `namespaces`.
    path: String,
    namespaces: &'a Namespaces,
}

impl<'a> Base<'a> {
    fn open(namespaces: &'a Namespaces, path: &str) -> Option<Self> {
        let dir = open_folder(&namespaces.path(path)).ok()?;
        let path = path.trim_end_matches('/').to_owned();
        Some(Self {
            dir,
            path,
            namespaces,
        })
    }

    /// The names of ours in it, and whether that is all of them.
    fn ours(&self) -> (Vec<(String, Named)>, bool) {
        let end = Instant::now() + TO_READ;
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_str().unwrap_or_default();
            found.extend(names::kind(name).map(|kind| (name.to_owned(), kind)));
            if found.len() > MOST_FILES || Instant::now() > end {
                return (found, false);
            }
        }
        (found, true)
    }

    fn stat(&self, name: &str) -> Option<Stat> {
        statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// List or remove everything of ours in it, unless another JVM of this user has the same folder.
    fn look(&self, sweep: &Sweep, found: &mut Leftovers) {
        let id = fstat(&self.dir).map(|stat| file_id(&stat));
        if !id.is_ok_and(|id| sweep.is_first(id, self.namespaces.uid)) {
            return;
        }
        let (ours, all) = self.ours();
        for (name, kind) in ours {
            self.meet(sweep, &name, kind, found);
        }
        if !all {
            found.fail(self.path.clone(), "it has too many files to check");
        }
    }

    /// List or remove what has this name.
    fn meet(&self, sweep: &Sweep, name: &str, named: Named, found: &mut Leftovers) {
        let Some(stat) = self.stat(name) else {
            return;
        };
        let private = matches!(named, Named::Private | Named::Once);
        let kind = match named {
            Named::Once => Kind::File,
            _ => Kind::Folder,
        };
        let path = format!("{}/{name}", self.path);
        let entry = Leftover {
            seconds: Some(age(&stat, sweep.now)),
            ..Leftover::new(kind, path, sweep.users.name(stat.st_uid))
        };
        if stat.st_uid != self.namespaces.uid {
            // A user within reach has a separate view.
            if !sweep.reaches(stat.st_uid) {
                found.entries.push(entry.foreign());
            }
            return;
        }
        if private && !sweep.may(stat.st_uid) {
            found.entries.push(entry.foreign());
            return;
        }
        let entry = match named {
            Named::Once => Some(self.meet_file(sweep, name, &stat, entry)),
            _ => self.meet_folder(sweep, name, named, &stat, entry),
        };
        found.entries.extend(entry);
    }

    fn meet_file(&self, sweep: &Sweep, name: &str, stat: &Stat, entry: Leftover) -> Leftover {
        let (state, reason) = match strange(stat, self.namespaces.uid) {
            Some(what) => (State::Foreign, what),
            None if sweep.running.contains(&file_id(stat)) => {
                (State::Used, "an agent runs from it".to_owned())
            }
            None if age(stat, sweep.now) < ON_ITS_WAY => {
                (State::Used, "it may be arriving just now".to_owned())
            }
            None => (State::Left, "its session is gone".to_owned()),
        };
        let mut entry = Leftover {
            bytes: u64::try_from(stat.st_size).ok(),
            ..entry.judged(state, reason)
        };
        if state == State::Left && !sweep.order.dry {
            let removed = unlinkat(&self.dir, name, AtFlags::empty());
            entry.record(removed.map(|()| Done::Removed).map_err(|it| it.to_string()));
            note_removed(&entry);
        }
        entry
    }

    fn meet_folder(
        &self,
        sweep: &Sweep,
        name: &str,
        named: Named,
        stat: &Stat,
        entry: Leftover,
    ) -> Option<Leftover> {
        // Another program may have a cache of the same name.
        let common = name == names::CACHE;
        let dir = match self.open_ours(name, stat, &entry.path) {
            Ok(dir) => dir,
            Err(_) if common => return None,
            Err(reason) => return Some(entry.judged(State::Foreign, reason)),
        };
        let held = Contents::read(&dir, self.namespaces.uid, sweep);
        let (state, reason) = self.judge(sweep, &dir, name, named, &held);
        if state == State::Foreign && common {
            return None;
        }
        let mut entry = Leftover {
            bytes: Some(held.bytes),
            seconds: Some(sweep.now.saturating_sub(held.newest)),
            ..entry.judged(state, reason)
        };
        let own = sweep.own == Some(file_id(stat));
        let brought = own && sweep.order.brought && held.ours.len() == 1;
        if state == State::Left && (!sweep.order.dry || brought) {
            let done = match held.strange {
                Some(_) => Done::Emptied,
                None => Done::Removed,
            };
            let deleted = self.delete(name, stat, &dir, &held);
            entry.record(deleted.map(|()| done));
            note_removed(&entry);
        }
        (!brought).then_some(entry)
    }

    fn judge(
        &self,
        sweep: &Sweep,
        dir: &OwnedFd,
        name: &str,
        named: Named,
        held: &Contents,
    ) -> (State, String) {
        let used = |reason: &str| (State::Used, reason.to_owned());
        if held.ours.is_empty() && held.strange.is_some() {
            let reason = "it holds no file of hprofiler".to_owned();
            return (State::Foreign, reason);
        }
        let strange = held.strange.as_ref();
        let also = strange.map_or(String::new(), |it| format!("; it holds {it}, which stays"));
        if named == Named::Private {
            return match () {
                () if held.runs => used("an agent runs from it"),
                () if held.comes => used("a file in it is arriving just now"),
                () => (State::Left, format!("cache, kept for the next run{also}")),
            };
        }
        if is_free(dir) {
            return (State::Left, format!("no session holds it{also}"));
        }
        match sweep.ended.iter().any(|session| name.contains(session)) {
            true => (State::Left, format!("a leftover agent holds it{also}")),
            false => used("a session holds it"),
        }
    }

    /// Open a folder that only its owner can enter and that nothing is mounted on. Err says what is wrong.
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
            Errno::NOTDIR | Errno::LOOP => "it is a link, or not a folder".to_owned(),
            Errno::XDEV => "something is mounted there".to_owned(),
            error => error.to_string(),
        })?;
        let stat = fstat(&dir).map_err(|error| error.to_string())?;
        if file_id(&stat) != file_id(seen) {
            return Err("it changed while it was checked".to_owned());
        }
        check_private(path, &stat, self.namespaces.uid).map(|()| dir)
    }

    /// Delete what is ours in a folder, and the folder if nothing else is in it. Err says what stays.
    fn delete(
        &self,
        name: &str,
        seen: &Stat,
        dir: &OwnedFd,
        held: &Contents,
    ) -> Result<(), String> {
        // Locked until it is gone, so that no session starts to use it.
        if flock(dir, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err("a session has started to use it".to_owned());
        }
        for file in &held.ours {
            match unlinkat(dir, file, AtFlags::empty()) {
                Ok(()) => audit::note("removed", || format!("{}/{name}/{file}", self.path)),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(format!("{file}: {error}")),
            }
        }
        if held.strange.is_some() {
            return Ok(());
        }
        if self.stat(name).map(|stat| file_id(&stat)) != Some(file_id(seen)) {
            return Err("it was moved meanwhile".to_owned());
        }
        unlinkat(&self.dir, name, AtFlags::REMOVEDIR).map_err(|error| error.to_string())
    }
}

fn note_removed(entry: &Leftover) {
    if entry.result == Some(Done::Removed) {
        audit::note("removed", || entry.path.clone());
    }
}

fn age(stat: &Stat, now: u64) -> u64 {
    now.saturating_sub(written(stat))
}

fn written(stat: &Stat) -> u64 {
    u64::try_from(stat.st_mtime).unwrap_or(0)
}

struct Contents {
    ours: Vec<String>,
    /// Something that is not ours.
    strange: Option<String>,
    /// Whether an agent runs from it.
    runs: bool,
    /// Whether a file is being sent for a session that is about to start.
    comes: bool,
    bytes: u64,
    /// When something was last written, in seconds since 1970.
    newest: u64,
}

impl Contents {
    fn read(dir: &OwnedFd, owner: u32, sweep: &Sweep) -> Self {
        let mut contents = Self {
            ours: Vec::new(),
            strange: None,
            runs: false,
            comes: false,
            bytes: 0,
            newest: fstat(dir).map_or(0, |stat| written(&stat)),
        };
        let entries = Dir::read_from(dir).into_iter().flatten().flatten();
        for entry in entries.take(MOST_FILES) {
            let name = entry.file_name();
            let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
            if let (Ok(stat), false) = (stat, matches!(name.to_bytes(), b"." | b"..")) {
                contents.take(&name.to_string_lossy(), &stat, owner, sweep);
            }
        }
        contents
    }

    fn take(&mut self, name: &str, stat: &Stat, owner: u32, sweep: &Sweep) {
        let other = || (!names::is_file(name)).then(|| format!("a file named {name:?}"));
        if let Some(strange) = strange(stat, owner).or_else(other) {
            self.strange.get_or_insert(strange);
            return;
        }
        // Its name ends in a number until all of it is there.
        self.comes |= name.contains('.') && age(stat, sweep.now) < ON_ITS_WAY;
        self.runs |= sweep.running.contains(&file_id(stat));
        self.ours.push(name.to_owned());
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        self.bytes = self.bytes.saturating_add(bytes);
        self.newest = self.newest.max(written(stat));
    }
}

/// Why something is not a file of ours, whatever its name is. Under sudo a file may be root's for a moment.
fn strange(stat: &Stat, owner: u32) -> Option<String> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Some("something that is not a regular file".to_owned());
    }
    let other = stat.st_uid != owner && stat.st_uid != 0;
    other.then(|| format!("a file of user {}", stat.st_uid))
}
