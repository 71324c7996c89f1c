//! One process: look, make an engine ready, start, wait, stop, read, clean up.
//!
//! Each engine is tried on a thread of its own, since a thread that has taken the process's user cannot go back.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine;
use crate::engine::api::{
    Engine, EventProfile, Folded, Job, Note, Part, Prepared, Raw, Started, Stopped, Way,
};
use crate::jvm::pauses::PauseLog;
use crate::jvm::preflight::{self, Findings};
use crate::jvm::young;
use crate::os::files::hash_of;
use crate::os::proc::target::Target;
use crate::os::threads::{on_thread, unbroken};
use crate::recording::clock::{Clock, End};
use crate::recording::profile_message::{
    build_outcome, build_profile_message, cpu_seconds, left_out_note, sample_count_note,
};
use crate::resources::folding::Waiting;
use crate::wire::events::{Past, Pauses, ProfileHead, RawHead, Samples};
use crate::wire::outcome::{Code, Ended, Failure, Outcome, Stage, Status};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Start,
    /// End early and keep what was recorded.
    Stop,
    /// Nobody wants the result any more.
    Abort,
}

pub enum Report {
    /// `published` is the file of a JVM's performance data.
    Prepared { published: Option<File> },
    Started {
        engine: &'static str,
        sources: BTreeMap<String, String>,
        past: Past,
    },
    /// A part of a recording that goes on.
    Part(PartMessages),
    /// The last one.
    Over(Box<Finished>),
}

pub struct PartMessages {
    pub profiles: Vec<(ProfileHead, Waiting)>,
    pub pauses: Option<Pauses>,
}

/// Any outcome may have profiles. `left` are paths that could not be deleted.
pub struct Finished {
    pub profiles: Vec<(ProfileHead, Waiting)>,
    pub raw: Option<(RawHead, Raw)>,
    pub pauses: Option<Pauses>,
    pub outcome: Outcome,
    pub left: Vec<String>,
}

impl Finished {
    pub fn without_profiles(outcome: Outcome) -> Self {
        Self {
            profiles: Vec::new(),
            raw: None,
            pauses: None,
            outcome,
            left: Vec::new(),
        }
    }

    /// If the process has ended, that explains a failure.
    pub fn explained(mut self, pid: i32, start_time: u64) -> Self {
        if self.outcome.status == Status::Failed && Target::has_ended(pid, start_time) {
            self.outcome.ended = Some(Ended::Process);
        }
        self
    }
}

type SendReport<'a> = dyn Fn(Report) + Sync + 'a;

/// Record one process with the first engine that can be made ready. A dry run touches nothing, and its result is what a
/// recording would return.
pub fn run(job: &Job, orders: &mut Receiver<Order>, send: &SendReport) {
    let over = unbroken(|| {
        job.shared.sampling.check()?;
        let target = Target::open(job.chosen.pid, job.chosen.start_time)?;
        if !job.shared.dry_run {
            young::await_start(&target);
        }
        let asked = job
            .chosen
            .engine
            .as_ref()
            .unwrap_or(&job.shared.sampling.engine);
        let findings = preflight::look(&target);
        let ways = engine::choose(asked, &findings)?;
        // What an engine has done that failed may show, so the next one looks again.
        let mut looked = Some((target, findings));
        first(ways, |way, notes| {
            let looked = looked.take();
            on_thread(job.chosen.pid, way.engine, || {
                attempt(job, way, looked, notes, orders, send)
            })
        })
    });
    let over = over.and_then(|over| over);
    let (pid, start_time) = (job.chosen.pid, job.chosen.start_time);
    let over =
        over.unwrap_or_else(|failure| Finished::without_profiles(failure.at(pid, Stage::Prepare)));
    send(Report::Over(Box::new(over.explained(pid, start_time))));
}

/// The result of the first engine that works. It gets notes why those before it did not.
fn first(
    ways: Vec<Way>,
    mut attempt: impl FnMut(&Way, Vec<Note>) -> Result<Finished, Failure>,
) -> Result<Finished, Failure> {
    let mut refused: Vec<(&'static str, Failure)> = Vec::new();
    for way in ways {
        let notes = refused.iter().map(|(engine, failure)| {
            Note::plain(format!("not by {engine}"))
                .coded(Code::OtherEngine)
                .because(failure.clone())
        });
        match attempt(&way, notes.collect()) {
            Ok(done) => return Ok(done),
            // Two recordings of one JVM: perf's is of use only where it can follow the stacks.
            Err(failure)
                if failure.code == Code::OtherSession
                    && failure.parameters.get("frame_pointers") != Some(&1.into()) =>
            {
                return Err(failure)
            }
            Err(failure) => refused.push((way.engine, failure)),
        }
    }
    // Each different failure is named with its engine. The first is the better engine, so its remedy counts.
    let reasons = refused
        .iter()
        .map(|(engine, failure)| format!("{engine}: {}", failure.reason));
    let reasons: Vec<String> = reasons.collect();
    let mut refused = refused.into_iter().map(|(_, failure)| failure);
    let first = refused
        .next()
        .unwrap_or_else(|| Failure::plain("there is no engine"));
    let same = |other: &Failure| {
        (other.code, &other.parameters, &other.reason)
            == (first.code, &first.parameters, &first.reason)
    };
    match refused.all(|other| same(&other)) {
        true => Err(first),
        false => Err(Failure {
            reason: reasons.join("; "),
            ..first
        }),
    }
}

/// Err: the engine cannot be made ready.
fn attempt(
    job: &Job,
    way: &Way,
    looked: Option<(Target, Findings)>,
    notes: Vec<Note>,
    orders: &mut Receiver<Order>,
    send: &SendReport,
) -> Result<Finished, Failure> {
    let (target, findings) = match looked {
        Some(looked) => looked,
        None => {
            let target = Target::open(job.chosen.pid, job.chosen.start_time)?;
            let findings = preflight::look(&target);
            (target, findings)
        }
    };
    // The findings hold descriptors, of which the agent may have few.
    let prepared = (way.prepare)(job, target, Arc::new(findings))?;
    let mut engine = match prepared {
        Prepared::Ready(engine) => engine,
        Prepared::DryRun(started) => return Ok(foreseen(job, way.engine, notes, started, send)),
    };
    let pauses = engine.pauses();
    send(Report::Prepared {
        published: match &pauses {
            Some(pauses) if job.shared.sampling.metrics => pauses.published(),
            _ => None,
        },
    });
    let mut recording = Recording {
        job,
        pauses: pauses.filter(|_| job.shared.sampling.timeline),
        engine: &mut *engine,
        notes,
        ended: None,
        given: BTreeMap::new(),
    };
    let over = unbroken(|| recording.run(way.engine, orders, send));
    let over = over.unwrap_or_else(|broken| Err(broken.at(job.chosen.pid, Stage::Record)));
    let mut over = over.unwrap_or_else(Finished::without_profiles);
    over.left = engine.leave();
    Ok(over)
}

/// A dry run ends where a recording would start.
fn foreseen(
    job: &Job,
    engine: &'static str,
    mut notes: Vec<Note>,
    started: Result<Started, Failure>,
    send: &SendReport,
) -> Finished {
    let pid = job.chosen.pid;
    let (sources, outcome) = match started {
        Ok(started) => {
            notes.extend(started.notes);
            (started.sources, build_outcome(pid, notes))
        }
        Err(failure) => (BTreeMap::new(), failure.at(pid, Stage::Start)),
    };
    let past = Past::default();
    send(Report::Started {
        engine,
        sources,
        past,
    });
    Finished::without_profiles(outcome)
}

struct Recording<'a> {
    job: &'a Job,
    engine: &'a mut dyn Engine,
    pauses: Option<PauseLog>,
    notes: Vec<Note>,
    ended: Option<Ended>,
    /// Of each event the samples so far, and the CPU time of the process.
    given: BTreeMap<String, (Samples, f64)>,
}

impl Recording<'_> {
    fn run(
        &mut self,
        engine: &'static str,
        orders: &Receiver<Order>,
        send: &SendReport,
    ) -> Result<Finished, Outcome> {
        let pid = self.job.chosen.pid;
        if orders.recv() != Ok(Order::Start) {
            let early =
                Failure::plain("ended before the recording was started").coded(Code::ProcessEnded);
            return Err(early.at(pid, Stage::Start));
        }
        let started = self.engine.start();
        let started = started.map_err(|failure| failure.at(pid, Stage::Start))?;
        let began = self.engine.began().unwrap_or_else(Instant::now);
        let mut clock = Clock::start(self.engine.target(), began);
        if let Some(pauses) = &mut self.pauses {
            pauses.begin();
        }
        self.notes.extend(started.notes);
        send(Report::Started {
            engine,
            sources: started.sources,
            past: clock.past(),
        });
        let duration = self.job.duration();
        let every = self.job.shared.sampling.part.map(Duration::from_secs_f64);
        let mut due = every.map(|every| began + every);
        loop {
            match clock.wait(self.engine, duration, due, &mut self.pauses, orders) {
                End::Over => break,
                End::Part => {
                    if self.give_part(engine, &mut clock, send) {
                        due = every.map(|every| Instant::now() + every);
                    }
                }
                End::TooMuch(why) => {
                    let cut = Note::degraded(format!("ended after {:.1} s", clock.seconds))
                        .coded(Code::CutShort);
                    self.notes.insert(0, cut.because(why));
                    self.ended = Some(Ended::Cut);
                    break;
                }
                End::Unwanted => return Err(unwanted(pid)),
            }
        }
        self.result(engine, clock)
    }

    /// Send what was recorded since the last part. False: there is nothing yet, others are folded, or results wait to be
    /// received. What cannot be read now is read with the next part, or at the end, which says what is wrong with it.
    fn give_part(&mut self, engine: &'static str, clock: &mut Clock, send: &SendReport) -> bool {
        let shared = &self.job.shared;
        let Some(_one_at_a_time) = shared.folding.turn_now() else {
            return false;
        };
        let profiles = match self.engine.part() {
            Ok(Some(part)) => self.part_profiles(engine, clock, part),
            Ok(None) if self.engine.writes_parts() => return false,
            Ok(None) | Err(_) => Vec::new(),
        };
        let pauses = self.take_pauses(true).filter(|it| !it.end.is_empty());
        if pauses.is_some() || !profiles.is_empty() {
            send(Report::Part(PartMessages { profiles, pauses }));
        }
        true
    }

    fn part_profiles(
        &mut self,
        engine: &'static str,
        clock: &mut Clock,
        part: Part,
    ) -> Vec<(ProfileHead, Waiting)> {
        for note in part.folded.notes {
            self.note_once(note);
        }
        let mut clock = clock.part(part.until);
        clock.cpu_seconds += part.more_cpu_seconds;
        let profiles = self.messages(engine, &clock, part.folded.profiles, true);
        profiles.unwrap_or_else(|lost| {
            self.note_once(Note::of(lost));
            Vec::new()
        })
    }

    fn take_pauses(&mut self, more: bool) -> Option<Pauses> {
        let (pid, offset) = (self.job.chosen.pid, self.job.shared.clock_offset);
        let pauses = self.pauses.as_mut();
        pauses.map(|pauses| pauses.take(pid, offset, more))
    }

    /// Parts have the same notes again.
    fn note_once(&mut self, note: Note) {
        let about = |note: &Note| (note.code, note.parameters.get("event").cloned());
        if !self.notes.iter().any(|known| about(known) == about(&note)) {
            self.notes.push(note);
        }
    }

    fn messages(
        &mut self,
        engine: &'static str,
        clock: &Clock,
        profiles: Vec<EventProfile>,
        more: bool,
    ) -> Result<Vec<(ProfileHead, Waiting)>, Failure> {
        let attached = self.engine.attached();
        let message =
            |profile| build_profile_message(self.job, engine, clock, attached, profile, more);
        let messages: Vec<_> = profiles
            .into_iter()
            .map(message)
            .collect::<Result<_, _>>()?;
        for (head, _) in &messages {
            let (samples, cpu_seconds) = self.given.entry(head.event.clone()).or_default();
            samples.expected += head.samples.expected;
            samples.taken += head.samples.taken;
            *cpu_seconds += head.cpu_seconds;
        }
        Ok(messages)
    }

    fn result(&mut self, engine: &'static str, mut clock: Clock) -> Result<Finished, Outcome> {
        let pid = self.job.chosen.pid;
        // All are stopped at once, and folded one after the other. Until then the engine keeps the recording.
        let stopped = self.engine.stop();
        let stopped = stopped.map_err(|failure| failure.at(pid, Stage::Record))?;
        if self.engine.samples_until_stopped() {
            clock.stopped(self.engine.target());
        }
        clock.cpu_seconds += self.engine.more_cpu_seconds();
        self.engine.ask();
        self.job.shared.limits.rest();
        let turn = self.job.shared.folding.turn();
        let _one_at_a_time = turn.ok_or_else(|| unwanted(pid))?;
        self.read(engine, stopped, &clock)
            .map_err(|failure| failure.at(pid, Stage::Fetch))
    }

    fn read(
        &mut self,
        engine: &'static str,
        stopped: Stopped,
        clock: &Clock,
    ) -> Result<Finished, Failure> {
        if stopped == Stopped::WithTheProcess {
            let ended = format!("ended after {:.1} s", clock.seconds);
            self.notes
                .insert(0, Note::degraded(ended).coded(Code::CutShort));
            self.ended.get_or_insert(Ended::Process);
        }
        let Folded { profiles, notes } = self.engine.fold(stopped)?;
        for note in notes {
            self.note_once(note);
        }
        self.notes.extend(profiles.iter().filter_map(left_out_note));
        let sampled = cpu_seconds(&profiles);
        let (whole, clock) = (clock, &clock.rest());
        let times = sampled / clock.cpu_seconds;
        let clock = match stopped {
            // The CPU time after the last check is missing: all of it, if there was none yet.
            Stopped::WithTheProcess => {
                let mut clock = clock.scaled(times.max(1.0));
                clock.cpu_seconds = clock.cpu_seconds.max(sampled);
                clock
            }
            Stopped::Early if times > 0.0 => clock.scaled(times.min(1.0)),
            Stopped::OnRequest | Stopped::Early => clock.clone(),
        };
        let profiles = self.messages(engine, &clock, profiles, false)?;
        let threads = self.engine.target().status.threads;
        let several = profiles.len() > 1;
        let counts = self
            .given
            .iter()
            .filter_map(|(event, (samples, cpu_seconds))| {
                sample_count_note(event, *samples, *cpu_seconds, several, threads)
            });
        self.notes.extend(counts);
        Ok(Finished {
            raw: self.raw(),
            profiles,
            pauses: self.take_pauses(false),
            outcome: Outcome {
                ended: self.ended,
                seconds: self.ended.map(|_| whole.seconds),
                ..build_outcome(self.job.chosen.pid, std::mem::take(&mut self.notes))
            },
            left: Vec::new(),
        })
    }

    fn raw(&mut self) -> Option<(RawHead, Raw)> {
        if !self.job.shared.sampling.keep_raw {
            return None;
        }
        let with_hash = |mut raw: Raw| {
            let sha256 = hash_of(&mut raw.file, raw.size)
                .map_err(|error| Failure::plain(format!("it cannot be read: {error}")))?;
            let head = RawHead {
                pid: self.job.chosen.pid,
                name: "recording.jfr",
                sha256,
                size: raw.size,
            };
            Ok((head, raw))
        };
        match self.engine.raw().and_then(with_hash) {
            Ok(raw) => Some(raw),
            Err(failure) => {
                let left_out =
                    Note::degraded("the raw recording was left out").coded(Code::RawLeftOut);
                self.notes.push(left_out.because(failure));
                None
            }
        }
    }
}

fn unwanted(pid: i32) -> Outcome {
    Failure::plain("ended before its time")
        .coded(Code::Cancelled)
        .at(pid, Stage::Record)
}

#[cfg(test)]
mod tests;
