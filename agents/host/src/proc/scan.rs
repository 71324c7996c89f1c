//! Every process of this host, and which of them are JVMs.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::cmdline::{self, Launch};
use super::maps::{self, file_name};
use super::status::Status;
use super::users::Users;
use super::{mask, read_bounded, read_text, stat, status};
use crate::hsperf;
use crate::protocol::{JvmFacts, Process};

/// A command line is never longer than this in practice; what is over is left out.
const MAX_COMMAND: u64 = 4 << 20;

/// A process as it was seen.
pub struct Seen {
    pub pid: i32,
    pub namespace_pid: i32,
    pub ppid: i32,
    pub start_time: u64,
    pub uid: u32,
    pub user: String,
    pub command: Vec<String>,
    pub launch: Launch,
    pub jvm: Option<JvmFacts>,
}

/// Every process but the excluded ones. Kernel threads and zombies, which have no command line, are none.
pub fn processes(excluded: &HashSet<i32>) -> Vec<Seen> {
    let users = Users::read();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut pids: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids.into_iter()
        .filter(|pid| !excluded.contains(pid))
        .filter_map(|pid| process(pid, &users))
        .collect()
}

fn process(pid: i32, users: &Users) -> Option<Seen> {
    let dir = format!("/proc/{pid}");
    let before = stat::parse(&read_text(format!("{dir}/stat"), 4096)?)?;
    let status = status::parse(pid, &read_text(format!("{dir}/status"), 1 << 20)?)?;
    let command = split_zero(&read_bounded(format!("{dir}/cmdline"), MAX_COMMAND)?);
    if command.is_empty() {
        return None;
    }
    let jvm = jvm(&dir, &status, &command);
    let launch = match jvm {
        Some(_) => cmdline::parse(&command, |name| argument_file(&dir, name)),
        None => Launch::default(),
    };
    // A pid that was reused while it was read would mix two processes.
    let after = stat::parse(&read_text(format!("{dir}/stat"), 4096)?)?;
    (before.start_time == after.start_time).then(|| Seen {
        pid,
        namespace_pid: status.namespace_pid,
        ppid: before.ppid,
        start_time: before.start_time,
        uid: status.uid,
        user: users.name(status.uid),
        command,
        launch,
        jvm,
    })
}

/// Split what the kernel separates by zero bytes.
pub fn split_zero(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\0');
    if text.is_empty() {
        return Vec::new();
    }
    text.split('\0').map(str::to_owned).collect()
}

/// A process that maps `libjvm.so`; where the map is not ours to read, one whose program is called `java`.
fn jvm(dir: &str, status: &Status, command: &[String]) -> Option<JvmFacts> {
    let map = File::open(format!("{dir}/maps")).ok();
    match map.and_then(|map| maps::libraries(map, |path| file_name(path) == "libjvm.so")) {
        Some(found) => found.first().map(|library| JvmFacts {
            version: version(dir, library)
                .or_else(|| {
                    hsperf::version(&format!("{dir}/root/tmp"), status.uid, status.namespace_pid)
                })
                .map(|version| version.chars().take(64).collect())
                .unwrap_or_default(),
        }),
        None => {
            let program = fs::read_link(format!("{dir}/exe")).ok();
            let program = program
                .as_deref()
                .and_then(Path::to_str)
                .unwrap_or(command.first()?);
            (file_name(program) == "java").then(|| JvmFacts {
                version: String::new(),
            })
        }
    }
}

/// The JDK's own word: `JAVA_VERSION="17.0.9"` in the file `release` of its home, which not every JDK 8 has.
fn version(dir: &str, library: &str) -> Option<String> {
    let (home, _) = library.rsplit_once("/lib/")?;
    let home = home.strip_suffix("/jre").unwrap_or(home);
    let text = read_foreign(&format!("{dir}/root{home}/release"), 64 << 10)?;
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(version.trim_matches('"').to_owned())
}

/// The text of an `@file` of a command line, found as the process `dir` (`/proc/PID`) finds it.
pub fn argument_file(dir: &str, name: &str) -> Option<String> {
    match name.strip_prefix('/') {
        Some(name) => read_foreign(&format!("{dir}/root/{name}"), 1 << 20),
        None => read_foreign(&format!("{dir}/cwd/{name}"), 1 << 20),
    }
}

/// Read a file whose path another user chose: only a regular one (a pipe would block), never through a link.
fn read_foreign(path: &str, limit: u64) -> Option<String> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, limit), &mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The environment of a process, empty where it is not ours to read.
pub fn environment(pid: i32) -> BTreeMap<String, String> {
    let bytes = read_bounded(format!("/proc/{pid}/environ"), MAX_COMMAND).unwrap_or_default();
    let pairs = split_zero(&bytes).into_iter();
    pairs
        .filter_map(|pair| {
            pair.split_once('=')
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        })
        .collect()
}

/// This process and those it descends from: the session it came in by.
pub fn own_ancestry() -> HashSet<i32> {
    let mut pids = HashSet::new();
    let mut pid = std::process::id() as i32;
    while pid > 0 && pids.insert(pid) {
        let stat = read_text(format!("/proc/{pid}/stat"), 4096);
        pid = stat
            .and_then(|text| stat::parse(&text))
            .map_or(0, |stat| stat.ppid);
    }
    pids
}

impl Seen {
    /// As the coordinator sees it; `limit` is the command's longest length in bytes.
    pub fn tell(self, label: String, labels: BTreeMap<String, String>, limit: usize) -> Process {
        Process {
            pid: self.pid,
            namespace_pid: self.namespace_pid,
            start_time: self.start_time,
            uid: self.uid,
            user: self.user,
            ppid: self.ppid,
            main_class: self.launch.main_class().chars().take(1000).collect(),
            command: mask::command(&self.command, limit),
            label,
            labels,
            jvm: self.jvm,
        }
    }

    /// The label of a process of which nothing better is known: its main class, else its program.
    pub fn plain_label(&self) -> String {
        let name = self.launch.simple_name();
        let program = self
            .command
            .first()
            .map_or("", |program| file_name(program));
        if name.is_empty() { program } else { name }
            .chars()
            .take(200)
            .collect()
    }
}
