//! One process is recorded alone for a moment and looked at, before the others are touched.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;

use crate::engine::api::Libraries;
use crate::jvm::crashes::Crashes;
use crate::os::proc::stat::Stat;
use crate::os::proc::target::Target;
use crate::recording::group::{Audience, Recordings};
use crate::recording::process::{Over, Report};
use crate::wire::events::{Event, Watched};
use crate::wire::outcome::{Ended, Failure, Outcome, Stage, Status};
use crate::wire::requests::{Chosen, Prepare};
use crate::wire::sampling::Sampling;

/// How long it is looked at before and, where it works less since, after the recording.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How long it is recorded, in seconds.
const SECONDS: f64 = 2.0;
/// Of a process that used less than this of a processor it cannot be told whether it works less; and it does where it
/// uses less than this part of what it used.
const LITTLE: f64 = 0.2;
const COLLAPSED: f64 = 0.25;

/// A process that is recorded alone and looked at. Whoever has it tells it what it `hear`s, and has it `go_on` then and
/// at its `limit`. It went badly where the outcome is `failed` at the stage `record`; what cannot be recorded tells
/// nothing of others.
pub struct Canary {
    target: Target,
    /// It was before.
    stopped: bool,
    crashes: Crashes,
    /// How many processors it used before.
    before: Option<f64>,
    /// What it uses since it is being recorded.
    since: Option<Use>,
    heard: Heard,
    left: Vec<String>,
    /// Given up, with a thread at work beside it.
    hangs: bool,
    step: Step,
}

enum Step {
    Look(Use, Box<(Prepare, Libraries)>),
    Record(Recordings),
    LookAgain(Use, Outcome),
    Over,
}

/// What its recording has told.
#[derive(Default)]
struct Heard {
    ready: bool,
    started: bool,
    outcome: Option<Outcome>,
}

impl Audience for Heard {
    fn tell(&mut self, event: &Event) {
        self.ready |= matches!(event, Event::Ready { .. });
        self.started |= matches!(event, Event::Started { .. });
    }

    fn result(&mut self, over: Over) {
        self.outcome = Some(over.outcome);
    }
}

impl Canary {
    /// Begin to look at a process; `request` says how it is to be recorded.
    pub fn begin(chosen: &Chosen, request: Prepare, libraries: Libraries) -> Result<Self, Outcome> {
        let target = Target::open(chosen.pid, chosen.start_time)
            .map_err(|failure| failure.at(chosen.pid, Stage::Prepare))?;
        let request = Prepare {
            sampling: Sampling {
                duration: SECONDS,
                keep_raw: false,
                ..request.sampling
            },
            ..request
        };
        Ok(Self {
            stopped: target.stat().is_some_and(is_stopped),
            crashes: Crashes::of(chosen.pid, chosen.start_time),
            before: None,
            since: None,
            heard: Heard::default(),
            left: Vec::new(),
            hangs: false,
            step: Step::Look(Use::for_time(&target, LOOK), Box::new((request, libraries))),
            target,
        })
    }

    /// When it is to go on, if nothing is heard before.
    pub fn limit(&self) -> Option<Instant> {
        match &self.step {
            Step::Look(used, _) | Step::LookAgain(used, _) => Some(used.until),
            Step::Record(recordings) => recordings.limit(),
            Step::Over => None,
        }
    }

    /// By when it must be over, once it was started.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.step {
            Step::Record(recordings) => recordings.deadline(),
            _ => None,
        }
    }

    /// Take in what its recording tells.
    pub fn hear(&mut self, pid: i32, report: Report) {
        if let Step::Record(recordings) = &mut self.step {
            recordings.hear(pid, report, &mut self.heard);
        }
    }

    /// Do what is due by now; what became of it, once it is over.
    pub fn go_on<T: From<(i32, Report)> + Send + 'static>(
        &mut self,
        host: &str,
        session: &str,
        reports: &Sender<T>,
    ) -> Option<Watched> {
        if matches!(self.step, Step::Record(_)) {
            return self.record();
        }
        if self.limit()? > Instant::now() {
            return None;
        }
        match std::mem::replace(&mut self.step, Step::Over) {
            Step::Look(used, asked) => {
                self.before = used.processors(&self.target);
                let (request, libraries) = *asked;
                match Recordings::prepare(request, libraries, host, session, reports) {
                    Ok(recordings) => self.step = Step::Record(recordings),
                    Err(failure) => {
                        return Some(self.over(failure.at(self.target.pid, Stage::Prepare)))
                    }
                }
                None
            }
            Step::LookAgain(used, outcome) => {
                let now = used.processors(&self.target);
                let outcome = match has_collapsed(self.before, now) {
                    true => self.bad(slow(self.target.pid, self.before, now)),
                    false => outcome,
                };
                Some(self.over(self.judge(outcome)))
            }
            Step::Record(_) | Step::Over => None,
        }
    }

    fn record(&mut self) -> Option<Watched> {
        let Step::Record(recordings) = &mut self.step else {
            return None;
        };
        recordings.give_up(&mut self.heard);
        let mut over = recordings.advance(&mut self.heard);
        if std::mem::take(&mut self.heard.ready) && recordings.start().is_ok() {
            over = recordings.advance(&mut self.heard);
        }
        if std::mem::take(&mut self.heard.started) {
            self.since = Some(Use::for_time(&self.target, Duration::ZERO));
        }
        if !over {
            return None;
        }
        self.left = recordings.left_by_now();
        self.hangs = recordings.at_work().next().is_some();
        let during = self.since.as_ref();
        let during = during.and_then(|used| used.processors(&self.target));
        let outcome = self.heard.outcome.take()?;
        let outcome = self.judge(outcome);
        if outcome.status == Status::Failed || !has_collapsed(self.before, during) {
            return Some(self.over(outcome));
        }
        self.step = Step::LookAgain(Use::for_time(&self.target, LOOK_AGAIN), outcome);
        None
    }

    /// What its recording came to, as far as others like it are concerned.
    fn judge(&self, outcome: Outcome) -> Outcome {
        let pid = self.target.pid;
        if let Some(crash) = self.crashes.since() {
            return self.bad(format!("process {pid} wrote {crash} while it was recorded"));
        }
        match (self.target.stat(), outcome.status, outcome.stage) {
            (None, ..) => Outcome {
                ended: Some(Ended::Process),
                ..self.bad(format!("process {pid} ended while it was recorded"))
            },
            (Some(stat), ..) if is_stopped(stat) && !self.stopped => {
                self.bad(format!("process {pid} was stopped while it was recorded"))
            }
            (_, Status::Failed, Stage::Record) => self.bad(outcome.reason),
            (_, Status::Failed, _) => outcome,
            _ => Outcome {
                status: Status::Ok,
                stage: Stage::Record,
                ..outcome
            },
        }
    }

    fn bad(&self, why: String) -> Outcome {
        let remedy = "look at this process before any other like it is recorded; --no-canary records them all the same";
        Failure::new(why, remedy).at(self.target.pid, Stage::Record)
    }

    fn over(&mut self, outcome: Outcome) -> Watched {
        self.step = Step::Over;
        Watched {
            outcome,
            left: std::mem::take(&mut self.left),
        }
    }

    /// The process, if it was given up and somebody is at work beside it yet.
    pub fn hanging(&self) -> Option<i32> {
        self.hangs.then_some(self.target.pid)
    }

    /// Have it end now, as `Recordings::abandon`.
    pub fn abandon(self, next_report: impl FnMut(Instant) -> Option<(i32, Report)>) -> Vec<String> {
        match self.step {
            Step::Record(recordings) => recordings.abandon(next_report),
            _ => self.left,
        }
    }
}

/// What a process uses in some time.
struct Use {
    begin: Instant,
    until: Instant,
    first: Option<Stat>,
}

impl Use {
    fn for_time(target: &Target, time: Duration) -> Self {
        let begin = Instant::now();
        Self {
            begin,
            until: begin + time,
            first: target.stat(),
        }
    }

    /// How many processors it has used until now.
    fn processors(&self, target: &Target) -> Option<f64> {
        let ticks = target.stat()?.cpu_ticks;
        let ticks = ticks.saturating_sub(self.first?.cpu_ticks) as f64;
        let seconds = self.begin.elapsed().as_secs_f64();
        (seconds > 0.0).then(|| ticks / clock_ticks_per_second() as f64 / seconds)
    }
}

fn is_stopped(stat: Stat) -> bool {
    matches!(stat.state, 'T' | 't')
}

fn has_collapsed(before: Option<f64>, now: Option<f64>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => before >= LITTLE && now < before * COLLAPSED,
        _ => false,
    }
}

fn slow(pid: i32, before: Option<f64>, now: Option<f64>) -> String {
    let (before, now) = (before.unwrap_or(0.0), now.unwrap_or(0.0));
    format!("process {pid} used {before:.2} processors before it was recorded, and {now:.2} since")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::proc::stat;
    use std::sync::mpsc::channel;

    #[test]
    fn who_works_much_less_has_collapsed() {
        assert!(has_collapsed(Some(1.0), Some(0.2)));
        assert!(!has_collapsed(Some(1.0), Some(0.3)));
        assert!(!has_collapsed(Some(0.1), Some(0.0)));
        assert!(!has_collapsed(None, Some(0.0)) && !has_collapsed(Some(1.0), None));
    }

    fn of_this_process() -> Canary {
        let chosen = Chosen {
            pid: std::process::id() as i32,
            start_time: stat::own().unwrap().start_time,
            label: String::new(),
            labels: Default::default(),
            engine: None,
        };
        let request = Prepare {
            sampling: Sampling::of("cpu"),
            blobs: Default::default(),
            versions: Default::default(),
            limits: crate::wire::sampling::AgentLimits::default(),
            processes: vec![chosen.clone()],
        };
        Canary::begin(&chosen, request, Libraries::default())
            .ok()
            .unwrap()
    }

    #[test]
    fn what_failed_is_never_told_as_well() {
        let canary = of_this_process();
        for (status, stage, want) in [
            (Status::Ok, Stage::Record, (Status::Ok, Stage::Record)),
            (Status::Degraded, Stage::Record, (Status::Ok, Stage::Record)),
            (
                Status::Failed,
                Stage::Record,
                (Status::Failed, Stage::Record),
            ),
            (Status::Failed, Stage::Fetch, (Status::Failed, Stage::Fetch)),
            (Status::Failed, Stage::Start, (Status::Failed, Stage::Start)),
        ] {
            let outcome = Outcome {
                status,
                ..Failure::plain("why").at(7, stage)
            };
            let judged = canary.judge(outcome);
            assert_eq!((judged.status, judged.stage), want);
            assert_eq!(judged.reason, "why");
        }
    }

    #[test]
    fn who_hangs_while_it_is_recorded_went_badly_and_before_tells_nothing() {
        let (sender, _reports) = channel::<(i32, Report)>();
        for (started, want) in [(false, Stage::Prepare), (true, Stage::Record)] {
            let mut canary = of_this_process();
            canary.step = Step::Record(Recordings::hanging(canary.target.pid, started));
            let watched = canary.go_on("host", "test", &sender).unwrap();
            let outcome = watched.outcome;
            assert_eq!((outcome.status, outcome.stage), (Status::Failed, want));
            assert!(outcome.reason.contains("takes too long"), "{outcome:?}");
            assert!(watched.left[0].contains("hangs"), "{:?}", watched.left);
        }
    }

    #[test]
    fn it_is_looked_at_before_it_is_touched() {
        let (sender, _reports) = channel::<(i32, Report)>();
        let mut canary = of_this_process();
        if let Step::Look(used, _) = &mut canary.step {
            used.until += Duration::from_secs(3600);
        }
        assert!(canary.go_on("host", "test", &sender).is_none());
        assert!(matches!(canary.step, Step::Look(..)) && canary.limit() > Some(Instant::now()));
        assert!(canary.deadline().is_none() && canary.abandon(|_| None).is_empty());
    }
}
