//! Agents that outlived their leases, and what agents that are gone ran.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::process::Signal;

use super::{names, FileId, Sweep};
use crate::engine::perf::PROGRAM_MARK;
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

/// Every agent's binary has this in it.
const MARK: &[u8] = b"hprofiler-agent";
/// No agent is larger, in bytes.
const LARGEST: u64 = 64 << 20;
/// The longest session in seconds, for agents that show no lease: a day's recording and the longest lease.
const LONGEST_SESSION: u64 = 25 * 3600;
const ENVIRONMENT_LIMIT: u64 = 64 << 10;
/// How long a process may take to be looked at, to end when it is asked to, and to end when it is killed.
const TO_LOOK: Duration = Duration::from_secs(2);
const TO_END: Duration = Duration::from_secs(10);
const TO_DIE: Duration = Duration::from_secs(2);

/// An agent, or a program of an agent.
pub struct Found {
    pub entry: Leftover,
    pid: i32,
    start_time: u64,
    ppid: i32,
    /// The file that an agent runs.
    pub executable: Option<FileId>,
}

impl Found {
    /// What an agent's folders are named after.
    pub fn session(&self) -> Option<String> {
        let is_agent = self.entry.kind == Kind::Agent;
        is_agent.then(|| format!("{}-{}", self.pid, self.start_time))
    }
}

/// All agents and orphaned programs but this session's own; those that are left over are ended, unless it is a dry run.
pub fn sweep(sweep: &Sweep) -> Vec<Found> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids: Vec<i32> = pids.filter(|pid| !sweep.excluded.contains(pid)).collect();
    let looking = sweep.clone();
    let looked = worker_pool::map(pids, TO_LOOK, move |&pid| look(&looking, pid));
    let mut found: Vec<Found> = looked.into_iter().flatten().flatten().collect();
    let living = found.iter().filter(|it| it.entry.kind == Kind::Agent);
    let living = living.filter(|it| it.entry.state != State::Left);
    let living: HashSet<i32> = living
        .map(|agent| agent.pid)
        .chain([std::process::id() as i32])
        .collect();
    // What agents ran has ended with them, or is theirs.
    found.retain(|it| it.entry.kind == Kind::Agent || !descends_from(it.ppid, &living));
    if !sweep.order.dry {
        end(&mut found);
    }
    found
}

fn descends_from(mut pid: i32, wanted: &HashSet<i32>) -> bool {
    for _ in 0..4 {
        if wanted.contains(&pid) {
            return true;
        }
        pid = stat_of(pid).map_or(0, |stat| stat.ppid);
    }
    false
}

fn stat_of(pid: i32) -> Option<Stat> {
    stat::parse(&read_text(format!("/proc/{pid}/stat"), 4096)?)
}

fn look(sweep: &Sweep, pid: i32) -> Option<Found> {
    let before = stat_of(pid).filter(Stat::lives)?;
    let text = read_text(format!("/proc/{pid}/status"), 1 << 20)?;
    let uid = status::parse(pid, &text)?.uid;
    let path = executable(pid)?;
    let (kind, hash) = match names::agent(file_name(&path)) {
        Some(hash) => (Kind::Agent, hash),
        None if sweep.may(uid) && is_program(pid) => (Kind::Program, None),
        None => return None,
    };
    let started = before.start_time / clock_ticks_per_second();
    let age = lease::since_boot().as_secs().saturating_sub(started);
    let entry = Leftover {
        pid: Some(pid),
        seconds: Some(age),
        ..Leftover::new(kind, path.clone(), sweep.users.name(uid))
    };
    let is_agent = kind == Kind::Agent && sweep.may(uid) && is_agent(pid, hash);
    let entry = match kind {
        Kind::Agent if !sweep.may(uid) => entry.foreign(),
        Kind::Agent if !is_agent => {
            entry.judged(State::Foreign, "it has the name of an agent but is not one")
        }
        Kind::Agent => {
            let (state, reason) = judge(before.state, lease::shown(pid), age);
            entry.judged(state, reason)
        }
        _ => entry.judged(State::Left, "its agent is gone or left over"),
    };
    let found = Found {
        entry,
        pid,
        start_time: before.start_time,
        ppid: before.ppid,
        executable: is_agent.then(|| file_id(pid)).flatten(),
    };
    // Not another process that was given the same pid meanwhile.
    stat_of(pid)
        .is_some_and(|after| after.start_time == before.start_time)
        .then_some(found)
}

/// What an agent is by its state, by the seconds until its lease ends, and by its age in seconds.
fn judge(state: char, lease: Option<i64>, age: u64) -> (State, String) {
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
        None if age > LONGEST_SESSION => (State::Left, "no session lasts as long".to_owned()),
        None => (State::Used, format!("{stopped}its lease cannot be read")),
    }
}

/// Whether a process has just the environment that agents give to programs.
fn is_program(pid: i32) -> bool {
    let environment = read_bounded(format!("/proc/{pid}/environ"), ENVIRONMENT_LIMIT);
    is_environment(&split_zero(&environment.unwrap_or_default()))
}

fn is_environment(variables: &[String]) -> bool {
    let mark = format!("{}={}", PROGRAM_MARK.0, PROGRAM_MARK.1);
    let mut rest = ["LC_ALL=C", "PERF_CONFIG=/dev/null", &mark].to_vec();
    rest.retain(|wanted| !variables.iter().any(|variable| variable == wanted));
    let path = variables.iter().any(|it| it.starts_with("PATH="));
    rest.is_empty() && path && variables.len() == 4
}

/// The path of a process's executable: the kernel's word for it, else its own.
fn executable(pid: i32) -> Option<String> {
    let command =
        || read_bounded(format!("/proc/{pid}/cmdline"), 64 << 10).map(|it| split_zero(&it));
    let Ok(link) = fs::read_link(format!("/proc/{pid}/exe")) else {
        return command()?.into_iter().next();
    };
    let path = link.to_string_lossy();
    let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
    // Where nothing can be made executable the system's loader runs the agent: `loader FILE --once FILE`.
    if file_name(path).starts_with("ld-linux") {
        if let [_, file, once, same, ..] = command()?.as_slice() {
            if once == "--once" && file == same {
                return Some(file.clone());
            }
        }
    }
    Some(path.to_owned())
}

fn file_id(pid: i32) -> Option<FileId> {
    let stat = rustix::fs::stat(format!("/proc/{pid}/exe")).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Whether what runs is an agent by its content: it has the hash it is named by, and our mark.
fn is_agent(pid: i32, hash: Option<&str>) -> bool {
    let path = format!("/proc/{pid}/exe");
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    let loader = fs::read_link(&path)
        .is_ok_and(|link| file_name(&link.to_string_lossy()).starts_with("ld-linux"));
    let marked = || bytes.windows(MARK.len()).any(|part| part == MARK);
    read.is_ok() && hash.is_none_or(|hash| sha256(&bytes) == hash) && (loader || marked())
}

/// End all that are left over: SIGTERM, by which agents clean up, and after a time SIGKILL.
fn end(found: &mut [Found]) {
    let mut asked = Vec::new();
    for one in found.iter_mut().filter(|it| it.entry.state == State::Left) {
        match Target::open(one.pid, one.start_time) {
            Ok(target) => {
                audit::note("signal", || format!("SIGTERM to {}", target.pid));
                let _ = target.signal(Signal::TERM);
                // A stopped process sees the signal when it goes on.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_left_over_when_its_lease_is() {
        let day = LONGEST_SESSION + 1;
        for (state, lease, age, want) in [
            ('S', Some(10), 9, State::Used),
            ('S', Some(-1), 9, State::Left),
            ('T', Some(1), day, State::Used),
            ('T', Some(-1), 9, State::Left),
            ('S', None, 9, State::Used),
            ('S', None, day, State::Left),
        ] {
            assert_eq!(judge(state, lease, age).0, want, "{state} {lease:?} {age}");
        }
    }

    #[test]
    fn what_agents_run_is_known_by_all_of_its_environment() {
        let of = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let whole = "PATH=/bin LC_ALL=C PERF_CONFIG=/dev/null HPROFILER_AGENT=1";
        assert!(is_environment(&of(whole)));
        for words in [
            "PATH=/bin LC_ALL=C PERF_CONFIG=/dev/null",
            "PATH=/bin LC_ALL=C HPROFILER_AGENT=1",
            &format!("{whole} HOME=/root"),
        ] {
            assert!(!is_environment(&of(words)), "{words}");
        }
    }
}
