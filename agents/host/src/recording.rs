//! One process, one thread: look, stage, start, wait, stop, read, clean up.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flamegraph::Profile;
use rustix::param::clock_ticks_per_second;

use crate::engine::async_profiler::{Choice, Folded, Plan};
use crate::files::sha256;
use crate::jvm::{Jvm, Recorded};
use crate::outcome::{Failure, Outcome, Stage, Status};
use crate::preflight;
use crate::proc::target::Target;
use crate::protocol::{Chosen, ProfileHead, Samples, Sampling};

/// How often a running recording looks at its process: to notice its end, and to know its CPU time when it has ended.
const LOOK: Duration = Duration::from_secs(1);
/// Of the samples a process should have, this share is taken for granted before a result is called degraded.
const ENOUGH: f64 = 0.8;

/// What a recording is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Start,
    /// End early and keep what was recorded.
    Stop,
    /// Nobody wants the result any more.
    Abort,
}

/// What a recording tells, each with its process.
pub enum Report {
    Prepared,
    Started {
        event: String,
    },
    /// The last one. The profile may come with any outcome; `left` are paths that could not be deleted.
    Over {
        profile: Option<(ProfileHead, Vec<u8>)>,
        outcome: Outcome,
        left: Vec<String>,
    },
}

/// The library that is loaded into JVMs.
pub struct Library {
    pub sha256: String,
    pub bytes: Vec<u8>,
}

/// What to record; the same for all processes of a session but for `chosen`.
#[derive(Clone)]
pub struct Job {
    pub chosen: Chosen,
    pub sampling: Sampling,
    pub library: Arc<Library>,
    pub session: String,
    pub host: String,
    /// Held while one process's output is read and folded.
    pub folding: Arc<Mutex<()>>,
}

/// Record one process. To be run on a thread of its own, which takes the JVM's user and sees its files.
pub fn run(job: Job, orders: &Receiver<Order>, tell: &dyn Fn(Report)) {
    let pid = job.chosen.pid;
    let (profile, outcome, left) = match prepare(&job) {
        Err(failure) => (None, failure.at(pid, Stage::Prepare), Vec::new()),
        Ok((plan, mut jvm)) => {
            tell(Report::Prepared);
            let (profile, outcome) = match record(&job, &plan, &mut jvm, orders, tell) {
                Ok((profile, outcome)) => (Some(profile), outcome),
                Err(outcome) => (None, outcome),
            };
            (profile, outcome, jvm.leave())
        }
    };
    tell(Report::Over {
        profile,
        outcome,
        left,
    });
}

fn prepare(job: &Job) -> Result<(Plan, Jvm), Failure> {
    let target = Target::open(job.chosen.pid, job.chosen.start_time)?;
    let findings = preflight::look(&target)?;
    let plan = Plan::new(&job.sampling, findings.kernel)?;
    Ok((
        plan,
        Jvm::enter(target, &findings, &job.library, &job.session)?,
    ))
}

type Recording = (ProfileHead, Vec<u8>);

fn record(
    job: &Job,
    plan: &Plan,
    jvm: &mut Jvm,
    orders: &Receiver<Order>,
    tell: &dyn Fn(Report),
) -> Result<(Recording, Outcome), Outcome> {
    let pid = job.chosen.pid;
    if orders.recv() != Ok(Order::Start) {
        return Err(Failure::plain("ended before the recording was started").at(pid, Stage::Start));
    }
    let started = jvm
        .start(plan)
        .map_err(|failure| failure.at(pid, Stage::Start))?;
    let clock = Clock::start(jvm);
    tell(Report::Started {
        event: started.choice.event.clone(),
    });
    let (clock, keep) = clock.wait(jvm, plan.duration, orders);
    if !keep {
        return Err(Failure::plain("ended before its time").at(pid, Stage::Record));
    }
    let choice = &started.choice;
    let stop = |jvm: &mut Jvm| jvm.stop(plan, choice);
    let read = |jvm: &Jvm, stopped| {
        let folded = fold(plan, choice, jvm.recorded(stopped)?);
        Ok(folded.and_then(|(folded, ended)| finish(job, plan, &started, folded, &clock, ended)))
    };
    in_turn(&job.folding, jvm, stop, read)
        .map_err(|failure: Failure| failure.at(pid, Stage::Record))?
        .map_err(|failure| failure.at(pid, Stage::Fetch))
}

/// Of JVMs that end together all are stopped at once, but what they wrote is read and folded one by one: that takes
/// memory and a processor which the applications need.
fn in_turn<J, S, T, E>(
    folding: &Mutex<()>,
    jvm: &mut J,
    stop: impl FnOnce(&mut J) -> Result<S, E>,
    fold: impl FnOnce(&J, S) -> Result<T, E>,
) -> Result<T, E> {
    let stopped = stop(jvm)?;
    let _one_at_a_time = folding.lock();
    fold(jvm, stopped)
}

/// How a recording began.
pub struct Started {
    pub choice: Choice,
    /// Why the ways tried before did not work.
    pub refused: String,
}

/// Wall-clock and CPU time of a recording.
struct Clock {
    begin: Instant,
    ticks: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Clock {
    fn start(jvm: &Jvm) -> Self {
        let ticks = jvm.target.stat().map_or(0, |stat| stat.cpu_ticks);
        Self {
            begin: Instant::now(),
            ticks,
            seconds: 0.0,
            cpu_seconds: 0.0,
        }
    }

    /// Wait until the time is over, the process has ended or an order comes; true where the result is wanted.
    fn wait(mut self, jvm: &Jvm, duration: f64, orders: &Receiver<Order>) -> (Self, bool) {
        let end = self.begin + Duration::from_secs_f64(duration);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let order = orders.recv_timeout(left.min(LOOK));
            let lives = self.look(jvm);
            match order {
                Ok(Order::Abort) | Err(RecvTimeoutError::Disconnected) => return (self, false),
                Ok(Order::Stop) => return (self, true),
                Ok(Order::Start) | Err(RecvTimeoutError::Timeout)
                    if lives && Instant::now() < end => {}
                _ => return (self, true),
            }
        }
    }

    fn look(&mut self, jvm: &Jvm) -> bool {
        let stat = jvm.target.stat();
        self.seconds = self.begin.elapsed().as_secs_f64();
        if let Some(stat) = stat {
            let ticks = stat.cpu_ticks.saturating_sub(self.ticks);
            self.cpu_seconds = ticks as f64 / clock_ticks_per_second() as f64;
        }
        stat.is_some()
    }
}

/// The profile, and whether the JVM's end had cut it short.
fn fold(plan: &Plan, choice: &Choice, recorded: Recorded) -> Result<(Folded, bool), Failure> {
    let damaged = |error| Failure::plain(format!("the profiler's output cannot be read: {error}"));
    match recorded {
        Recorded::Whole { samples, total } => Ok((
            plan.profile(choice, &samples, &total).map_err(damaged)?,
            false,
        )),
        Recorded::Ended { samples } => Ok((
            plan.profile_of_samples(choice, &samples).map_err(damaged)?,
            true,
        )),
    }
}

fn finish(
    job: &Job,
    plan: &Plan,
    started: &Started,
    folded: Folded,
    clock: &Clock,
    ended: bool,
) -> Result<(Recording, Outcome), Failure> {
    let pid = job.chosen.pid;
    let bytes = pprof(job, folded.profile)?;
    // Of a process that has ended the CPU time is only known up to the last look.
    let cpu_seconds = if ended {
        clock.cpu_seconds.max(folded.cpu_seconds)
    } else {
        clock.cpu_seconds
    };
    let (expected, taken) = (plan.expected(&started.choice, cpu_seconds), folded.taken);
    let head = ProfileHead {
        pid,
        event: started.choice.event.clone(),
        seconds: clock.seconds,
        cpu_seconds,
        samples: Samples {
            expected,
            taken,
            lost: expected.saturating_sub(taken),
        },
        sha256: sha256(&bytes),
        size: bytes.len(),
    };
    let outcome = judge(pid, started, &head, ended);
    Ok(((head, bytes), outcome))
}

/// The profile with its labels, gzipped. What the selector derived cannot take the place of what is known for sure.
fn pprof(job: &Job, mut profile: Profile) -> Result<Vec<u8>, Failure> {
    for (name, value) in &job.chosen.labels {
        profile.set_label(name, value);
    }
    profile.set_label("host", &job.host);
    profile.set_label("pid", job.chosen.pid.to_string());
    profile.set_label("process", &job.chosen.label);
    let mut bytes = Vec::new();
    match profile.write_pprof(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Failure::plain(format!(
            "the profile cannot be written: {error}"
        ))),
    }
}

/// Whether a result is as good as was asked for.
fn judge(pid: i32, started: &Started, head: &ProfileHead, ended: bool) -> Outcome {
    let mut reasons = Vec::new();
    let mut degraded = ended || started.choice.degraded;
    let Samples {
        expected, taken, ..
    } = head.samples;
    if ended {
        reasons.push(format!("ended after {:.1} s", head.seconds));
    }
    if !started.choice.note.is_empty() {
        reasons.push(started.choice.note.to_owned());
    }
    if started.choice.degraded && !started.refused.is_empty() {
        reasons.push(started.refused.clone());
    }
    if expected >= 20 && (taken as f64) < expected as f64 * ENOUGH {
        degraded = true;
        reasons.push(format!("took {taken} of {expected} samples"));
    } else if taken == 0 {
        reasons.push(format!(
            "no samples: the process used {:.2} s of CPU time",
            head.cpu_seconds
        ));
    }
    let status = if degraded {
        Status::Degraded
    } else {
        Status::Ok
    };
    Outcome {
        pid: Some(pid),
        status,
        stage: Stage::Record,
        reason: reasons.join("; "),
        remedy: String::new(),
    }
}

/// A sender that tags each report with its process.
pub fn tagged<T: From<(i32, Report)>>(pid: i32, sender: Sender<T>) -> impl Fn(Report) {
    move |report| {
        // The session may be over; then nobody needs to know.
        let _ = sender.send((pid, report).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn all_are_stopped_together_and_folded_one_by_one() {
        const JVMS: usize = 4;
        let (folding, stops) = (Mutex::new(()), Barrier::new(JVMS));
        let (folds, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let jvm = || {
            // Would wait for ever if one could only be stopped after another was folded.
            let stop = |_: &mut ()| Ok::<_, ()>(stops.wait());
            let fold = |_: &(), _| {
                most.fetch_max(folds.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                folds.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            };
            in_turn(&folding, &mut (), stop, fold).unwrap();
        };
        thread::scope(|scope| (0..JVMS).for_each(|_| drop(scope.spawn(jvm))));
        assert_eq!(most.into_inner(), 1);
    }
}
