//! The recordings of a session: their common time, and the order in which they are reported.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::api::{Job, Libraries, Shared};
use crate::metrics::MetricsLog;
use crate::recording::member::{Member, Phase};
use crate::recording::process::{Finished, Order, PartMessages, Report};
use crate::recording::span::Span;
use crate::wire::events::{Event, Pid};
use crate::wire::outcome::{Code, Failure, Outcome, Stage};
use crate::wire::requests::{Chosen, Prepare};

/// How long recordings may take to end when nobody waits for their results.
pub const FAREWELL: Duration = Duration::from_secs(30);
/// How long a step may take beyond the recorded time. Recordings have shorter limits of their own; this one is for
/// those that hang where no limit can be set, as on a file system of the JVM. The coordinator gives a host half a
/// minute.
const STEP_TIME: Duration = Duration::from_secs(26);
/// The same from one result to the next, after the recorded time: ending perf takes at most 16 s, asking the JVM 12 s,
/// and the agent may rest. The coordinator waits a minute.
const END_TIME: Duration = Duration::from_secs(55);
/// The metrics of a long recording are sent in parts that are so many times longer: their names take more room than
/// their numbers.
const METRICS_PARTS: f64 = 6.0;

/// How far all of them are. The coordinator is informed when a step is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Prepare,
    Wait,
    Start,
    Record,
}

pub trait EventSink {
    fn send_event(&mut self, event: &Event);

    fn send_part(&mut self, part: PartMessages);

    fn send_result(&mut self, over: Finished);
}

type SendReport = Arc<dyn Fn(i32, Report) + Send + Sync>;

/// The recordings of one `prepare` and of what joined them, until `done`.
pub struct Recordings {
    members: Vec<Member>,
    step: Step,
    span: Span,
    /// Whether the coordinator requested the start.
    started: bool,
    shared: Arc<Shared>,
    send: SendReport,
    /// Results from before the coordinator was informed that all have started.
    early: Vec<Finished>,
    early_parts: Vec<PartMessages>,
    left: Vec<String>,
    metrics: Option<MetricsLog>,
    /// When a part of them is sent next. None: all are sent at the end.
    metrics_due: Option<Instant>,
}

impl Recordings {
    /// Start to prepare, each process on its own thread. `send` gets the reports of each pid.
    pub fn prepare(
        request: Prepare,
        libraries: Libraries,
        host: &str,
        session: &str,
        send: impl Fn(i32, Report) + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        request.check()?;
        let shared = Arc::new(Shared::of(&request, libraries, host, session, false));
        let mut recordings = Self {
            members: Vec::new(),
            step: Step::Prepare,
            span: Span::new(shared.sampling.duration),
            started: false,
            shared,
            send: Arc::new(send),
            early: Vec::new(),
            early_parts: Vec::new(),
            left: Vec::new(),
            metrics: None,
            metrics_due: None,
        };
        recordings.launch(request.processes, None);
        Ok(recordings)
    }

    /// With an `end` they join what runs until then. A pid that was recorded already is left out.
    fn launch(&mut self, chosen: Vec<Chosen>, end: Option<Instant>) {
        let mut known: HashSet<i32> = self.members.iter().map(|member| member.pid).collect();
        let new = chosen.into_iter().filter(|one| known.insert(one.pid));
        let new: Vec<Chosen> = new.collect();
        self.shared.expect(new.iter().map(|one| one.pid));
        let limit = Instant::now() + STEP_TIME + self.queue();
        for chosen in new {
            let shared = self.shared.clone();
            let send = self.send.clone();
            let job = Job {
                chosen,
                shared,
                end,
            };
            let send = move |pid, report| send(pid, report);
            let member = Member::launch(job, limit, end.is_some(), send);
            self.members.push(member);
        }
    }

    /// Err: the coordinator requests it at the wrong time.
    pub fn start(&mut self) -> Result<(), Failure> {
        if self.step != Step::Wait {
            return Err(Failure::plain("start came before ready, or twice").coded(Code::BadRequest));
        }
        self.started = true;
        self.step = Step::Start;
        let limit = Instant::now() + STEP_TIME + self.queue();
        let ready = self.members.iter_mut();
        for member in ready.filter(|member| member.phase == Phase::Ready) {
            member.start(limit);
        }
        Ok(())
    }

    /// From now on others may join until the end of the time.
    pub fn follow(&mut self) {
        self.span.followed = true;
    }

    /// Whether others may join.
    pub fn is_open(&self) -> bool {
        self.span.is_open()
    }

    /// End all early and keep their results. Those that were not started have none.
    pub fn stop(&mut self) {
        self.span.stop();
        self.shared.attaches.end();
        let time = match self.step {
            Step::Record => END_TIME,
            _ => STEP_TIME,
        };
        let limit = Instant::now() + time + self.queue();
        for member in self.members.iter_mut().filter(|member| !member.is_over()) {
            member.order(Order::Stop);
            if self.step == Step::Record || member.phase != Phase::Running {
                member.limit = Some(limit);
            }
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.stop();
        }
        if matches!(self.step, Step::Prepare | Step::Wait) {
            self.step = Step::Start;
        }
    }

    pub fn is_started(&self) -> bool {
        self.started
    }

    /// How long processes have been sampled, in seconds. None: sampling is over.
    pub fn sampling(&self) -> Option<f64> {
        let some = self.span.followed || self.any(Phase::Running) || self.any(Phase::Starting);
        let samples = some && self.started && !self.span.is_over();
        samples.then(|| self.span.elapsed().as_secs_f64())
    }

    /// When something has to be given up, or the time is over.
    pub fn limit(&self) -> Option<Instant> {
        let waits = self.span.followed && !self.span.is_over();
        let end = self.span.end().filter(|_| waits);
        self.members
            .iter()
            .filter_map(|member| member.limit)
            .chain(end)
            .chain(self.metrics_due)
            .min()
    }

    /// Give up those whose step has taken too long, so that one process does not hold up the others.
    pub fn give_up(&mut self, sink: &mut impl EventSink) {
        if let Some(until) = self.shared.folding.held_up() {
            self.give_time(until);
        }
        let now = Instant::now();
        for member in &mut self.members {
            let runs = member.phase == Phase::Running;
            if let Some(over) = member.give_up(now) {
                if runs {
                    self.shared.folding.end(); // for all that are left
                }
                self.shared.forget(member.pid);
                sink.send_result(over);
            }
        }
    }

    /// Those that are folded one after the other have time from one result to the next.
    fn give_time(&mut self, from: Instant) {
        let until = from + self.shared.limits.stretch(END_TIME);
        let stopped = self.span.is_stopped();
        if self.step == Step::Record {
            for limit in self.members.iter_mut().filter_map(|member| {
                let runs = member.phase == Phase::Running;
                member.limit.as_mut().filter(|_| runs || stopped)
            }) {
                *limit = until.max(*limit);
            }
        }
    }

    /// When what is recorded now has to be over.
    fn last_limit(&self) -> Instant {
        let end = Instant::now() + self.span.left() + self.queue();
        end + self.shared.limits.stretch(END_TIME)
    }

    /// How long recordings may have to wait for a turn at attaching.
    fn queue(&self) -> Duration {
        let waiting = self.members.iter().filter(|member| !member.is_over());
        self.shared.attaches.patience(waiting.count())
    }

    pub fn handle_report(&mut self, pid: i32, report: Report, sink: &mut impl EventSink) {
        let (limit, last_limit) = (Instant::now() + STEP_TIME + self.queue(), self.last_limit());
        let mut members = self.members.iter_mut();
        let Some(member) = members.find(|member| member.pid == pid) else {
            return;
        };
        // Its outcome was sent already.
        let given_up = member.is_over();
        match report {
            Report::Prepared { .. } | Report::Started { .. } if given_up => {}
            Report::Prepared { published } => member.ready(published, limit),
            Report::Started {
                engine,
                sources,
                past,
            } => {
                member.phase = Phase::Running;
                member.limit = (self.step == Step::Record).then_some(last_limit);
                if let Some(metrics) = &self.metrics {
                    metrics.add(member.measured());
                }
                sink.send_event(&Event::Started {
                    pid,
                    engine,
                    sources,
                    past,
                });
            }
            Report::Part(_) if given_up => {}
            Report::Part(part) if self.step == Step::Start => self.early_parts.push(part),
            Report::Part(part) => sink.send_part(part),
            Report::Over(mut over) => {
                // Results wait until all processes have started.
                let early = member.phase == Phase::Running && self.step == Step::Start;
                member.over();
                member.ended = true;
                self.shared.forget(pid);
                self.left.append(&mut over.left);
                match early {
                    _ if given_up => {}
                    true => self.early.push(*over),
                    false => sink.send_result(*over),
                }
                // The others wait for their turns to be folded and sent.
                self.give_time(Instant::now());
            }
        }
    }

    /// Report the steps that are complete. True: all is done.
    pub fn advance(&mut self, sink: &mut impl EventSink) -> bool {
        if self.step == Step::Prepare && !self.any(Phase::Preparing) {
            self.step = Step::Wait;
            let ready = self.those(Phase::Ready);
            sink.send_event(&Event::Ready {
                processes: ready.map(|member| Pid { pid: member.pid }).collect(),
            });
        }
        if self.step == Step::Start && !self.any(Phase::Starting) {
            self.begin(sink);
        }
        let over = self.step == Step::Record
            && self.members.iter().all(Member::is_over)
            && (!self.span.followed || self.span.is_over());
        if let Some(metrics) = self.metrics.take_if(|_| over) {
            let (metrics, notes) = metrics.finish();
            if !notes.is_empty() {
                sink.send_event(&Event::Outcome(Outcome::of_host(notes, Stage::Record)));
            }
            if let Some(metrics) = metrics {
                sink.send_event(&Event::Metrics(metrics));
            }
        }
        self.give_metrics(sink);
        over
    }

    /// Send what was read since the last part, if it is time.
    fn give_metrics(&mut self, sink: &mut impl EventSink) {
        let Some(metrics) = &self.metrics else {
            self.metrics_due = None;
            return;
        };
        if self.metrics_due.is_some_and(|due| due <= Instant::now()) {
            self.metrics_due = self.next_metrics();
            let part = metrics.part();
            if !part.time.is_empty() {
                sink.send_event(&Event::Metrics(part));
            }
        }
    }

    /// All have started: the time begins.
    fn begin(&mut self, sink: &mut impl EventSink) {
        self.step = Step::Record;
        self.span.begin();
        let limit = self.last_limit();
        for member in self.members.iter_mut().filter(|member| !member.is_over()) {
            member.limit = Some(limit);
        }
        self.measure();
        let running = self.those(Phase::Running).count();
        sink.send_event(&Event::Recording {
            processes: running + self.early.len(),
        });
        for part in self.early_parts.drain(..) {
            sink.send_part(part);
        }
        for result in self.early.drain(..) {
            sink.send_result(result);
        }
    }

    /// Begin to read what the host and the recorded processes do.
    fn measure(&mut self) {
        let sampling = &self.shared.sampling;
        if self.span.is_stopped() || !sampling.metrics {
            return;
        }
        let members = self.members.iter_mut();
        let running = members.filter(|member| member.phase == Phase::Running);
        self.metrics = Some(MetricsLog::begin(
            running.map(Member::measured).collect(),
            sampling.counters.clone(),
            self.span.left(),
            self.shared.clock_offset,
        ));
        self.metrics_due = self.next_metrics();
    }

    fn next_metrics(&self) -> Option<Instant> {
        let part = self.shared.sampling.part?;
        Some(Instant::now() + Duration::from_secs_f64(METRICS_PARTS * part))
    }

    fn those(&self, phase: Phase) -> impl Iterator<Item = &Member> {
        let members = self.members.iter();
        members.filter(move |member| member.phase == phase)
    }

    fn any(&self, phase: Phase) -> bool {
        self.those(phase).next().is_some()
    }

    /// End all now, and wait a limited time for that. `next_report` waits for the next report until an instant. Returns
    /// what could not be deleted or ended.
    pub fn abandon(
        mut self,
        mut next_report: impl FnMut(Instant) -> Option<(i32, Report)>,
    ) -> Vec<String> {
        self.members
            .iter()
            .for_each(|member| member.order(Order::Abort));
        self.shared.folding.end();
        self.shared.attaches.end();
        let until = Instant::now() + FAREWELL;
        while self.members.iter().any(|member| !member.ended) {
            match next_report(until) {
                Some((pid, Report::Over(mut over))) => {
                    self.left.append(&mut over.left);
                    self.members.retain(|member| member.pid != pid);
                }
                Some(_) => {}
                None => break,
            }
        }
        self.left_by_now()
    }

    pub fn left_by_now(&self) -> Vec<String> {
        let hang = self.members.iter().filter(|member| !member.ended);
        let hang = hang.map(|it| format!("the files beside process {}, which hangs", it.pid));
        self.left.iter().cloned().chain(hang).collect()
    }
}

mod joining;
#[cfg(test)]
mod tests;

pub use joining::refuse_late;
