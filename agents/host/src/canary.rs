//! One process is recorded alone for a moment and looked at, before the others are touched.

use std::path::Path;
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;

use crate::engine::Shared;
use crate::folding::Folding;
use crate::outcome::{Failure, Outcome, Stage, Status};
use crate::proc::stat::Stat;
use crate::proc::target::Target;
use crate::protocol::{Chosen, Prepare};
use crate::recording::{self, Job, Libraries, Order, Over, Report};
use crate::sampling::Sampling;
use crate::threads::{hangs, no_thread, STACK};

/// How long it is looked at before and, where it works less since, after the recording.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How long it is recorded, in seconds, and all of it may take.
const SECONDS: f64 = 2.0;
const ALL: Duration = Duration::from_secs(18);
/// Of a process that used less than this of a processor it cannot be told whether it works less; and it does where it
/// uses less than this part of what it used.
const LITTLE: f64 = 0.2;
const COLLAPSED: f64 = 0.25;

/// Record one process and look at it. It went badly where the outcome is `failed` at the stage `record`; what cannot be
/// recorded tells nothing of others.
pub fn watch(
    mut request: Prepare,
    libraries: Libraries,
    host: &str,
    session: &str,
) -> Result<Outcome, Failure> {
    let (Some(chosen), true) = (request.processes.pop(), request.processes.is_empty()) else {
        return Err(Failure::plain("a canary is one process"));
    };
    let watched = Watched::open(&chosen);
    let pid = chosen.pid;
    let job = Job {
        chosen,
        sampling: Sampling {
            duration: SECONDS,
            keep_raw: false,
            ..request.sampling
        },
        libraries,
        session: session.to_owned(),
        host: host.to_owned(),
        folding: Arc::new(Folding::new(ALL)),
        shared: Arc::new(Shared::of_host()),
    };
    Ok(watched.map_or_else(
        |failure| failure.at(pid, Stage::Prepare),
        |watched| watched.watch(job),
    ))
}

struct Watched {
    target: Target,
    /// It was before.
    stopped: bool,
    crashes: Vec<String>,
}

impl Watched {
    fn open(chosen: &Chosen) -> Result<Self, Failure> {
        let target = Target::open(chosen.pid, chosen.start_time)?;
        let name = format!("hs_err_pid{}.log", target.status.namespace_pid);
        let folders = ["cwd", "root/tmp"].map(|folder| format!("/proc/{}/{folder}", chosen.pid));
        let crashes = folders.map(|folder| format!("{folder}/{name}"));
        Ok(Self {
            crashes: crashes.into_iter().filter(|path| !is_there(path)).collect(),
            stopped: target.stat().is_some_and(is_stopped),
            target,
        })
    }

    fn watch(&self, job: Job) -> Outcome {
        let pid = job.chosen.pid;
        let before = self.used(LOOK);
        let (orders, to_follow) = channel();
        let (tell, told) = channel();
        let hear = move |report| {
            if matches!(report, Report::Prepared) {
                let _ = orders.send(Order::Start);
            }
            // Nobody may wait any more.
            let _ = tell.send(report);
        };
        let run = move || {
            let mut to_follow = to_follow;
            recording::run(&job, &mut to_follow, &hear);
        };
        let thread = thread::Builder::new().stack_size(STACK).spawn(run);
        if let Err(error) = thread {
            return no_thread(pid, &error).at(pid, Stage::Prepare);
        }
        self.judge(before, self.hear(&told))
    }

    /// How it went, and what the process used from its start on.
    fn hear(&self, told: &Receiver<Report>) -> Option<(Over, Option<f64>)> {
        let end = Instant::now() + ALL;
        let mut began = None;
        loop {
            match told.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Report::Started { .. }) => began = Some((Instant::now(), self.target.stat())),
                Ok(Report::Prepared) => {}
                Ok(Report::Over(over)) => {
                    let used = began.and_then(|(at, stat)| used(at, stat?, self.target.stat()?));
                    return Some((over, used));
                }
                Err(_) => return None,
            }
        }
    }

    fn judge(&self, before: Option<f64>, heard: Option<(Over, Option<f64>)>) -> Outcome {
        let pid = self.target.pid;
        let bad = |why: String| {
            let remedy = "look at this process before any other like it is recorded; --no-canary records them all the same";
            Failure::new(why, remedy).at(pid, Stage::Record)
        };
        if let Some(crash) = self.crashes.iter().find(|path| is_there(path)) {
            return bad(format!("process {pid} wrote {crash} while it was recorded"));
        }
        let Some((over, during)) = heard else {
            return bad(hangs(pid).reason);
        };
        match self.target.stat() {
            None => return bad(format!("process {pid} ended while it was recorded")),
            Some(stat) if is_stopped(stat) && !self.stopped => {
                return bad(format!("process {pid} was stopped while it was recorded"))
            }
            Some(_) => {}
        }
        let unrecorded = matches!(over.outcome.stage, Stage::Prepare | Stage::Start);
        if over.outcome.status == Status::Failed && unrecorded {
            return over.outcome;
        }
        if has_collapsed(before, during) && has_collapsed(before, self.used(LOOK_AGAIN)) {
            let (before, during) = (before.unwrap_or(0.0), during.unwrap_or(0.0));
            return bad(format!(
                "process {pid} used {before:.2} processors before it was recorded, and {during:.2} since"
            ));
        }
        Outcome {
            status: Status::Ok,
            stage: Stage::Record,
            ..over.outcome
        }
    }

    /// How many processors it uses.
    fn used(&self, time: Duration) -> Option<f64> {
        let (begin, first) = (Instant::now(), self.target.stat()?);
        thread::sleep(time);
        used(begin, first, self.target.stat()?)
    }
}

fn is_stopped(stat: Stat) -> bool {
    matches!(stat.state, 'T' | 't')
}

fn is_there(path: impl AsRef<Path>) -> bool {
    path.as_ref().symlink_metadata().is_ok()
}

fn used(begin: Instant, first: Stat, now: Stat) -> Option<f64> {
    let ticks = now.cpu_ticks.saturating_sub(first.cpu_ticks) as f64;
    let seconds = begin.elapsed().as_secs_f64();
    (seconds > 0.0).then(|| ticks / clock_ticks_per_second() as f64 / seconds)
}

fn has_collapsed(before: Option<f64>, now: Option<f64>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => before >= LITTLE && now < before * COLLAPSED,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_much_less_has_collapsed() {
        assert!(has_collapsed(Some(1.0), Some(0.2)));
        assert!(!has_collapsed(Some(1.0), Some(0.3)));
        assert!(!has_collapsed(Some(0.1), Some(0.0)));
        assert!(!has_collapsed(None, Some(0.0)) && !has_collapsed(Some(1.0), None));
    }
}
