//! What `/proc` says about processes. They vanish at any time, which is never an error here.

pub mod maps;
pub mod mask;
pub mod named;
pub mod stat;
pub mod status;
pub mod target;
pub mod users;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fd::OwnedFd;
use rustix::fs::{openat, Mode, OFlags, CWD};

/// More bytes than most files of a process have.
const USUAL: u64 = 4096;
const MAX_WORDS: usize = 20_000;
/// The longest list of a thread's children.
const MAX_CHILDREN: u64 = 1 << 16;

static MOVED: OnceLock<&'static str> = OnceLock::new();

/// The path of a file in the kernel's `/proc`, such as `self/stat`.
pub fn path(file: &str) -> String {
    format!("{}/{file}", MOVED.get().unwrap_or(&"/proc"))
}

/// The agent's own folder there, which another mount namespace does not have. The first call is before a thread enters
/// one.
pub fn own() -> Option<&'static OwnedFd> {
    static OWN: OnceLock<OwnedFd> = OnceLock::new();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    OWN.get().or_else(|| {
        let folder = openat(CWD, path("self"), flags, Mode::empty()).ok()?;
        Some(OWN.get_or_init(|| folder))
    })
}

/// From now on the kernel's `/proc` is here, and another folder has its name (`os::fence`).
pub fn move_to(folder: &'static str) {
    let _ = MOVED.set(folder);
}

/// Read at most `limit` bytes. None: the file is gone, or the agent may not read it.
pub fn read_bounded(path: impl AsRef<Path>, limit: u64) -> Option<Vec<u8>> {
    // Room for most of these files: with less, each is read in many small pieces.
    let mut bytes = Vec::with_capacity(limit.min(USUAL) as usize);
    File::open(path)
        .ok()?
        .take(limit)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// As `read_bounded`, with what is not UTF-8 replaced.
pub fn read_text(path: impl AsRef<Path>, limit: u64) -> Option<String> {
    read_bounded(path, limit).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The pids of all processes.
pub fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.collect()
}

/// The pids of the children that a process's first `threads` threads have started.
pub fn children(pid: i32, threads: usize) -> HashSet<i32> {
    let tasks = std::fs::read_dir(path(&format!("{pid}/task")));
    let tasks = tasks.into_iter().flatten().flatten().take(threads);
    let lists = tasks.filter_map(|task| read_text(task.path().join("children"), MAX_CHILDREN));
    let lists: Vec<String> = lists.collect();
    let pids = lists.iter().flat_map(|list| list.split_ascii_whitespace());
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// The path of a process's executable. None: the agent may not see it.
pub fn executable(pid: i32) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(maps::without_mark(&link.to_string_lossy()).to_owned())
}

/// The first number of the line that begins with these words.
pub fn number_after(text: &str, begin: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(begin))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The path of a process's control group, from its `/proc/PID/cgroup`: in version 1 that of a controller, in version 2
/// that of "".
pub fn group<'a>(cgroup: &'a str, controller: &str) -> Option<&'a str> {
    cgroup.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let mut controllers = controllers.split(',');
        controllers.any(|one| one == controller).then_some(path)
    })
}

/// The path below `mount` of a process's control group, if the agent sees it. `own` is the agent's `/proc/self/cgroup`:
/// in a container, the mount may have the agent's own group alone, as its root.
pub fn seen_group<'a>(
    mount: &Path,
    cgroup: &'a str,
    own: &str,
    controller: &str,
) -> Option<&'a Path> {
    let path = group(cgroup, controller)?;
    // Beside the root of the agent's namespace.
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    let below = path.trim_start_matches('/');
    if mount.join(below).is_dir() {
        return Some(Path::new(below));
    }
    (group(own, controller) == Some(path)).then_some(Path::new(""))
}

/// Split what the kernel separates by zero bytes, into at most `MAX_WORDS`.
pub fn split_zero(bytes: &[u8]) -> Vec<String> {
    first_words(bytes).0
}

/// As `split_zero`, and whether these are all.
pub fn first_words(bytes: &[u8]) -> (Vec<String>, bool) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\0');
    if text.is_empty() {
        return (Vec::new(), true);
    }
    let mut words = text.split('\0');
    let first = words.by_ref().take(MAX_WORDS).map(str::to_owned);
    (first.collect(), words.next().is_none())
}
