//! Agents that outlived their leases.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::process::Signal;

use super::{names, FileId, Sweep};
use crate::engine::pyspy::reader::WORD;
use crate::os::audit;
use crate::os::files::file_id;
use crate::os::lease;
use crate::os::proc::maps::file_name;
use crate::os::proc::target::Target;
use crate::os::proc::{executable, pids, read_bounded, split_zero, stat};
use crate::os::worker_pool;
use crate::wire::leftovers::{Done, Kind, Leftover, State};

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
    /// The session's part of its folders' names.
    pub fn session(&self) -> String {
        format!("{}-{}", self.pid, self.start_time)
    }
}

/// All agents except this one. Those that are left over are ended, unless it is a dry run.
pub fn sweep(sweep: &Sweep) -> Vec<Found> {
    let mut pids = pids();
    pids.retain(|pid| !sweep.excluded.contains(pid));
    let looking = sweep.clone();
    let looked = worker_pool::map(pids, TO_LOOK, move |&pid| look(&looking, pid));
    let mut found: Vec<Found> = looked.into_iter().flatten().flatten().collect();
    if !sweep.order.dry {
        end(&mut found);
    }
    found
}

fn look(sweep: &Sweep, pid: i32) -> Option<Found> {
    let command = read_bounded(format!("/proc/{pid}/cmdline"), 64 << 10).unwrap_or_default();
    let mut command = split_zero(&command).into_iter();
    // If the kernel hides it, the command line names it.
    let path = executable(pid).or(command.next())?;
    if !names::is_agent(file_name(&path)) {
        return None;
    }
    let stat = stat::of(pid)?;
    let target = Target::open(pid, stat.start_time).ok()?;
    let started = stat.start_time / clock_ticks_per_second();
    let age = lease::since_boot().as_secs().saturating_sub(started);
    let entry = Leftover {
        pid: Some(pid),
        seconds: Some(age),
        ..Leftover::new(Kind::Agent, path, sweep.users.name(target.status.uid))
    };
    // An agent of root has children with other users' rights.
    let is_child = command.next().as_deref() == Some(WORD);
    let is_mine = sweep.may(target.status.uid) || is_child && sweep.me == 0;
    let entry = match is_mine {
        false => entry.foreign(),
        true => {
            let (state, reason) = judge(lease::shown(pid));
            let stopped = if stat.is_stopped() {
                "it is stopped; "
            } else {
                ""
            };
            entry.judged(state, format!("{stopped}{reason}"))
        }
    };
    Some(Found {
        entry,
        pid,
        start_time: stat.start_time,
        executable: is_mine.then(|| executable_id(pid)).flatten(),
    })
}

/// The state of an agent, from the seconds until its lease ends.
fn judge(lease: Option<i64>) -> (State, String) {
    match lease {
        Some(ends) if ends < 0 => (State::Left, format!("its lease ended {} s ago", -ends)),
        Some(ends) => (
            State::Used,
            format!("its lease ends in {ends} s if its coordinator stays silent"),
        ),
        None => (State::Used, "its lease cannot be read".to_owned()),
    }
}

fn executable_id(pid: i32) -> Option<FileId> {
    let stat = rustix::fs::stat(format!("/proc/{pid}/exe")).ok()?;
    Some(file_id(&stat))
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
