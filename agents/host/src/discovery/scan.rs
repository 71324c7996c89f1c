//! Every process of this host, and which of them are JVMs.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::attempt::Attempt;
use crate::jvm::command_line::{self, Launch};
use crate::jvm::hsperf;
use crate::jvm::version::jvm_version;
use crate::os::identity::{as_its_user, Unread};
use crate::os::proc::budget::{keep, size, Budget};
use crate::os::proc::maps::{self, file_name, Mapped};
use crate::os::proc::named::Named;
use crate::os::proc::target::Target;
use crate::os::proc::users::Users;
use crate::os::proc::{
    first_words, mask, memory, read_bounded, read_text, split_zero, stat, status,
};
use crate::os::worker::{Unheard, Whose};
use crate::wire::events::{JvmFacts, Process};

/// A command line, or an environment, is never longer than this in practice; what is over is left out.
const MAX_COMMAND: u64 = 1 << 20;
/// So many processes are looked at by one thread: each may have 1 MiB of words.
const AT_ONCE: usize = 16;
/// No file has a longer name.
const MAX_NAME: usize = 255;
/// How long a scan waits for the files of one JVM, on which nothing depends but names and versions.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long for all that hang together; after that each gets no more than a moment.
const ALL_PATIENCE: Duration = Duration::from_secs(3);
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

/// A process of which no more can be told, and why: see `memory`.
pub struct Overlooked {
    pub pid: i32,
    pub uid: u32,
    /// The file name of its executable; empty where that is not ours to see.
    pub program: String,
    pub why: Unheard,
}

/// What a scan saw.
#[derive(Default)]
pub struct Scanned {
    pub seen: Vec<Seen>,
    pub overlooked: Vec<Overlooked>,
}

/// Every process but the excluded ones. Kernel threads and zombies, which have no command line, are none.
pub fn processes(excluded: &HashSet<i32>) -> Scanned {
    let scan = Scan {
        users: Users::read(),
        budget: RefCell::new(Budget::new()),
        patience: Cell::new(ALL_PATIENCE),
    };
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
    for some in pids.chunks(AT_ONCE) {
        let mut memories = read_several(some);
        for &pid in some {
            match scan.process(pid, memories.remove(&pid)) {
                Some(Ok(seen)) => scanned.seen.push(seen),
                Some(Err(overlooked)) => scanned.overlooked.push(overlooked),
                None => {}
            }
        }
    }
    scanned
}

/// What is the same for all processes of one scan.
struct Scan {
    users: Users,
    /// What of memory is left to command lines.
    budget: RefCell<Budget>,
    /// How long files that hang are still waited for.
    patience: Cell<Duration>,
}

impl Scan {
    /// `memory`: what was in that of the process that had this number just now, where that is known.
    fn process(&self, pid: i32, memory: Option<Memory>) -> Option<Result<Seen, Overlooked>> {
        let dir = format!("/proc/{pid}");
        let before = stat::parse(&read_text(format!("{dir}/stat"), 4096)?)?;
        let status = status::parse(pid, &read_text(format!("{dir}/status"), 1 << 20)?)?;
        let whose = Whose::new(status.uid, pid, before.start_time);
        let known = memory.filter(|memory| memory.start_time == before.start_time);
        let remembered = match known {
            Some(memory) => Ok(memory.remembered),
            None => memory::look(whose, {
                let dir = dir.clone();
                move || read_memory(&dir)
            }),
        };
        let (command, whole, signs) = match remembered {
            Ok(remembered) => remembered?,
            Err(why) => return overlooked(whose, &dir, why).map(Err),
        };
        let told = signs.map(|signs| self.describe_jvm(pid, before.start_time, &command, signs));
        // A pid that was reused while it was read would mix two processes.
        let after = stat::parse(&read_text(format!("{dir}/stat"), 4096)?)?;
        let jvm = told.as_ref().map(|told| JvmFacts {
            version: told.version.clone(),
        });
        let program = program(&dir, &command);
        let mut launch = told.map(|told| told.launch).unwrap_or_default();
        if !whole {
            launch.missing = Some("its command line is too long");
        }
        let (command, launch) = self.within_budget(status.uid, command, launch);
        (before.start_time == after.start_time).then(|| {
            Ok(Seen {
                pid,
                namespace_pid: status.namespace_pid,
                ppid: before.ppid,
                start_time: before.start_time,
                uid: status.uid,
                user: self.users.name(status.uid),
                program,
                command,
                launch,
                jvm,
            })
        })
    }

    /// What there is room for; the same words stand in both.
    fn within_budget(
        &self,
        uid: u32,
        mut command: Vec<String>,
        launch: Launch,
    ) -> (Vec<String>, Launch) {
        let mut budget = self.budget.borrow_mut();
        let mut half = budget.of(uid) / 2;
        let all = size(&command) + launch.size();
        let mut launch = launch.within(half);
        keep(&mut command, &mut half);
        let kept = size(&command) + launch.size();
        if kept < all {
            launch.missing = Some("its command line takes too much memory");
        }
        budget.take(uid, kept);
        (command, launch)
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
        let patience = left.clamp(MOMENT, PATIENCE);
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

/// A command line, whether that is all of it, and by what it is a JVM's.
type ProcessMemory = (Vec<String>, bool, Option<Signs>);

/// What is in a process's memory; None where it has no command line.
fn read_memory(dir: &str) -> Option<ProcessMemory> {
    let (command, whole) = command(dir)?;
    let signs = (!command.is_empty()).then(|| Signs::of(dir, &command))?;
    Some((command, whole, signs))
}

/// The same of the process that began then.
struct Memory {
    start_time: u64,
    remembered: Option<ProcessMemory>,
}

/// Of several processes at once: on a busy host a thread for each would wait for a processor each time. Nothing where one
/// of them hangs: then each is to be looked at by itself.
fn read_several(pids: &[i32]) -> HashMap<i32, Memory> {
    let pids = pids.to_vec();
    let Some(&first) = pids.first() else {
        return HashMap::new();
    };
    let memory = |pid: i32| {
        let dir = format!("/proc/{pid}");
        let stat = stat::parse(&read_text(format!("{dir}/stat"), 4096)?)?;
        let start_time = stat.start_time;
        let remembered = read_memory(&dir);
        Some((
            pid,
            Memory {
                start_time,
                remembered,
            },
        ))
    };
    let all = move || pids.into_iter().filter_map(memory).collect();
    memory::look_at_several(first, all).unwrap_or_default()
}

/// A process whose memory could not be looked at; None of one that has no program, as threads of the kernel.
fn overlooked(whose: Whose, dir: &str, why: Unheard) -> Option<Overlooked> {
    let link = fs::read_link(format!("{dir}/exe"));
    let gone = link.is_err_and(|error| error.kind() == ErrorKind::NotFound);
    (!gone).then(|| Overlooked {
        pid: whose.pid,
        uid: whose.uid,
        program: program(dir, &[]),
        why,
    })
}

/// The words of a command line, and whether that is all of it.
fn command(dir: &str) -> Option<(Vec<String>, bool)> {
    let bytes = read_bounded(format!("{dir}/cmdline"), MAX_COMMAND + 1)?;
    let (words, all) = first_words(&bytes);
    Some((words, all && bytes.len() as u64 <= MAX_COMMAND))
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
        let version = jvm_version(named, signs.library.as_deref(), &signs.performance_data);
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
                .and(Some("a file of its arguments could not be read soon"));
        }
        Self {
            launch,
            version: String::new(),
        }
    }
}

/// The environment of a process, empty where it is not ours to read.
pub fn environment(process: &Seen) -> BTreeMap<String, String> {
    let bytes = memory::read(process.pid, "environ", MAX_COMMAND).unwrap_or_default();
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
