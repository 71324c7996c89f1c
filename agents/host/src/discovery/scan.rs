//! Every process of this host, and which of them are JVMs.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::attempt::Attempt;
use crate::jvm::command_line::{self, Launch};
use crate::jvm::hsperf;
use crate::os::identity::{as_its_user, Unread};
use crate::os::proc::maps::{self, file_name, Mapped};
use crate::os::proc::named::Named;
use crate::os::proc::stat::{self, Stat};
use crate::os::proc::target::Target;
use crate::os::proc::users::Users;
use crate::os::proc::{first_words, mask, read_bounded, read_text, split_zero, status};
use crate::os::worker_pool::{self, NoResult};
use crate::wire::events::{JvmFacts, Process};

/// A command line, or an environment, is never longer than this in practice; what is over is left out.
const MAX_COMMAND: usize = 1 << 20;
/// What all command lines of one scan may take, in bytes, and what each may take where the others have taken that: any
/// user can start many processes with very many words.
const ALL_COMMANDS: usize = 64 << 20;
const LEAST_COMMAND: usize = 2 << 10;
/// No file has a longer name.
const MAX_NAME: usize = 255;
/// How long a scan waits for the memory of one process.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits for the files of one JVM, on which nothing depends but names and versions, and for all such files
/// together. After that each gets no more than a moment.
const FILE_PATIENCE: Duration = Duration::from_secs(1);
const ALL_FILES_PATIENCE: Duration = Duration::from_secs(3);
const MOMENT: Duration = Duration::from_millis(20);

/// A process as it was seen.
pub struct Seen {
    pub pid: i32,
    pub namespace_pid: i32,
    pub ppid: i32,
    pub start_time: u64,
    pub uid: u32,
    pub user: String,
    /// The file name of its executable.
    pub program: String,
    pub command: Vec<String>,
    pub launch: Launch,
    pub jvm: Option<JvmFacts>,
}

/// A process whose memory could not be read: the kernel takes a lock for that, which the process's threads hold while
/// they wait for a page of a file system that hangs.
pub struct Overlooked {
    pub pid: i32,
    pub uid: u32,
    /// The file name of its executable; empty where that is not ours to see.
    pub program: String,
    pub why: NoResult,
}

/// What a scan saw.
#[derive(Default)]
pub struct Scanned {
    pub seen: Vec<Seen>,
    pub overlooked: Vec<Overlooked>,
}

/// Every process but the excluded ones. Kernel threads and zombies, which have no command line, are none.
pub fn processes(excluded: &HashSet<i32>) -> Scanned {
    let mut scanned = Scanned::default();
    let Ok(entries) = fs::read_dir("/proc") else {
        return scanned;
    };
    let mut pids: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids.retain(|pid| !excluded.contains(pid));
    let room = AtomicUsize::new(ALL_COMMANDS);
    let memories = worker_pool::map(pids.clone(), PATIENCE, move |&pid| Memory::read(pid, &room));
    let scan = Scan {
        users: Users::read(),
        patience: Cell::new(ALL_FILES_PATIENCE),
    };
    for (pid, memory) in pids.into_iter().zip(memories) {
        match memory {
            Ok(memory) => scanned
                .seen
                .extend(memory.and_then(|it| scan.process(pid, it))),
            Err(why) => scanned.overlooked.extend(overlooked(pid, why)),
        }
    }
    scanned
}

/// What is the same for all processes of one scan.
struct Scan {
    users: Users,
    /// How long files that hang are still waited for.
    patience: Cell<Duration>,
}

impl Scan {
    fn process(&self, pid: i32, memory: Memory) -> Option<Seen> {
        let dir = format!("/proc/{pid}");
        let status = status::parse(pid, &read_text(format!("{dir}/status"), 1 << 20)?)?;
        let Memory {
            stat: before,
            command,
            whole,
            signs,
        } = memory;
        let told = signs.map(|signs| self.describe_jvm(pid, before.start_time, &command, signs));
        // A pid that was reused while it was read would mix two processes.
        let after = stat::parse(&read_text(format!("{dir}/stat"), 4096)?)?;
        let jvm = told.as_ref().map(|told| JvmFacts {
            version: told.version.clone(),
        });
        let mut launch = told.map(|told| told.launch).unwrap_or_default();
        if !whole {
            launch.missing = Some("its command line is too long");
        }
        (before.start_time == after.start_time).then(|| Seen {
            pid,
            namespace_pid: status.namespace_pid,
            ppid: before.ppid,
            start_time: before.start_time,
            uid: status.uid,
            user: self.users.name(status.uid),
            program: program(&dir, &command),
            command,
            launch,
            jvm,
        })
    }

    /// What a JVM's command line and files say, the files read with its user's rights.
    fn describe_jvm(
        &self,
        pid: i32,
        start_time: u64,
        command: &[String],
        signs: Signs,
    ) -> JvmDescription {
        let words = command.to_vec();
        let left = self.patience.get();
        let patience = left.clamp(MOMENT, FILE_PATIENCE);
        let begin = Instant::now();
        let files = Target::open(pid, start_time).ok().and_then(|target| {
            let named = target.named().ok()?;
            Some((target, named))
        });
        let told = match files {
            Some((target, named)) => as_its_user(target, patience, move || {
                JvmDescription::from_files(&words, &signs, &named)
            }),
            None => Err(Unread::NotAllowed),
        };
        self.patience.set(left.saturating_sub(begin.elapsed()));
        told.unwrap_or_else(|why| JvmDescription::without_files(command, why))
    }
}

/// What is in a process's memory.
struct Memory {
    /// From before it was read.
    stat: Stat,
    command: Vec<String>,
    /// Whether that is all of the command line.
    whole: bool,
    /// By what it is a JVM.
    signs: Option<Signs>,
}

impl Memory {
    /// None of a process without a command line, as threads of the kernel. `room`: how many bytes command lines may take.
    fn read(pid: i32, room: &AtomicUsize) -> Option<Self> {
        let dir = format!("/proc/{pid}");
        let stat = stat::parse(&read_text(format!("{dir}/stat"), 4096)?)?;
        let left = room.load(Ordering::Relaxed);
        let limit = left.clamp(LEAST_COMMAND, MAX_COMMAND);
        let bytes = read_bounded(format!("{dir}/cmdline"), limit as u64 + 1)?;
        let (mut command, all_words) = first_words(&bytes);
        let cut = bytes.len() > limit;
        if cut {
            // Part of a secret would not look like one.
            command.pop();
        }
        if command.is_empty() {
            return None;
        }
        // Each word takes some more for its place in a list, and what the allocator needs.
        let size: usize = command.iter().map(|word| word.len() + 56).sum();
        room.store(left.saturating_sub(size), Ordering::Relaxed);
        Some(Self {
            stat,
            signs: Signs::of(&dir, &command),
            command,
            whole: all_words && !cut,
        })
    }
}

/// A process whose memory could not be read; None of one that is gone or has no program, as threads of the kernel.
fn overlooked(pid: i32, why: NoResult) -> Option<Overlooked> {
    let dir = format!("/proc/{pid}");
    let link = fs::read_link(format!("{dir}/exe"));
    let gone = link.is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let status = read_text(format!("{dir}/status"), 1 << 20).filter(|_| !gone)?;
    Some(Overlooked {
        pid,
        uid: status::parse(pid, &status)?.uid,
        program: program(&dir, &[]),
        why,
    })
}

/// By what a process is known as a JVM.
struct Signs {
    /// The path of its `libjvm.so`.
    library: Option<String>,
    performance_data: Vec<Mapped>,
}

impl Signs {
    /// Of a process that maps `libjvm.so`; where the map is not ours to read, of one whose program is called `java`.
    fn of(dir: &str, command: &[String]) -> Option<Self> {
        let is_library = |path: &str| file_name(path) == "libjvm.so";
        let map = File::open(format!("{dir}/maps")).ok();
        match map.and_then(|map| maps::files(map, |path| is_library(path) || hsperf::is_data(path)))
        {
            Some(files) => {
                let (libraries, performance_data): (Vec<_>, _) =
                    files.into_iter().partition(|file| is_library(&file.path));
                let library = Some(libraries.into_iter().next()?.path);
                Some(Self {
                    library,
                    performance_data,
                })
            }
            None => (program(dir, command) == "java").then_some(Self {
                library: None,
                performance_data: Vec::new(),
            }),
        }
    }
}

/// The file name of a process's executable; where that is not ours to see, as its command line says.
fn program(dir: &str, command: &[String]) -> String {
    let link = fs::read_link(format!("{dir}/exe")).ok();
    let path = link.as_deref().and_then(Path::to_str);
    let path = path.or(command.first().map(String::as_str));
    let name = file_name(path.unwrap_or_default());
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    name.chars().take(MAX_NAME).collect()
}

/// What a JVM's user says of it.
struct JvmDescription {
    launch: Launch,
    version: String,
}

impl JvmDescription {
    fn from_files(command: &[String], signs: &Signs, named: &Named) -> Self {
        let version = hsperf::jvm_version(named, signs.library.as_deref(), &signs.performance_data);
        Self {
            launch: command_line::parse(command, |name| named.text(name)),
            version: version.unwrap_or_default().chars().take(64).collect(),
        }
    }

    /// By the command line alone. Most name no file of arguments, and then all of the launch is known.
    fn without_files(command: &[String], why: Unread) -> Self {
        let mut launch = command_line::parse(command, |_| None);
        if why == Unread::NotSoon {
            launch.missing = launch
                .missing
                .and(Some("a file with its arguments could not be read in time"));
        }
        Self {
            launch,
            version: String::new(),
        }
    }
}

/// The environment of a process, empty where it is not ours to read.
pub fn environment(process: &Seen) -> BTreeMap<String, String> {
    let path = format!("/proc/{}/environ", process.pid);
    let bytes = worker_pool::run(PATIENCE, move || read_bounded(path, MAX_COMMAND as u64));
    let pairs = split_zero(&bytes.ok().flatten().unwrap_or_default()).into_iter();
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
            main_class: self
                .launch
                .masked()
                .main_class()
                .chars()
                .take(1000)
                .collect(),
            command: mask::command(&self.command, limit),
            label,
            labels,
            jvm: self.jvm,
        }
    }

    /// The label of a process of which nothing better is known: its task's attempt, its main class, else its program.
    pub fn plain_label(&self) -> String {
        let launch = self.launch.masked();
        if let Some(attempt) = Attempt::of(&launch) {
            return attempt.label();
        }
        let name = match launch.simple_name() {
            "" => &self.program,
            name => name,
        };
        name.chars().take(200).collect()
    }

    /// What else is known of it without a selector that derives labels.
    pub fn plain_labels(&self) -> BTreeMap<String, String> {
        let attempt = Attempt::of(&self.launch.masked());
        attempt.map(Attempt::labels).unwrap_or_default()
    }
}
