use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{test_kill_process, Pid};

use super::role::Role;
use crate::jvm::command_line::{self, Launch};
use crate::jvm::hsperf;
use crate::os::identity::become_user_of;
use crate::os::proc::maps::{self, file_name, Mapped, Mapping};
use crate::os::proc::stat::{self, Stat};
use crate::os::proc::target::Target;
use crate::os::proc::users::Users;
use crate::os::proc::{
    executable, first_words, mask, pids, read_bounded, read_text, split_zero, status,
};
use crate::os::worker_pool::{self, NoResult};
use crate::wire::events::{JvmFacts, Process};

/// The longest command line, or environment, that is read. The rest is left out.
const MAX_COMMAND: usize = 1 << 20;
/// The bytes for all command lines of a scan, and for each one after these are used up: any user can start many
/// processes with very long command lines.
const ALL_COMMANDS: usize = 64 << 20;
const LEAST_COMMAND: usize = 2 << 10;
/// The most ancestors whose command lines are looked at.
pub const MOST_PARENTS: usize = 8;
const MAX_NAME: usize = 255;
/// How long reading the memory of one process may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long reading the files of all JVMs may take (they add names and versions), and how many are read at a time.
const FILE_PATIENCE: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 8;

pub struct Seen {
    pub pid: i32,
    pub namespace_pid: i32,
    pub ppid: i32,
    pub start_time: u64,
    pub uid: u32,
    pub user: String,
    pub program: String,
    pub command: Vec<String>,
    pub launch: Launch,
    pub jvm: Option<JvmFacts>,
}

/// A process whose memory could not be read: its threads hold the kernel's lock for that while they wait for a page of
/// a file system that hangs.
pub struct Overlooked {
    pub pid: i32,
    pub uid: u32,
    /// The file name of its executable; empty if the agent may not see it.
    pub program: String,
    pub why: NoResult,
}

#[derive(Default)]
pub struct Scanned {
    pub seen: Vec<Seen>,
    /// The excluded ones.
    pub own: Vec<Seen>,
    pub overlooked: Vec<Overlooked>,
}

/// Every process. JVMs are never excluded: one may have started hprofiler. Kernel threads and zombies have no command
/// line and are left out.
pub fn processes(excluded: &HashSet<i32>) -> Scanned {
    let mut pids = pids();
    pids.sort_unstable();
    some(pids, excluded)
}

/// These processes only.
pub fn some(pids: Vec<i32>, excluded: &HashSet<i32>) -> Scanned {
    let mut scanned = Scanned::default();
    let room = AtomicUsize::new(ALL_COMMANDS);
    let memories = worker_pool::map(pids.clone(), PATIENCE, move |&pid| Memory::read(pid, &room));
    let mut memories_read = Vec::new();
    for (pid, memory) in pids.into_iter().zip(memories) {
        match memory {
            Err(_) if excluded.contains(&pid) => {}
            Ok(memory) => memories_read.extend(memory),
            Err(why) => scanned.overlooked.extend(overlooked(pid, why)),
        }
    }
    let mut descriptions = describe_jvms(&mut memories_read);
    let users = Users::read();
    for memory in memories_read {
        let description = descriptions.remove(&memory.pid);
        let to = match description.is_none() && excluded.contains(&memory.pid) {
            true => &mut scanned.own,
            false => &mut scanned.seen,
        };
        to.extend(seen(memory, description, &users));
    }
    scanned
}

/// Descriptions of JVMs from their files, by pid; None: not read in time. Files are read with their users' rights, and
/// may be on a file system that hangs.
fn describe_jvms(memories: &mut [Memory]) -> HashMap<i32, Option<JvmDescription>> {
    let jvms = memories.iter_mut().filter_map(|it| {
        let signs = it.signs.take()?;
        Some((it.pid, it.stat.start_time, it.command.clone(), signs))
    });
    let jvms: Vec<_> = jvms.collect();
    let pids: Vec<i32> = jvms.iter().map(|jvm| jvm.0).collect();
    let described = worker_pool::run_all(jvms, AT_ONCE, FILE_PATIENCE, |jvm| {
        let (pid, start_time, command, signs) = jvm;
        JvmDescription::from_files(pid, start_time, &command, &signs)
            .unwrap_or_else(|| JvmDescription::without_files(&command))
    });
    let described = described.into_iter().map(Result::ok);
    pids.into_iter().zip(described).collect()
}

/// `description` is from `describe_jvms`.
fn seen(
    memory: Memory,
    description: Option<Option<JvmDescription>>,
    users: &Users,
) -> Option<Seen> {
    let description = description.map(|it| {
        it.unwrap_or_else(|| {
            let mut description = JvmDescription::without_files(&memory.command);
            // Most command lines name no file of arguments. Then nothing is missing.
            let missing = &mut description.launch.missing;
            *missing = missing.and(Some("a file with its arguments could not be read in time"));
            description
        })
    });
    let pid = memory.pid;
    let status = read_text(format!("/proc/{pid}/status"), 1 << 20)?;
    let status = status::parse(pid, &status)?;
    let (mut launch, jvm) = match description {
        Some(it) => {
            let version = it.version;
            (it.launch, Some(JvmFacts { version }))
        }
        None => (command_line::of_native(&memory.command), None),
    };
    if !memory.whole {
        launch.missing = Some("its command line is too long");
    }
    let seen = Seen {
        pid,
        namespace_pid: status.namespace_pid,
        ppid: memory.stat.ppid,
        start_time: memory.stat.start_time,
        uid: status.uid,
        user: users.name(status.uid),
        program: program(pid, &memory.command),
        command: memory.command,
        launch,
        jvm,
    };
    // The pid may belong to another process by now.
    let after = stat::of(pid)?;
    (seen.start_time == after.start_time).then_some(seen)
}

struct Memory {
    pid: i32,
    stat: Stat,
    command: Vec<String>,
    /// Whether the command line is complete.
    whole: bool,
    /// Why it is a JVM.
    signs: Option<Signs>,
}

impl Memory {
    /// None: it has no command line, like a kernel thread. `room`: the bytes left for command lines.
    fn read(pid: i32, room: &AtomicUsize) -> Option<Self> {
        let stat = stat::of(pid)?;
        let left = room.load(Ordering::Relaxed);
        let limit = left.clamp(LEAST_COMMAND, MAX_COMMAND);
        let bytes = read_bounded(format!("/proc/{pid}/cmdline"), limit as u64 + 1)?;
        let (mut command, all_words) = first_words(&bytes);
        let cut = bytes.len() > limit;
        if cut {
            // A part of a secret would not look like a secret.
            command.pop();
        }
        if command.is_empty() {
            return None;
        }
        // A word also takes a place in a list, and the allocator's overhead.
        let size: usize = command.iter().map(|word| word.len() + 56).sum();
        room.store(left.saturating_sub(size), Ordering::Relaxed);
        Some(Self {
            pid,
            stat,
            signs: Signs::of(pid, &command),
            command,
            whole: all_words && !cut,
        })
    }
}

/// None: the process is gone, or has no program, like a kernel thread.
fn overlooked(pid: i32, why: NoResult) -> Option<Overlooked> {
    let dir = format!("/proc/{pid}");
    let link = fs::read_link(format!("{dir}/exe"));
    let gone = link.is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let status = read_text(format!("{dir}/status"), 1 << 20).filter(|_| !gone)?;
    Some(Overlooked {
        pid,
        uid: status::parse(pid, &status)?.uid,
        program: program(pid, &[]),
        why,
    })
}

/// What shows that a process is a JVM.
struct Signs {
    library: Option<String>,
    performance_data: Vec<Mapped>,
}

impl Signs {
    /// A JVM maps `libjvm.so`. If the agent may not read the map, a program named `java` counts as one.
    fn of(pid: i32, command: &[String]) -> Option<Self> {
        let is_library = |path: &str| file_name(path) == "libjvm.so";
        let map = File::open(format!("/proc/{pid}/maps")).ok();
        let is_sign = |mapping: &Mapping| {
            is_library(&mapping.file.path) || hsperf::is_data(&mapping.file.path)
        };
        match map.and_then(|map| maps::files(map, is_sign)) {
            Some(files) => {
                let (libraries, performance_data): (Vec<_>, _) =
                    files.into_iter().partition(|file| is_library(&file.path));
                let library = Some(libraries.into_iter().next()?.path);
                Some(Self {
                    library,
                    performance_data,
                })
            }
            None => (program(pid, command) == "java").then_some(Self {
                library: None,
                performance_data: Vec::new(),
            }),
        }
    }
}

/// The file name of a process's executable. If the agent may not see it, the command line names it.
fn program(pid: i32, command: &[String]) -> String {
    let path = executable(pid).or_else(|| command.first().cloned());
    let path = path.unwrap_or_default();
    file_name(&path).chars().take(MAX_NAME).collect()
}

struct JvmDescription {
    launch: Launch,
    version: String,
}

impl JvmDescription {
    /// The calling thread has no more rights than the JVM's user afterwards. None: the agent cannot become that user.
    fn from_files(pid: i32, start_time: u64, command: &[String], signs: &Signs) -> Option<Self> {
        let target = Target::open(pid, start_time).ok()?;
        let named = target.named().ok()?;
        become_user_of(&target).ok()?;
        let version =
            hsperf::jvm_version(&named, signs.library.as_deref(), &signs.performance_data);
        Some(Self {
            launch: command_line::parse(command, |name| named.text(name)),
            version: version.unwrap_or_default().chars().take(64).collect(),
        })
    }

    fn without_files(command: &[String]) -> Self {
        Self {
            launch: command_line::parse(command, |_| None),
            version: String::new(),
        }
    }
}

/// The environment of a process, empty if the agent may not read it.
pub fn environment(process: &Seen) -> BTreeMap<String, String> {
    let mut alone = environments(std::slice::from_ref(process));
    alone.pop().unwrap_or_default()
}

/// The same of several, in order. All are in memory at a time.
pub fn environments(processes: &[Seen]) -> Vec<BTreeMap<String, String>> {
    let paths = processes
        .iter()
        .map(|process| format!("/proc/{}/environ", process.pid));
    let read = |path: &String| read_bounded(path, MAX_COMMAND as u64);
    let read = worker_pool::map(paths.collect(), PATIENCE, read).into_iter();
    read.map(|bytes| variables(&bytes.ok().flatten().unwrap_or_default()))
        .collect()
}

fn variables(bytes: &[u8]) -> BTreeMap<String, String> {
    let pairs = split_zero(bytes).into_iter();
    pairs
        .filter_map(|pair| {
            pair.split_once('=')
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        })
        .collect()
}

/// The command lines of a process's parent, its parent's parent and so on, a line each, with secrets masked.
pub fn parents(process: &Seen) -> String {
    let mut lines = String::new();
    let mut pid = process.ppid;
    for _ in 0..MOST_PARENTS {
        let parent = worker_pool::run(PATIENCE, move || {
            Memory::read(pid, &AtomicUsize::new(MAX_COMMAND))
        });
        let Ok(Some(parent)) = parent else {
            break;
        };
        lines += &mask::words(&parent.command).join(" ");
        lines.push('\n');
        pid = parent.stat.ppid;
    }
    lines
}

/// This process and its ancestors.
pub fn own_ancestry() -> HashSet<i32> {
    let mut pids = HashSet::new();
    let mut pid = std::process::id() as i32;
    while pid > 0 && pids.insert(pid) {
        pid = stat::of(pid).map_or(0, |stat| stat.ppid);
    }
    pids
}

/// Why a process is not among those that `processes` returns.
pub fn why_unseen(pid: i32) -> String {
    let status = read_text(format!("/proc/{pid}/status"), 1 << 20).unwrap_or_default();
    let leader = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let leader = leader.and_then(|leader| leader.trim().parse::<i32>().ok());
    let is_there = Pid::from_raw(pid).is_some_and(|pid| {
        !matches!(test_kill_process(pid), Err(Errno::SRCH)) // another user's: PERM
    });
    match (leader, stat::of(pid)) {
        (Some(leader), _) if leader != pid => format!("it is a thread of process {leader}"),
        (_, Some(stat)) if !stat.lives() => "it has ended".to_owned(),
        (_, Some(_)) => "it has no command line, like threads of the kernel".to_owned(),
        (_, None) if is_there => "the agent may not see it in /proc".to_owned(),
        (_, None) => "there is no such process".to_owned(),
    }
}

#[cfg(any(test, feature = "fuzz"))]
impl Seen {
    /// A process with this command line, words separated by blanks.
    pub fn of(pid: i32, line: &str) -> Self {
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Self {
            pid,
            namespace_pid: pid,
            ppid: 1,
            start_time: 1,
            uid: 9,
            user: "yarn".to_owned(),
            program: file_name(&command[0]).to_owned(),
            launch: command_line::parse(&command, |_| None),
            command,
            jvm: None,
        }
    }
}

impl Seen {
    /// `limit`: the longest command in bytes.
    pub fn into_message(
        self,
        label: String,
        labels: BTreeMap<String, String>,
        limit: usize,
    ) -> Process {
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

    /// The label of a process without a better one: what it is for its job, its main class, or its program.
    pub fn plain_label(&self) -> String {
        let launch = self.launch.masked();
        if let Some(role) = Role::of(&launch) {
            return role.label();
        }
        let name = match launch.simple_name() {
            "" => &self.program,
            name => name,
        };
        name.chars().take(200).collect()
    }

    /// Its labels if no selector derives any.
    pub fn plain_labels(&self) -> BTreeMap<String, String> {
        let role = Role::of(&self.launch.masked());
        role.map(Role::labels).unwrap_or_default()
    }
}
