//! The recordings of a session, and the order in which they are reported.

use std::collections::HashSet;
use std::fs::File;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::api::{Job, Libraries, Shared};
use crate::metrics::{Chosen, MetricsLog};
use crate::os::threads::{self, STACK};
use crate::recording::process::{self, Finished, Order, Report};
use crate::wire::events::{Event, Pid};
use crate::wire::outcome::{Code, Failure, Outcome, Stage};
use crate::wire::requests::Prepare;

/// How long recordings may take to end when nobody waits for their results.
pub const FAREWELL: Duration = Duration::from_secs(30);
/// How long a step may take beyond the recorded time. Recordings have shorter limits of their own; this one is for
/// those that hang where no limit can be set, as on a file system of the JVM. The coordinator gives a host half a
/// minute.
const STEP_TIME: Duration = Duration::from_secs(26);
/// The same from one result to the next, after the recorded time: ending perf takes at most 16 s, asking the JVM 12 s,
/// and the agent may rest. The coordinator waits a minute.
const END_TIME: Duration = Duration::from_secs(55);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preparing,
    Ready,
    Starting,
    Running,
    Over,
}

/// How far all of them are. The coordinator is informed when a step is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Prepare,
    Wait,
    Start,
    Record,
}

struct Recording {
    pid: i32,
    start_time: u64,
    phase: Phase,
    orders: Sender<Order>,
    ended: bool,
    /// The file of a JVM's performance data.
    published: Option<File>,
}

pub trait EventSink {
    fn send_event(&mut self, event: &Event);

    fn send_result(&mut self, over: Finished);
}

/// The recordings of one `prepare`, until `done`.
pub struct Recordings {
    all: Vec<Recording>,
    step: Step,
    duration: Duration,
    /// When the step ends at the latest.
    limit: Instant,
    /// Whether the coordinator requested the start, and an early end.
    started: bool,
    stopped: bool,
    begun: Option<Instant>,
    shared: Arc<Shared>,
    /// Results from before the coordinator was informed that all have started.
    early: Vec<Finished>,
    left: Vec<String>,
    metrics: Option<MetricsLog>,
}

impl Recordings {
    /// Start to prepare, each process on its own thread. `send` gets the reports of each pid.
    pub fn prepare(
        request: Prepare,
        libraries: Libraries,
        host: &str,
        session: &str,
        send: impl Fn(i32, Report) + Clone + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        request.check()?;
        let shared = Arc::new(Shared::of(&request, libraries, host, session, false));
        let mut pids = HashSet::new();
        let chosen = request.processes.into_iter();
        let jobs = chosen
            .filter(|chosen| pids.insert(chosen.pid))
            .map(|chosen| Job {
                chosen,
                shared: shared.clone(),
            });
        let all: Vec<_> = jobs.map(|job| launch(job, send.clone())).collect();
        Ok(Self {
            step: Step::Prepare,
            duration: Duration::from_secs_f64(shared.sampling.duration.clamp(0.0, 86_400.0)),
            limit: Instant::now() + STEP_TIME + shared.attaches.patience(all.len()),
            started: false,
            stopped: false,
            begun: None,
            all,
            shared,
            early: Vec::new(),
            left: Vec::new(),
            metrics: None,
        })
    }

    /// Err: the coordinator requests it at the wrong time.
    pub fn start(&mut self) -> Result<(), Failure> {
        if self.step != Step::Wait {
            return Err(Failure::plain("start came before ready, or twice").coded(Code::BadRequest));
        }
        self.started = true;
        self.step = Step::Start;
        self.limit = Instant::now() + STEP_TIME + self.queue();
        for recording in self
            .all
            .iter_mut()
            .filter(|recording| recording.phase == Phase::Ready)
        {
            recording.phase = Phase::Starting;
            let _ = recording.orders.send(Order::Start);
        }
        Ok(())
    }

    /// End all early and keep their results. Those that were not started have none.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.order(Order::Stop);
        if let Some(metrics) = &mut self.metrics {
            metrics.stop();
        }
        self.shared.attaches.end();
        let time = match self.step {
            Step::Record => END_TIME,
            _ => STEP_TIME,
        };
        self.limit = Instant::now() + time + self.queue();
        if matches!(self.step, Step::Prepare | Step::Wait) {
            self.step = Step::Start;
        }
    }

    fn order(&self, order: Order) {
        for recording in &self.all {
            // A recording that has ended takes no orders.
            let _ = recording.orders.send(order);
        }
    }

    pub fn is_started(&self) -> bool {
        self.started
    }

    /// How long processes have been sampled, in seconds. None: sampling is over.
    pub fn sampling(&self) -> Option<f64> {
        if self.stopped || !self.is_started() {
            return None;
        }
        let so_far = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let some = self.any(Phase::Running) || self.any(Phase::Starting);
        (some && so_far < self.duration).then_some(so_far.as_secs_f64())
    }

    pub fn limit(&self) -> Option<Instant> {
        (self.step != Step::Wait).then_some(self.limit)
    }

    /// Give up what the step has waited for too long, so that one process does not hold up the others.
    pub fn give_up(&mut self, sink: &mut impl EventSink) {
        if let (Step::Record, Some(until)) = (self.step, self.shared.folding.held_up()) {
            self.give_time(until);
        }
        if self.limit > Instant::now() {
            return;
        }
        if self.step == Step::Record {
            self.shared.folding.end(); // for all that are left
        }
        for recording in &mut self.all {
            // A session that is stopped early enters its last step with recordings that are not ready yet.
            let last = self.step == Step::Record;
            let stage = match recording.phase {
                Phase::Preparing if last || self.step == Step::Prepare => Stage::Prepare,
                Phase::Starting if last || self.step == Step::Start => Stage::Start,
                Phase::Ready if last => Stage::Start,
                Phase::Running if last => Stage::Record,
                _ => continue,
            };
            recording.phase = Phase::Over;
            let _ = recording.orders.send(Order::Abort);
            let hangs = threads::hangs(recording.pid);
            let over = Finished::without_profiles(hangs.at(recording.pid, stage));
            sink.send_result(over.explained(recording.pid, recording.start_time));
        }
    }

    /// Extend the limit of the last step.
    fn give_time(&mut self, from: Instant) {
        let end = from + self.shared.limits.stretch(END_TIME);
        self.limit = self.limit.max(end);
    }

    /// How long recordings may have to wait for a turn at attaching.
    fn queue(&self) -> Duration {
        self.shared.attaches.patience(self.all.len())
    }

    pub fn handle_report(&mut self, pid: i32, report: Report, sink: &mut impl EventSink) {
        let Some(recording) = self.all.iter_mut().find(|recording| recording.pid == pid) else {
            return;
        };
        // Its outcome was sent already.
        let given_up = recording.phase == Phase::Over;
        match report {
            Report::Prepared { .. } | Report::Started { .. } if given_up => {}
            Report::Prepared { published } => {
                recording.phase = Phase::Ready;
                recording.published = published;
            }
            Report::Started { engine, sources } => {
                recording.phase = Phase::Running;
                sink.send_event(&Event::Started {
                    pid,
                    engine,
                    sources,
                });
            }
            Report::Over(mut over) => {
                // Results wait until all processes have started.
                let early = recording.phase == Phase::Running && self.step == Step::Start;
                recording.phase = Phase::Over;
                recording.ended = true;
                self.left.append(&mut over.left);
                match early {
                    _ if given_up => {}
                    true => self.early.push(*over),
                    false => sink.send_result(*over),
                }
                if self.step == Step::Record {
                    // The others wait for their turns to be folded and sent.
                    self.give_time(Instant::now());
                }
            }
        }
    }

    /// Report the steps that are complete. True: all is done.
    pub fn advance(&mut self, sink: &mut impl EventSink) -> bool {
        if self.step == Step::Prepare && !self.any(Phase::Preparing) {
            self.step = Step::Wait;
            let ready = self.those(Phase::Ready);
            sink.send_event(&Event::Ready {
                processes: ready.map(|recording| Pid { pid: recording.pid }).collect(),
            });
        }
        if self.step == Step::Start && !self.any(Phase::Starting) {
            self.step = Step::Record;
            self.begun = Some(Instant::now());
            let after = match self.stopped {
                true => Duration::ZERO,
                false => self.duration,
            };
            self.give_time(Instant::now() + after + self.queue());
            self.measure();
            let running = self.those(Phase::Running).count();
            sink.send_event(&Event::Recording {
                processes: running + self.early.len(),
            });
            for result in self.early.drain(..) {
                sink.send_result(result);
            }
        }
        let over = self.step == Step::Record && self.all_over();
        if let Some(metrics) = self.metrics.take_if(|_| over) {
            let (metrics, notes) = metrics.finish();
            if !notes.is_empty() {
                sink.send_event(&Event::Outcome(Outcome::of_host(notes, Stage::Record)));
            }
            if let Some(metrics) = metrics {
                sink.send_event(&Event::Metrics(metrics));
            }
        }
        over
    }

    /// Begin to read what the host and the recorded processes do.
    fn measure(&mut self) {
        let sampling = &self.shared.sampling;
        if self.stopped || !sampling.metrics {
            return;
        }
        let running = self
            .all
            .iter_mut()
            .filter(|one| one.phase == Phase::Running);
        let chosen = running.map(|one| Chosen {
            pid: one.pid,
            start_time: one.start_time,
            published: one.published.take(),
        });
        self.metrics = Some(MetricsLog::begin(
            chosen.collect(),
            sampling.counters.clone(),
            self.duration,
            self.shared.clock_offset,
        ));
    }

    fn those(&self, phase: Phase) -> impl Iterator<Item = &Recording> {
        let all = self.all.iter();
        all.filter(move |recording| recording.phase == phase)
    }

    fn any(&self, phase: Phase) -> bool {
        self.those(phase).next().is_some()
    }

    fn all_over(&self) -> bool {
        self.those(Phase::Over).count() == self.all.len()
    }

    /// End all now, and wait a limited time for that. `next_report` waits for the next report until an instant. Returns
    /// what could not be deleted or ended.
    pub fn abandon(
        mut self,
        mut next_report: impl FnMut(Instant) -> Option<(i32, Report)>,
    ) -> Vec<String> {
        self.order(Order::Abort);
        self.shared.folding.end();
        self.shared.attaches.end();
        let until = Instant::now() + FAREWELL;
        while self.all.iter().any(|recording| !recording.ended) {
            match next_report(until) {
                Some((pid, Report::Over(mut over))) => {
                    self.left.append(&mut over.left);
                    self.all.retain(|recording| recording.pid != pid);
                }
                Some(_) => {}
                None => break,
            }
        }
        self.left_by_now()
    }

    pub fn left_by_now(&self) -> Vec<String> {
        let hang = self.all.iter().filter(|recording| !recording.ended);
        let hang = hang.map(|it| format!("the files beside process {}, which hangs", it.pid));
        self.left.iter().cloned().chain(hang).collect()
    }
}

fn launch(job: Job, send: impl Fn(i32, Report) + Clone + Send + Sync + 'static) -> Recording {
    let (orders, mut to_follow) = channel();
    let (pid, start_time) = (job.chosen.pid, job.chosen.start_time);
    let send = move |report| send(pid, report);
    let send_from_thread = send.clone();
    let thread = thread::Builder::new()
        .name(format!("process {pid}"))
        .stack_size(STACK);
    let run = move || process::run(&job, &mut to_follow, &send_from_thread);
    if let Err(error) = thread.spawn(run) {
        let outcome = threads::no_thread(pid, &error).at(pid, Stage::Prepare);
        send(Report::Over(Box::new(Finished::without_profiles(outcome))));
    }
    Recording {
        pid,
        start_time,
        phase: Phase::Preparing,
        orders,
        ended: false,
        published: None,
    }
}

#[cfg(test)]
mod tests;
