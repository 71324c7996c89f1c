//! async-profiler: a library that is loaded into the JVM by attach, and writes one JFR recording of all events.

pub mod commands;
pub mod jvm;

pub mod able;
pub mod budget;
mod events;
pub mod foresee;
mod loading;
mod pieces;
mod place;
pub mod plan;
mod rate;
pub mod results;

use std::time::{Duration, Instant};

pub use self::foresee::foresee;

use self::foresee::is_sampled;
use self::jvm::Jvm;
use self::plan::{Choice, Intervals, Plan};
use self::rate::Rate;
use crate::engine::api::{Engine, Folded, Note, Raw, Started, Stopped};
use crate::engine::api::{Job, Library};
use crate::jvm::hsperf;
use crate::jvm::preflight::{refuse_disabled, Findings};
use crate::jvm::version::jvm_version;
use crate::os::identity::Shoes;
use crate::os::proc::target::Target;
use crate::wire::outcome::{Code, Failure};

/// The engine's name in a sampling.
pub const NAME: &str = "async-profiler";

/// What is known of a JVM before it is touched. The calling thread sees its files as its user from then on.
struct Looked<'a> {
    library: &'a Library,
    shoes: Shoes,
    /// Whether a profiler samples it, whose-ever.
    sampled: bool,
    events: Vec<String>,
    left_out: Vec<Failure>,
}

/// Everything that speaks against recording it, and that can be seen from outside.
fn look<'a>(job: &'a Job, target: &Target, findings: &Findings) -> Result<Looked<'a>, Failure> {
    let library = job.libraries.async_profiler.as_ref().ok_or_else(|| {
        Failure::new(
            "async-profiler's library is missing on the host",
            "send it for this host's processor",
        )
        .coded(Code::LibraryMissing)
    })?;
    refuse(target, findings)?;
    let (events, mut left_out) = events::possible(&job.sampling.events);
    if events.is_empty() {
        return Err(Failure::all(left_out));
    }
    let sampled = is_sampled(target);
    let shoes = Shoes::put_on(target)?;
    let (named, data) = (&shoes.named, &findings.performance_data);
    refuse_disabled(target.pid, &findings.launched.options(named))?;
    refuse_disabled(target.pid, &hsperf::options(named, data))?;
    let version = jvm_version(named, findings.library.as_deref(), data);
    able::refuse_known_bad(library.version.as_deref(), version.as_deref())?;
    let library_of_jvm = findings.library.as_deref();
    let (events, unable) = able::events(events, version.as_deref(), library_of_jvm, named);
    left_out.extend(unable);
    match events.is_empty() {
        true => Err(Failure::all(left_out)),
        false => Ok(Looked {
            library,
            shoes,
            sampled,
            events,
            left_out,
        }),
    }
}

/// Make a JVM ready to be recorded: everything that speaks against it is looked at before it is touched.
pub fn prepare(job: &Job, target: Target, findings: &Findings) -> Result<Box<dyn Engine>, Failure> {
    let looked = look(job, &target, findings)?;
    let data = &findings.performance_data;
    let rate = Rate::begin(&looked.shoes.named, data);
    let threads = target.status.threads;
    let (shoes, sampled) = (looked.shoes, looked.sampled);
    let jvm = Jvm::enter(target, shoes, findings, sampled, looked.library, job)?;
    let alloc = || rate.interval(jvm.named(), data);
    let (plan, notes) = plan(
        job,
        looked.events,
        looked.left_out,
        threads,
        findings,
        alloc,
    );
    Ok(Box::new(AsyncProfiler {
        used: plan.choices[0].clone(),
        plan,
        jvm,
        notes,
        begin: Instant::now(),
        seconds: 0.0,
    }))
}

/// How to record these events, and what the user should know of it.
fn plan(
    job: &Job,
    events: Vec<String>,
    left_out: Vec<Failure>,
    threads: u64,
    findings: &Findings,
    alloc: impl FnOnce() -> (u64, Note),
) -> (Plan, Vec<Note>) {
    let (intervals, chosen) = Intervals::choose(&job.sampling, &events, threads, alloc);
    let mut notes: Vec<Note> = left_out.into_iter().map(Note::of).collect();
    notes.extend(chosen);
    let plan = Plan::new(events, intervals, job.sampling.duration, findings.kernel);
    (plan, notes)
}

fn refuse(target: &Target, findings: &Findings) -> Result<(), Failure> {
    if !findings.is_jvm {
        return Err(Failure::new(
            format!(
                "process {} is not a JVM, and async-profiler records only JVMs",
                target.pid
            ),
            "record it with --engine perf",
        )
        .coded(Code::NotAJvm));
    }
    findings.refusal.clone().map_or(Ok(()), Err)
}

/// A JVM that is ready, and what was used when it was started.
struct AsyncProfiler {
    jvm: Jvm,
    plan: Plan,
    notes: Vec<Note>,
    /// What takes the profiler's only `event=`; the first choice until one has worked.
    used: Choice,
    /// When the profiler was started, and how long it was left to sample.
    begin: Instant,
    seconds: f64,
}

impl Engine for AsyncProfiler {
    fn target(&self) -> &Target {
        &self.jvm.target
    }

    fn start(&mut self) -> Result<Started, Failure> {
        let (choice, refused) = match self.jvm.start(&self.plan) {
            Err(failure) if able::only_alloc_fails(&failure) && self.plan.leave_out("alloc") => {
                let why = format!("alloc was left out: {}", failure.reason);
                self.notes.push(Note::of(Failure::new(why, able::SYMBOLS)));
                self.jvm.start(&self.plan)?
            }
            started => started?,
        };
        self.begin = Instant::now();
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(choice.note.clone());
        if !refused.is_empty() {
            notes.push(Note::plain(refused));
        }
        let sources = self
            .plan
            .events
            .iter()
            .map(|event| (event.clone(), self.plan.source(event, &choice)));
        let sources = sources.collect();
        self.used = choice;
        Ok(Started { sources, notes })
    }

    fn too_much(&self) -> Option<Failure> {
        self.jvm.too_much()
    }

    fn stop(&mut self) -> Result<Stopped, Failure> {
        self.seconds = self.begin.elapsed().as_secs_f64();
        let stopped = self.jvm.stop(self.plan.time_limit())?;
        self.jvm.hold_recording();
        Ok(stopped)
    }

    fn attached(&self) -> Option<Duration> {
        Some(self.jvm.attached())
    }

    fn fold(&mut self, stopped: Stopped) -> Result<Folded, Failure> {
        results::fold(&self.jvm, stopped, &self.plan, &self.used, self.seconds)
    }

    fn raw(&mut self) -> Result<Raw, Failure> {
        results::raw(&self.jvm)
    }

    fn leave(self: Box<Self>) -> Vec<String> {
        self.jvm.leave()
    }
}
