//! Agents that outlived their leases.

use std::fs::{self, File};
use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::process::Signal;

use super::{names, FileId, Sweep};
use crate::os::audit;
use crate::os::files::sha256;
use crate::os::lease;
use crate::os::proc::maps::file_name;
use crate::os::proc::split_zero;
use crate::os::proc::stat::{self, Stat};
use crate::os::proc::target::Target;
use crate::os::proc::{read_bounded, read_text, status};
use crate::os::worker_pool;
use crate::wire::leftovers::{Done, Kind, Leftover, State};

/// Every agent's binary contains this.
const MARK: &[u8] = b"hprofiler-agent";
/// No agent is larger, in bytes.
const LARGEST: u64 = 64 << 20;
/// How long reading one process may take, and how long an agent may take to end after SIGTERM and after SIGKILL.
const TO_LOOK: Duration = Duration::from_secs(2);
const TO_END: Duration = Duration::from_secs(10);
const TO_DIE: Duration = Duration::from_secs(2);

pub struct Found {
    pub entry: Leftover,
    pid: i32,
    start_time: u64,
    pub executable: Option<FileId>,
}

impl Found {
    /// The part of its folders' names that stands for its session.
    pub fn session(&self) -> String {
        format!("{}-{}", self.pid, self.start_time)
    }
}

/// All agents except this one. Those that are left over are ended, unless it is a dry run.
pub fn sweep(sweep: &Sweep) -> Vec<Found> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids: Vec<i32> = pids.filter(|pid| !sweep.excluded.contains(pid)).collect();
    let looking = sweep.clone();
    let looked = worker_pool::map(pids, TO_LOOK, move |&pid| look(&looking, pid));
    let mut found: Vec<Found> = looked.into_iter().flatten().flatten().collect();
    if !sweep.order.dry {
        end(&mut found);
    }
    found
}

fn stat_of(pid: i32) -> Option<Stat> {
    stat::parse(&read_text(format!("/proc/{pid}/stat"), 4096)?)
}

fn look(sweep: &Sweep, pid: i32) -> Option<Found> {
    let before = stat_of(pid).filter(Stat::lives)?;
    let text = read_text(format!("/proc/{pid}/status"), 1 << 20)?;
    let uid = status::parse(pid, &text)?.uid;
    let path = executable(pid)?;
    let hash = names::agent(file_name(&path))?;
    let started = before.start_time / clock_ticks_per_second();
    let age = lease::since_boot().as_secs().saturating_sub(started);
    let entry = Leftover {
        pid: Some(pid),
        seconds: Some(age),
        ..Leftover::new(Kind::Agent, path, sweep.users.name(uid))
    };
    let is_agent = sweep.may(uid) && is_agent(pid, hash.as_deref());
    let entry = match () {
        () if !sweep.may(uid) => entry.foreign(),
        () if !is_agent => {
            entry.judged(State::Foreign, "it has the name of an agent but is not one")
        }
        () => {
            let (state, reason) = judge(before.state, lease::shown(pid));
            entry.judged(state, reason)
        }
    };
    let found = Found {
        entry,
        pid,
        start_time: before.start_time,
        executable: is_agent.then(|| file_id(pid)).flatten(),
    };
    // The pid may belong to another process by now.
    stat_of(pid)
        .is_some_and(|after| after.start_time == before.start_time)
        .then_some(found)
}

/// The state of an agent, from its process state and the seconds until its lease ends.
fn judge(state: char, lease: Option<i64>) -> (State, String) {
    let stopped = if matches!(state, 'T' | 't') {
        "it is stopped; "
    } else {
        ""
    };
    match lease {
        Some(ends) if ends < 0 => (
            State::Left,
            format!("{stopped}its lease ended {} s ago", -ends),
        ),
        Some(ends) => (
            State::Used,
            format!("{stopped}its lease ends in {ends} s if its coordinator stays silent"),
        ),
        None => (State::Used, format!("{stopped}its lease cannot be read")),
    }
}

/// The path of a process's executable. If the kernel hides it, the command line names it.
fn executable(pid: i32) -> Option<String> {
    let Ok(link) = fs::read_link(format!("/proc/{pid}/exe")) else {
        let command = read_bounded(format!("/proc/{pid}/cmdline"), 64 << 10)?;
        return split_zero(&command).into_iter().next();
    };
    let path = link.to_string_lossy();
    Some(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
}

fn file_id(pid: i32) -> Option<FileId> {
    let stat = rustix::fs::stat(format!("/proc/{pid}/exe")).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Whether a process runs an agent: the file contains our mark and has the hash of its name.
fn is_agent(pid: i32, hash: Option<&str>) -> bool {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/exe"));
    let read = file.and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    let marked = || bytes.windows(MARK.len()).any(|part| part == MARK);
    read.is_ok() && hash.is_none_or(|hash| sha256(&bytes) == hash) && marked()
}

/// End all that are left over: SIGTERM, so that agents clean up, and SIGKILL after some time.
fn end(found: &mut [Found]) {
    let mut asked = Vec::new();
    for one in found.iter_mut().filter(|it| it.entry.state == State::Left) {
        match Target::open(one.pid, one.start_time) {
            Ok(target) => {
                audit::note("signal", || format!("SIGTERM to {}", target.pid));
                let _ = target.signal(Signal::TERM);
                // A stopped process handles the signal only when it continues.
                let _ = target.signal(Signal::CONT);
                asked.push((target, one));
            }
            Err(_) => one.entry.record(Ok(Done::Ended)),
        }
    }
    wait(&asked, TO_END);
    for (target, _) in asked.iter().filter(|(target, _)| target.stat().is_some()) {
        audit::note("signal", || format!("SIGKILL to {}", target.pid));
        let _ = target.signal(Signal::KILL);
    }
    wait(&asked, TO_DIE);
    for (target, one) in asked {
        one.entry.record(match target.stat() {
            None => Ok(Done::Ended),
            Some(_) => Err("it does not end".to_owned()),
        });
    }
}

fn wait(asked: &[(Target, &mut Found)], patience: Duration) {
    let end = Instant::now() + patience;
    while asked.iter().any(|(target, _)| target.stat().is_some()) && Instant::now() < end {
        sleep(Duration::from_millis(20));
    }
}
