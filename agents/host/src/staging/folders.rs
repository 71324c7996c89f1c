//! The agent's files beside a JVM during a run: the library that the JVM loads and the folder that it writes to.
//!
//! A lock (`flock`) holds a folder in use. The kernel releases it however the agent ends, so that a later session can
//! distinguish leftovers from folders in use, in any pid namespace.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{panicking, sleep};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{
    flock, openat, statat, statvfs, unlinkat, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags,
    StatVfsMountFlags,
};
use rustix::io::Errno;

use crate::os::audit;
use crate::os::files::{
    could_make_files, is_at, is_temporary, make_private, open_folder, open_private, read_regular,
    sha256, write_whole,
};
use crate::os::identity::Namespaces;

const OUR_LIBRARY: &str = ".hprofiler-ap-";
pub const RUN_FOLDER: &str = ".hprofiler-run-";
/// The extension of async-profiler's recordings.
pub const RECORDING: &str = "jfr";
/// The names of a library that JVMs load.
pub struct Named {
    /// The beginning of its folder's name.
    pub folder: &'static str,
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
pub const THREAD_NAMES: Named = Named {
    folder: ".hprofiler-names-",
    file: "libhprofilerThreadnames.so",
};
const LIBRARIES: [Named; 3] = [ASYNC_PROFILER, PERFMAP, THREAD_NAMES];
/// Where a JVM may look for files, best first.
pub const USUAL: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
const MAX_LIBRARY: u64 = 64 << 20;
/// The most folders of one user's runs. There is one per session.
const MOST_RUNS: usize = 10_000;
/// The time limit for reading a world-writable folder.
const TO_READ: Duration = Duration::from_secs(3);
/// How often to try to lock a folder exclusively, and the time between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);
/// Set if nothing may stay for the next run.
static NOTHING_STAYS: AtomicBool = AtomicBool::new(false);

pub fn leave_nothing() {
    NOTHING_STAYS.store(true, Ordering::Relaxed);
}

/// A folder that this session holds. `path` is as the JVM sees it.
pub struct Held {
    pub path: String,
    seen_as: String,
    pub dir: OwnedFd,
}

impl Held {
    /// Make or open a folder and lock it against cleaning.
    fn take(namespaces: &Namespaces, path: String) -> Result<Self, String> {
        let seen_as = namespaces.path(&path);
        // Another session may delete the folder before it is locked. Then it is made again. The JVM's user may hold it
        // forever, so the tries are limited.
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

impl Drop for Held {
    /// After a panic nothing else deletes it.
    fn drop(&mut self) {
        if panicking() {
            let is_run = self.path.contains(RUN_FOLDER);
            let ours = |name: &str| is_run || is_library_file(name);
            let _ = delete_unheld(&self.dir, &self.seen_as, ours);
        }
    }
}

/// Delete a folder's files with these names and the folder itself. Ok(false): it is in use.
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

/// Lock a folder exclusively. Retries, because `is_free` locks it for a moment.
fn is_held_alone(dir: &OwnedFd) -> bool {
    (0..TRIES).any(|tried| {
        if tried > 0 {
            sleep(PAUSE);
        }
        flock(dir, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

/// Whether a folder is unused. It is locked for a moment.
pub fn is_free(dir: &OwnedFd) -> bool {
    let free = flock(dir, FlockOperation::NonBlockingLockExclusive).is_ok();
    free && flock(dir, FlockOperation::Unlock).is_ok()
}

pub fn is_library_file(name: &str) -> bool {
    LIBRARIES.iter().any(|library| library.file == name) || is_temporary(name)
}

pub fn is_library_folder(name: &str) -> bool {
    let mut libraries = LIBRARIES.iter();
    libraries.any(|library| name.starts_with(library.folder))
}

/// Whether a library's path is one of ours.
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

/// Whether `clean` looks there after the JVM's end too.
pub fn is_usual(base: &str) -> bool {
    USUAL.contains(&base)
}

fn is_at_cwd(namespaces: &Namespaces, path: &str) -> bool {
    let cwd = namespaces.cwd.as_ref();
    cwd.is_some_and(|cwd| is_at(cwd, &namespaces.path(path)))
}

/// The folder from which the JVM loads the library. It is always the same for a library's content and user, since the
/// JVM would load the library again from another path. `base` is as the JVM sees it.
pub fn library_folder(library: &Named, base: &str, hash: &str, uid: u32) -> String {
    format!(
        "{}/{}{}-{uid}",
        base.trim_end_matches('/'),
        library.folder,
        &hash[..16]
    )
}

/// Err says why this base cannot be used.
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
    let written = write_whole(
        None,
        &held.dir,
        library.file,
        bytes,
        Mode::RUSR | Mode::XUSR,
    );
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

/// Why no library can be put under this base, as far as that shows without trying.
pub fn refuse_staging(namespaces: &Namespaces, base: &str) -> Result<(), String> {
    refuse_noexec(namespaces, base)?;
    refuse_unwritable(namespaces, base)
}

/// Why no folder can be made under this base, as far as that shows without trying.
pub fn refuse_unwritable(namespaces: &Namespaces, base: &str) -> Result<(), String> {
    let folder = format!("{}/", namespaces.path(base));
    could_make_files(&folder).map_err(|error| format!("{base}: {error}"))
}

/// Delete the library, unless its JVM uses musl. musl recognises a library by its inode, not by its path: a new copy
/// would be loaded once more, and none is ever unloaded. So the library stays for the next run, until `clean`, unless
/// nothing may stay. Err: what is left.
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

/// Make a folder for the JVM to write to, under the first base where that works.
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

pub fn run_folder_in(namespaces: &Namespaces, base: &str, session: &str) -> Result<Held, String> {
    let base = base.trim_end_matches('/');
    let path = format!("{base}/{RUN_FOLDER}{session}-{}", namespaces.uid);
    Held::take(namespaces, path)
}

/// The agent whose session made a run folder, by the name that its session and its user give it: `4711-99812-1000`.
pub fn agent_of(folder: &str) -> Option<i32> {
    let name = folder.rsplit('/').next()?.strip_prefix(RUN_FOLDER)?;
    name.split('-').next()?.parse().ok()
}

/// Whether a live session holds a run folder with this file. Err says why that is unknown.
pub fn is_in_use(namespaces: &Namespaces, file: &str) -> Result<bool, String> {
    match users_of(namespaces, file) {
        (users, _) if !users.is_empty() => Ok(true),
        (_, unseen) => unseen.map_or(Ok(false), Err),
    }
}

/// The run folders with this file that are held, and why some may be unseen.
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

/// The folders of this user's runs. Err says why they are unknown. Other users' folders with such names do not count.
fn runs_of(base: &str, owner: u32) -> Result<Vec<String>, String> {
    let unread = |error: Errno| format!("cannot be read: {error}");
    let dir = match open_folder(base) {
        Ok(dir) => dir,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
        // If this user cannot make one here, there is none.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getegid, geteuid};

    #[test]
    fn a_panic_leaves_no_folder() {
        let session = format!("test-{}", std::process::id());
        let folder = format!("/tmp/{RUN_FOLDER}{session}-{}", geteuid().as_raw());
        let path = folder.clone();
        let panics = move || {
            let namespaces = Namespaces::of_user(geteuid().as_raw(), getegid().as_raw()).unwrap();
            let held = run_folder_in(&namespaces, "/tmp", &session).unwrap();
            std::fs::write(format!("{}/recording", held.path), "x").unwrap();
            assert_eq!(held.path, path);
            std::panic::panic_any(7);
        };
        let panicked = std::thread::spawn(panics).join().unwrap_err();
        assert_eq!(panicked.downcast_ref(), Some(&7));
        assert!(std::fs::metadata(&folder).is_err());
    }
}
