//! Agents that still run, and what they ran.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{fstat, openat, statat, AtFlags, Mode, OFlags, CWD};
use rustix::param::clock_ticks_per_second;
use rustix::process::Signal;

use super::entry;
use super::{names, Cleaning};
use crate::engine::perf::PROGRAM_MARK;
use crate::os::audit;
use crate::os::files::sha256;
use crate::os::lease::{self, since_boot, Shown};
use crate::os::proc::maps::file_name;
use crate::os::proc::memory;
use crate::os::proc::read_text;
use crate::os::proc::split_zero;
use crate::os::proc::stat::{self, Stat};
use crate::os::proc::status;
use crate::os::proc::target::Target;
use crate::wire::events::{Entry, Found, Kind, State};

/// Every agent's binary has this in it.
const MARK: &[u8] = b"hprofiler-agent";
/// No agent is larger, in bytes.
const LARGEST: u64 = 64 << 20;
/// The longest session of an agent that does not show its lease: a day's recording and the longest lease.
const LONGEST_SESSION: u64 = 25 * 3600;
/// What agents give the programs they run, and nothing else, beside `PATH` and the mark.
const ENVIRONMENT: [&str; 2] = ["LC_ALL=C", "PERF_CONFIG=/dev/null"];
const ENVIRONMENT_LIMIT: u64 = 64 << 10;
/// How long one may take to end when it is asked to, and when it is made to.
const TO_END: Duration = Duration::from_secs(10);
const TO_DIE: Duration = Duration::from_secs(2);

/// A process that is one of ours, or looks like it.
pub struct Ours {
    pub entry: Entry,
    pid: i32,
    start_time: u64,
    ppid: i32,
    /// Of an agent, and of nothing that is only called so: the folder and the file it was started from, as far as they
    /// are there (device and inode).
    pub from: Vec<(u64, u64)>,
}

impl Ours {
    pub fn is_left(&self) -> bool {
        self.entry.state == State::Left
    }

    /// Of an agent that is left over, or soon is.
    pub fn ends(&self) -> Option<entry::Agent> {
        let is_agent = self.entry.kind == Kind::Agent;
        let ends = is_agent && matches!(self.entry.state, State::Left | State::Ending);
        ends.then_some(entry::Agent {
            pid: self.pid,
            ends: self.entry.ends,
        })
    }
}

/// All agents and programs of agents but the excluded: the session's own.
pub fn look(cleaning: &Cleaning) -> Vec<Ours> {
    let pids: Vec<i32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| !cleaning.excluded.contains(pid))
        .collect();
    let mut found: Vec<Ours> = pids
        .iter()
        .filter_map(|&pid| one(cleaning, pid, agent))
        .collect();
    let programs: Vec<Ours> = pids
        .iter()
        .filter_map(|&pid| one(cleaning, pid, program))
        .collect();
    let living: HashSet<i32> = found
        .iter()
        .filter(|agent| !agent.is_left())
        .map(|agent| agent.pid)
        .chain([std::process::id() as i32])
        .collect();
    // What agents ran has ended with them, or is theirs.
    let orphan = |program: &Ours| !has_ancestor(program.ppid, &living);
    found.extend(programs.into_iter().filter(orphan));
    found
}

fn has_ancestor(mut pid: i32, wanted: &HashSet<i32>) -> bool {
    for _ in 0..4 {
        if wanted.contains(&pid) {
            return true;
        }
        let stat = read_text(format!("/proc/{pid}/stat"), 4096);
        pid = stat
            .and_then(|text| stat::parse(&text))
            .map_or(0, |stat| stat.ppid);
    }
    false
}

/// A process as it was before and after it was looked at.
fn one(
    cleaning: &Cleaning,
    pid: i32,
    look: fn(&Cleaning, i32, &Stat, u32) -> Option<Ours>,
) -> Option<Ours> {
    let stat = |pid| stat::parse(&read_text(format!("/proc/{pid}/stat"), 4096)?);
    let before = stat(pid).filter(|stat| !matches!(stat.state, 'Z' | 'X'))?;
    let text = read_text(format!("/proc/{pid}/status"), 1 << 20)?;
    let found = look(cleaning, pid, &before, status::parse(pid, &text)?.uid);
    found.filter(|_| stat(pid).is_some_and(|after| after.start_time == before.start_time))
}

fn agent(cleaning: &Cleaning, pid: i32, stat: &Stat, uid: u32) -> Option<Ours> {
    let (path, readable) = binary(pid)?;
    let hash = names::agent(file_name(&path))?;
    let ours = ours(cleaning, Kind::Agent, pid, stat, uid, path.clone());
    let judged = |ours: Ours, state, reason: String| Ours {
        entry: ours.entry.judged(state, reason),
        ..ours
    };
    if !cleaning.may(uid) {
        let reason = ours.entry.of_another_user();
        return Some(judged(ours, State::Foreign, reason));
    }
    if !readable || !is_agent(pid, hash) {
        let reason = "it is called as an agent and is none";
        return Some(judged(ours, State::Foreign, reason.to_owned()));
    }
    let age = ours.entry.seconds.unwrap_or(0);
    let judged = judge(stat.state, lease::shown(pid), age);
    let (state, ends, reason) = (judged.state, judged.ends, judged.reason);
    let entry = Entry {
        ends,
        ..ours.entry.judged(state, reason)
    };
    let from = started_from(pid, &path);
    Some(Ours {
        entry,
        from,
        ..ours
    })
}

/// What an agent is by its state and its lease.
struct Judged {
    state: State,
    ends: Option<u64>,
    reason: String,
}

/// `age` in seconds.
fn judge(state: char, shown: Shown, age: u64) -> Judged {
    let stopped = matches!(state, 'T' | 't');
    let because = |state, reason: &str| Judged {
        state,
        ends: None,
        reason: reason.to_owned(),
    };
    match shown {
        Shown::Ends(lease) => judge_by(stopped, lease),
        Shown::Nothing if stopped => because(State::Left, "it is stopped"),
        _ if age > LONGEST_SESSION => because(State::Left, "no session lasts as long"),
        Shown::Elsewhere => because(
            State::Used,
            "it is in another time namespace, where its lease is to be seen",
        ),
        Shown::Unseen => because(
            State::Used,
            "its lease cannot be seen: it may be in another time namespace",
        ),
        Shown::Nothing => because(State::Used, "its session goes on; it ends with its lease"),
    }
}

/// By a lease that ends in so many seconds. One that is not stopped has its time to clean up.
fn judge_by(stopped: bool, lease: i64) -> Judged {
    let to_clean = if stopped { 0 } else { lease::TO_CLEAN };
    let ends = u64::try_from(lease.saturating_add_unsigned(to_clean)).ok();
    let over = lease.unsigned_abs();
    let (state, reason) = match ends {
        None if stopped => (
            State::Left,
            format!("it is stopped; its lease ended {over} s ago"),
        ),
        None => (
            State::Left,
            format!("it hangs; its lease ended {over} s ago"),
        ),
        Some(_) if stopped => (
            State::Ending,
            format!("it is stopped; its lease ends in {over} s"),
        ),
        Some(ends) if lease < 0 => (
            State::Ending,
            format!("its lease is over; it has {ends} s more to clean up by itself"),
        ),
        Some(_) => (
            State::Used,
            format!(
                "its session goes on; unless its coordinator is heard its lease ends in {over} s"
            ),
        ),
    };
    Judged {
        ends: ends.filter(|_| state == State::Ending),
        state,
        reason,
    }
}

/// perf, or what perf ran.
fn program(cleaning: &Cleaning, pid: i32, stat: &Stat, uid: u32) -> Option<Ours> {
    if !cleaning.may(uid) {
        return None;
    }
    let environment = memory::read(pid, "environ", ENVIRONMENT_LIMIT)?;
    let marked = is_environment(&split_zero(&environment))?;
    // The programs of earlier versions have no mark.
    if !marked && !is_perf(pid) && !is_perf(stat.ppid) {
        return None;
    }
    let (path, _) = binary(pid)?;
    let mut ours = ours(cleaning, Kind::Program, pid, stat, uid, path);
    ours.entry.reason = "the agent that ran it is gone, or left over".to_owned();
    Some(ours)
}

fn is_perf(pid: i32) -> bool {
    binary(pid).is_some_and(|(path, _)| file_name(&path).starts_with("perf"))
}

/// Whether an environment that agents give has their mark; None of any other one.
fn is_environment(variables: &[String]) -> Option<bool> {
    let is = |wanted: &str| variables.iter().any(|variable| variable == wanted);
    let marked = is(&format!("{}={}", PROGRAM_MARK.0, PROGRAM_MARK.1));
    let path = variables
        .iter()
        .any(|variable| variable.starts_with("PATH="));
    let all = variables.len() == ENVIRONMENT.len() + 1 + usize::from(marked);
    (all && path && ENVIRONMENT.into_iter().all(is)).then_some(marked)
}

fn ours(cleaning: &Cleaning, kind: Kind, pid: i32, stat: &Stat, uid: u32, path: String) -> Ours {
    let user = cleaning.users.name(uid);
    let mut entry = Entry::of_process(kind, pid, stat.start_time, path, user);
    let started = stat.start_time / clock_ticks_per_second();
    entry.seconds = Some(since_boot().as_secs().saturating_sub(started));
    Ours {
        pid,
        start_time: stat.start_time,
        ppid: stat.ppid,
        from: Vec::new(),
        entry,
    }
}

/// The folder and the file of this path, as the process sees them. The kernel tells the path of a program without links:
/// one that is on the way by now was laid since, to where its owner likes, and is not followed.
fn started_from(pid: i32, path: &str) -> Vec<(u64, u64)> {
    let (folder, name) = path.rsplit_once('/').unwrap_or_default();
    let Some(folder) = open_without_links(pid, folder) else {
        return Vec::new();
    };
    let file = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
    let stats = [fstat(&folder), file].into_iter().flatten();
    stats.map(|stat| (stat.st_dev, stat.st_ino)).collect()
}

fn open_without_links(pid: i32, path: &str) -> Option<OwnedFd> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, format!("/proc/{pid}/root"), folder, Mode::empty()).ok()?;
    let open = |at: OwnedFd, name| openat(&at, name, folder | OFlags::NOFOLLOW, Mode::empty());
    let mut names = path.split('/').filter(|name| !name.is_empty());
    names.try_fold(root, |at, name| open(at, name).ok())
}

/// The path of a process's executable, and whether the kernel says so; else its own word.
fn binary(pid: i32) -> Option<(String, bool)> {
    let command = || memory::read(pid, "cmdline", 64 << 10).map(|it| split_zero(&it));
    let Ok(link) = fs::read_link(format!("/proc/{pid}/exe")) else {
        return Some((command()?.into_iter().next()?, false));
    };
    let path = link.to_string_lossy();
    let path = path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned();
    // Where nothing can make a file executable the system's loader runs the agent: `loader FILE --once FILE`.
    if file_name(&path).starts_with("ld-linux") {
        let words = command()?;
        if let [_, file, once, same, ..] = words.as_slice() {
            if once == "--once" && file == same {
                return Some((file.clone(), true));
            }
        }
    }
    Some((path, true))
}

/// Whether what runs is an agent by its content: it has the hash it is named by, where it is, and our mark.
fn is_agent(pid: i32, hash: Option<&str>) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(format!("/proc/{pid}/exe"))
        .and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    let loader = fs::read_link(format!("/proc/{pid}/exe"))
        .is_ok_and(|link| file_name(&link.to_string_lossy()).starts_with("ld-linux"));
    let marked = || bytes.windows(MARK.len()).any(|part| part == MARK);
    read.is_ok() && hash.is_none_or(|hash| sha256(&bytes) == hash) && (loader || marked())
}

/// End what is to be ended, all at once: asked first, made to after a time.
pub fn end(cleaning: &Cleaning, all: Vec<Ours>, found: &mut Found) {
    let mut asked = Vec::new();
    for ours in all {
        let (pid, start_time) = (ours.pid, ours.start_time);
        if !found.meet(&cleaning.order, ours.entry) {
            continue;
        }
        // One that has ended meanwhile is no more to be ended.
        if let Ok(target) = Target::open(pid, start_time) {
            ask(&target);
            asked.push(target);
        }
    }
    wait(&asked, TO_END);
    for target in asked.iter().filter(|target| target.stat().is_some()) {
        audit::note("signal", || format!("SIGKILL to {}", target.pid));
        let _ = target.signal(Signal::KILL);
    }
    wait(&asked, TO_DIE);
    for target in asked {
        match target.stat() {
            None => found.cleaned.ended.push(target.pid),
            Some(_) => found.fail(format!("process {}", target.pid), "it does not end"),
        }
    }
}

/// One that is stopped goes on, and then sees what came meanwhile.
fn ask(target: &Target) {
    audit::note("signal", || format!("SIGTERM to {}", target.pid));
    let _ = target.signal(Signal::TERM);
    audit::note("signal", || format!("SIGCONT to {}", target.pid));
    let _ = target.signal(Signal::CONT);
}

fn wait(targets: &[Target], patience: Duration) {
    let end = Instant::now() + patience;
    while targets.iter().any(|target| target.stat().is_some()) && Instant::now() < end {
        sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{symlink, MetadataExt};

    use super::*;

    #[test]
    fn a_lease_is_a_lease() {
        let over = -(lease::TO_CLEAN as i64);
        for (state, shown, age, want, ends) in [
            ('S', Shown::Ends(10), 9, State::Used, None),
            ('S', Shown::Ends(-10), 9, State::Ending, Some(110)),
            ('S', Shown::Ends(over - 1), 9, State::Left, None),
            ('T', Shown::Ends(1), 9, State::Ending, Some(1)),
            ('T', Shown::Ends(-1), 9, State::Left, None),
            ('T', Shown::Nothing, 9, State::Left, None),
            ('S', Shown::Nothing, 9, State::Used, None),
            ('S', Shown::Nothing, LONGEST_SESSION + 1, State::Left, None),
            ('T', Shown::Elsewhere, 9, State::Used, None),
            ('T', Shown::Unseen, 9, State::Used, None),
            (
                'S',
                Shown::Elsewhere,
                LONGEST_SESSION + 1,
                State::Left,
                None,
            ),
        ] {
            let judged = judge(state, shown, age);
            let of = format!("{state} {shown:?} {}", judged.reason);
            assert_eq!((judged.state, judged.ends), (want, ends), "{of}");
        }
    }

    #[test]
    fn where_an_agent_was_started_from_is_not_told_by_links() {
        let base = std::env::temp_dir().join(format!("hprofiler-from-{}", std::process::id()));
        fs::create_dir_all(base.join("real")).unwrap();
        let base = fs::canonicalize(base).unwrap();
        fs::write(base.join("real/agent"), "").unwrap();
        symlink("real", base.join("link")).unwrap();
        symlink("agent", base.join("real/other")).unwrap();
        let id = |path: &str| {
            let stat = fs::symlink_metadata(base.join(path)).unwrap();
            (stat.dev(), stat.ino())
        };
        let (folder, file) = (id("real"), id("real/agent"));
        for (path, want) in [
            ("real/agent", vec![folder, file]),
            ("real/gone", vec![folder]),
            ("real/other", vec![folder, id("real/other")]),
            ("link/agent", vec![]),
            ("gone/agent", vec![]),
        ] {
            let path = base.join(path);
            let from = started_from(std::process::id() as i32, path.to_str().unwrap());
            assert_eq!(from, want, "{path:?}");
        }
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn what_agents_run_is_known_by_all_of_its_environment() {
        let of = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (words, want) in [
            ("PATH=/bin LC_ALL=C PERF_CONFIG=/dev/null", Some(false)),
            (
                "PATH=/bin LC_ALL=C PERF_CONFIG=/dev/null HPROFILER_AGENT=1",
                Some(true),
            ),
            ("PATH=/bin LC_ALL=C", None),
            ("PATH=/bin LC_ALL=C PERF_CONFIG=/dev/null HOME=/root", None),
            ("PATH=/bin LC_ALL=C X=1", None),
            ("PATH=/bin LC_ALL=C HPROFILER_AGENT=1", None),
        ] {
            assert_eq!(is_environment(&of(words)), want, "{words}");
        }
    }
}
