//! What the agent puts beside a JVM for the time of a run: the library it loads and the folder it writes to.
//!
//! A folder in use is held by a lock (`flock`), which the kernel lets go of however the agent ends. So a later
//! session can tell what is left over from what is in use, whatever pid namespace either lives in.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{
    flock, lstat, openat, statat, statvfs, unlinkat, AtFlags, Dir, FileType, FlockOperation, Mode,
    OFlags, StatVfsMountFlags, CWD,
};
use rustix::io::Errno;

use crate::os::audit;
use crate::os::files::{
    could_make_files, is_at, is_temporary, make_private, open_private, read_regular, sha256,
    write_whole,
};
use crate::os::identity::Namespaces;

/// The folder of an async-profiler library begins with this.
const OUR_LIBRARY: &str = ".hprofiler-ap-";
/// The folders of runs begin with this.
pub const RUN_FOLDER: &str = ".hprofiler-run-";
/// The extension of async-profiler's recordings.
pub const RECORDING: &str = "jfr";
/// What a library that JVMs load is called on a host.
pub struct Named {
    /// What its folder's name begins with.
    pub folder: &'static str,
    /// The file in it.
    pub file: &'static str,
}
pub const ASYNC_PROFILER: Named = Named {
    folder: OUR_LIBRARY,
    file: "libasyncProfiler.so",
};
pub const PERFMAP: Named = Named {
    folder: ".hprofiler-map-",
    file: "libhprofilerPerfmap.so",
};
const LIBRARIES: [Named; 2] = [ASYNC_PROFILER, PERFMAP];
/// Where a JVM may look for files, best first.
pub const USUAL: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
const MAX_LIBRARY: u64 = 64 << 20;
/// More folders of one user's runs are not looked into: there is one a session.
const MOST_RUNS: usize = 10_000;
/// How long a folder that all may write to is read.
const TO_READ: Duration = Duration::from_secs(3);
/// How often it is tried to hold a folder alone, and the time between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);
/// Whether not even what the next run could use may stay.
static NOTHING_STAYS: AtomicBool = AtomicBool::new(false);

/// From now on nothing is left for the next run.
pub fn leave_nothing() {
    NOTHING_STAYS.store(true, Ordering::Relaxed);
}

/// A folder that this session holds; `path` is the JVM's name for it.
pub struct Held {
    pub path: String,
    seen_as: String,
    pub dir: OwnedFd,
}

impl Held {
    /// Make or take a folder and hold it against cleaning.
    fn take(namespaces: &Namespaces, path: String) -> Result<Self, String> {
        let seen_as = namespaces.path(&path);
        // Another session may delete the folder between the opening and the lock; then it is made anew. The JVM's user
        // may hold it for ever, so it is not waited for without end.
        for _ in 0..100 {
            let dir = make_private(&seen_as, namespaces.uid)?;
            match flock(&dir, FlockOperation::NonBlockingLockShared) {
                Ok(()) if is_at(&dir, &seen_as) => return Ok(Self { path, seen_as, dir }),
                Ok(()) => {}
                Err(_) => sleep(Duration::from_millis(20)),
            }
        }
        Err(format!("{path} cannot be held"))
    }

    /// Whether its path still leads to it.
    pub fn is_there(&self) -> bool {
        is_at(&self.dir, &self.seen_as)
    }

    /// Delete the named files, and the folder once no other session or recording holds it. Err: what is left.
    pub fn release(self, ours: impl Fn(&str) -> bool) -> Result<(), String> {
        delete_unheld(&self.dir, &self.seen_as, ours)
            .map(|_| ())
            .map_err(|error| format!("{}: {error}", self.path))
    }
}

/// Delete a folder's files of these names and the folder itself, unless somebody holds it: then Ok(false).
fn delete_unheld(dir: &OwnedFd, path: &str, ours: impl Fn(&str) -> bool) -> io::Result<bool> {
    if !is_held_alone(dir) {
        return Ok(false);
    }
    for entry in Dir::read_from(dir)?.flatten() {
        let name = entry.file_name().to_str().unwrap_or_default();
        if !matches!(name, "" | "." | "..") && ours(name) {
            unlinkat(dir, entry.file_name(), AtFlags::empty())?;
            audit::note("removed", || format!("{path}/{name}"));
        }
    }
    if is_at(dir, path) {
        std::fs::remove_dir(path)?;
        audit::note("removed", || path.to_owned());
    }
    Ok(true)
}

/// Hold a folder alone. Whoever asks whether it is free (`is_free`) holds it for a moment, which is waited for.
fn is_held_alone(dir: &OwnedFd) -> bool {
    (0..TRIES).any(|tried| {
        if tried > 0 {
            sleep(PAUSE);
        }
        flock(dir, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

/// Whether `Held::take` could make or take a folder; nothing is made. Err says why not, in its words.
fn could_take(namespaces: &Namespaces, path: &str) -> Result<(), String> {
    let seen_as = namespaces.path(path);
    if lstat(&seen_as).is_ok() {
        return open_private(&seen_as, namespaces.uid).map(drop);
    }
    let base = seen_as.rsplit_once('/').map_or("", |(base, _)| base);
    could_make_files(&format!("{base}/")).map_err(|error| format!("{seen_as}: {error}"))
}

/// Whether nobody holds a folder. It is held for that moment, which others get over.
pub fn is_free(dir: &OwnedFd) -> bool {
    let free = flock(dir, FlockOperation::NonBlockingLockExclusive).is_ok();
    free && flock(dir, FlockOperation::Unlock).is_ok()
}

/// Whether a file of a library folder is one of ours.
pub fn is_library_file(name: &str) -> bool {
    LIBRARIES.iter().any(|library| library.file == name) || is_temporary(name)
}

/// Whether a folder is called as those of libraries are.
pub fn is_library_folder(name: &str) -> bool {
    let mut libraries = LIBRARIES.iter();
    libraries.any(|library| name.starts_with(library.folder))
}

/// Whether a library's path is one that a session of this tool uses.
pub fn is_ours(path: &str) -> bool {
    path.rsplit('/')
        .nth(1)
        .is_some_and(|folder| folder.starts_with(OUR_LIBRARY))
}

/// The usual places and the JVM's working directory, as the JVM sees them.
pub fn bases(namespaces: &Namespaces) -> Vec<String> {
    let cwd = namespaces
        .cwd_path
        .clone()
        .filter(|path| is_at_cwd(namespaces, path));
    USUAL.into_iter().map(str::to_owned).chain(cwd).collect()
}

/// Whether `clean` looks there after the JVM's end as well.
pub fn is_usual(base: &str) -> bool {
    USUAL.contains(&base)
}

fn is_at_cwd(namespaces: &Namespaces, path: &str) -> bool {
    let cwd = namespaces.cwd.as_ref();
    cwd.is_some_and(|cwd| is_at(cwd, &namespaces.path(path)))
}

/// The folder in which the JVM loads the library: always the same one for a library's content and user, since under
/// another path the JVM would load it a second time. `base` is as the JVM sees it.
pub fn library_folder(library: &Named, base: &str, hash: &str, uid: u32) -> String {
    format!(
        "{}/{}{}-{uid}",
        base.trim_end_matches('/'),
        library.folder,
        &hash[..16]
    )
}

/// Put the library in its folder under `base`. Err says why this base will not do.
pub fn stage_library(
    namespaces: &Namespaces,
    library: &Named,
    base: &str,
    hash: &str,
    bytes: &[u8],
) -> Result<Held, String> {
    refuse_noexec(namespaces, base)?;
    let held = Held::take(
        namespaces,
        library_folder(library, base, hash, namespaces.uid),
    )?;
    let there = read_regular(&held.dir, library.file, Some(namespaces.uid), MAX_LIBRARY);
    if there.is_ok_and(|there| sha256(&there) == hash) {
        return Ok(held);
    }
    // A JVM that has the old file loaded keeps it: renaming gives the name to another inode.
    let written = write_whole(&held.dir, library.file, bytes, Mode::RUSR | Mode::XUSR);
    match written {
        Ok(()) => {
            audit::note("file", || format!("{}/{}", held.path, library.file));
            Ok(held)
        }
        Err(error) => {
            let reason = format!("{}: {error}", held.path);
            let _ = held.release(is_library_file);
            Err(reason)
        }
    }
}

/// Whether `stage_library` could put one under this base; nothing is put there.
pub fn could_stage(
    namespaces: &Namespaces,
    library: &Named,
    base: &str,
    hash: &str,
) -> Result<(), String> {
    refuse_noexec(namespaces, base)?;
    could_take(
        namespaces,
        &library_folder(library, base, hash, namespaces.uid),
    )
}

/// Delete the library, unless its JVM is on musl. musl knows a library again by its inode and not by its path, so one
/// that is put there anew is loaded once more, and none is ever unloaded: there it stays for the next run, until
/// `clean`, unless nothing may stay. Err: what is left.
pub fn let_library_go(library: Held, musl: bool) -> Result<(), String> {
    match musl && !NOTHING_STAYS.load(Ordering::Relaxed) {
        true => Ok(()),
        false => library.release(is_library_file),
    }
}

fn refuse_noexec(namespaces: &Namespaces, base: &str) -> Result<(), String> {
    let flags = statvfs(namespaces.path(base))
        .map_err(|error| format!("{base}: {error}"))?
        .f_flag;
    if flags.contains(StatVfsMountFlags::NOEXEC) {
        return Err(format!("{base} is mounted noexec"));
    }
    Ok(())
}

/// Make a folder the JVM writes to, under the first of the bases where that is possible.
pub fn run_folder(
    namespaces: &Namespaces,
    bases: &[String],
    session: &str,
) -> Result<Held, String> {
    let mut tried = Vec::new();
    for base in bases {
        match run_folder_in(namespaces, base, session) {
            Ok(held) => return Ok(held),
            Err(reason) => tried.push(reason),
        }
    }
    Err(tried.join("; "))
}

/// The same under this base.
pub fn run_folder_in(namespaces: &Namespaces, base: &str, session: &str) -> Result<Held, String> {
    Held::take(namespaces, run_folder_path(namespaces, base, session))
}

/// Whether that could be made; nothing is made.
pub fn could_make_run_folder(
    namespaces: &Namespaces,
    base: &str,
    session: &str,
) -> Result<(), String> {
    could_take(namespaces, &run_folder_path(namespaces, base, session))
}

fn run_folder_path(namespaces: &Namespaces, base: &str, session: &str) -> String {
    let base = base.trim_end_matches('/');
    format!("{base}/{RUN_FOLDER}{session}-{}", namespaces.uid)
}

/// Whether a session that lives holds a run folder with this file. Err says why that is not known.
pub fn is_in_use(namespaces: &Namespaces, file: &str) -> Result<bool, String> {
    match users_of(namespaces, file) {
        (users, _) if !users.is_empty() => Ok(true),
        (_, unseen) => unseen.map_or(Ok(false), Err),
    }
}

/// The paths of the run folders with this file that somebody holds, and why there may be more that were not seen.
pub fn users_of(namespaces: &Namespaces, file: &str) -> (Vec<String>, Option<String>) {
    let usual = USUAL.into_iter().map(str::to_owned);
    let (mut users, mut unseen) = (Vec::new(), None);
    for base in usual.chain(namespaces.cwd_path.clone()) {
        let seen_as = namespaces.path(&base);
        let names = runs_of(&seen_as, namespaces.uid).unwrap_or_else(|why| {
            unseen.get_or_insert(format!(
                "it is not known whether a session uses it: {base} {why}"
            ));
            Vec::new()
        });
        let folders = names.iter().map(|name| format!("{seen_as}/{name}"));
        users.extend(folders.filter(|folder| is_held(namespaces, folder, file)));
    }
    (users, unseen)
}

fn is_held(namespaces: &Namespaces, folder: &str, file: &str) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open_private(folder, namespaces.uid)
        .is_ok_and(|dir| openat(&dir, file, flags, Mode::empty()).is_ok() && !is_free(&dir))
}

/// The folders of this user's runs. Err says why they are not known. Other users' folders of such names do not count.
fn runs_of(base: &str, owner: u32) -> Result<Vec<String>, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let unread = |error: Errno| format!("cannot be read: {error}");
    let dir = match openat(CWD, base, flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
        // Where this user cannot make one there is none of this user's.
        Err(Errno::ACCESS) if could_make_files(base).is_err() => return Ok(Vec::new()),
        Err(error) => return Err(unread(error)),
    };
    let end = Instant::now() + TO_READ;
    let mut found = Vec::new();
    for entry in Dir::read_from(&dir).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name = entry.file_name().to_str().unwrap_or_default();
        if name.starts_with(RUN_FOLDER) && is_folder_of(&dir, name, owner) {
            found.push(name.to_owned());
        }
        if found.len() > MOST_RUNS || Instant::now() > end {
            return Err("has too many files to check".to_owned());
        }
    }
    Ok(found)
}

fn is_folder_of(dir: &OwnedFd, name: &str, owner: u32) -> bool {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_folder = |mode| FileType::from_raw_mode(mode) == FileType::Directory;
    stat.is_ok_and(|stat| stat.st_uid == owner && is_folder(stat.st_mode))
}
