//! py-spy: reads the stacks of a CPython process from its memory, without stopping it. Nothing is loaded into it.

mod forks;
mod native;
mod python;
mod sampler;
mod spark_task;
mod tasks;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use flamegraph::python_frame;
use py_spy::config::{Config, LineNo, LockingStrategy};
use py_spy::{Frame, PythonSpy};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;

use self::forks::Forks;
pub use self::native::Files;
use self::native::Native;
use self::python::{no_python, Python};
use self::sampler::{Event, Member, Sampler, Samples};
use self::tasks::Tasks;
use crate::discovery::find::PARENT;
use crate::engine::api::{
    fraction, share, Engine, Folded, Job, Note, Prepared, Raw, Shared, Started, Stopped,
};
use crate::engine::perf::events::OF_ASYNC_PROFILER;
use crate::jvm::preflight::Findings;
use crate::os::proc::target::Target;
use crate::os::threads::hangs;
use crate::wire::outcome::{Code, Failure};
use crate::wire::sampling::Sampling;

/// The engine's name in a sampling.
pub const NAME: &str = "pyspy";
/// The source of all its samples.
const SOURCE: &str = "py-spy";
/// The highest frequency. Each sample reads the process's memory many times.
const MOST_HZ: u32 = 100;
const WALL: Duration = Duration::from_millis(10);
/// How long one sample may take.
const LAST: Duration = Duration::from_secs(10);
/// How often to look for the interpreter, which may change meanwhile.
const ATTEMPTS: u64 = 3;
/// A process chooses the names of its functions; longer ones are cut.
const LONGEST_NAME: usize = 500;

/// Whether `auto` tries this engine.
pub fn suits(findings: &Findings) -> bool {
    python::is_program(&findings.loaded.paths())
}

pub fn prepare(job: &Job, target: Target, findings: &Findings) -> Result<Prepared, Failure> {
    let pid = target.pid;
    let memory = open_memory(&target)?;
    let python = python::look(&findings.loaded.paths()).ok_or_else(|| no_python(pid))?;
    python.refuse_unknown(pid)?;
    let (events, mut notes) = possible(&job.shared.sampling)?;
    if job.chosen.labels.contains_key(PARENT) {
        // Nobody asked for what JVMs alone can do of this process, too.
        notes.iter_mut().for_each(|note| note.degraded = false);
    }
    let source = |event: &Event| (event.name.to_owned(), SOURCE.to_owned());
    let sources = events.iter().map(source).collect();
    if job.shared.dry_run {
        return Ok(Prepared::DryRun(Ok(Started { sources, notes })));
    }
    let config = Config {
        blocking: LockingStrategy::NonBlocking,
        lineno: LineNo::NoLine,
        full_filenames: true,
        ..Config::default()
    };
    let spy = PythonSpy::retry_new(pid, &config, ATTEMPTS).map_err(|error| {
        Failure::new(
            format!("cannot find Python's stacks in the memory of process {pid}: {error:#}"),
            "record it with --engine perf, which sees its native code",
        )
        .coded(Code::PythonUnreadable)
    })?;
    Python::of(spy.version.major, spy.version.minor).refuse_unknown(pid)?;
    let tasks = Tasks::of(Target::open(pid, target.start_time)?, memory, 0);
    let forks = Forks::of(pid, &job.shared.recorded, config);
    Ok(Prepared::Ready(Box::new(PySpy {
        shared: job.shared.clone(),
        target,
        ready: Some((spy, tasks, forks)),
        events,
        sources,
        notes,
        sampler: None,
        samples: None,
    })))
}

/// The kernel allows it to those who may also read the memory by other ways.
fn open_memory(target: &Target) -> Result<File, Failure> {
    let pid = target.pid;
    let opened = target.open_link("mem", OFlags::RDONLY).map(File::from);
    opened.map_err(|error| match error {
        Errno::NOENT | Errno::SRCH => {
            Failure::plain(format!("process {pid} has ended")).coded(Code::ProcessEnded)
        }
        error => Failure::new(
            format!("the agent may not read the memory of process {pid}: {error}"),
            "connect as root (--become sudo), or as the process's user where kernel.yama.ptrace_scope is 0",
        )
        .coded(Code::NotPermitted),
    })
}

/// The events that can be recorded, and notes on what is not as it was asked for.
fn possible(sampling: &Sampling) -> Result<(Vec<Event>, Vec<Note>), Failure> {
    let (mut events, mut refused) = (Vec::new(), Vec::new());
    let mut lowered = None;
    for name in &sampling.events {
        let (name, every) = match name.as_str() {
            "cpu" => {
                let frequency = sampling.frequency.min(MOST_HZ);
                lowered = (frequency < sampling.frequency).then_some(frequency);
                ("cpu", Duration::from_secs(1) / frequency)
            }
            "wall" => {
                let asked = sampling.wall_interval.map_or(WALL, Duration::from_nanos);
                if asked < WALL {
                    let reason = "10 ms is the shortest time between wall-clock samples of Python";
                    let failure = Failure::new(reason, "use a longer --wall-interval");
                    refused.push(failure.coded(Code::FrequencyLowered));
                }
                ("wall", asked.max(WALL))
            }
            other => {
                let reason = format!("py-spy cannot record {other}, only cpu and wall");
                let remedy = match OF_ASYNC_PROFILER.contains(&other) {
                    true => "leave it out for Python: it needs a JVM",
                    false => "record it with --engine perf",
                };
                let failure = Failure::new(reason, remedy);
                refused.push(failure.coded(Code::EventUnsupported));
                continue;
            }
        };
        events.push(Event { name, every });
    }
    if events.is_empty() {
        return Err(Failure::all(refused));
    }
    refused.extend(lowered.map(|frequency| {
        let reason = format!("{frequency} Hz is the most at which Python processes are sampled");
        Failure::new(reason, "use a lower frequency").coded(Code::FrequencyLowered)
    }));
    Ok((events, refused.into_iter().map(Note::of).collect()))
}

struct PySpy {
    shared: Arc<Shared>,
    target: Target,
    /// Until the start.
    ready: Option<(PythonSpy, Tasks, Forks)>,
    events: Vec<Event>,
    sources: BTreeMap<String, String>,
    notes: Vec<Note>,
    sampler: Option<Sampler>,
    samples: Option<Samples>,
}

impl Engine for PySpy {
    fn target(&self) -> &Target {
        &self.target
    }

    fn start(&mut self) -> Result<Started, Failure> {
        let (spy, tasks, forks) = self.ready.take().ok_or_else(not_recorded)?;
        let member = Member::of(spy, tasks);
        let sampler = Sampler::start(member, forks, &self.events, self.shared.clone())?;
        self.sampler = Some(sampler);
        Ok(Started {
            sources: std::mem::take(&mut self.sources),
            notes: std::mem::take(&mut self.notes),
        })
    }

    fn too_much(&self) -> Option<Failure> {
        let full = self.sampler.as_ref().is_some_and(Sampler::is_full);
        let too_large = || self.shared.limits.too_large("its call tree is too large");
        full.then(too_large)
            .or_else(|| self.shared.limits.refuse_full().err())
    }

    fn stop(&mut self) -> Result<Stopped, Failure> {
        let sampler = self.sampler.as_mut().ok_or_else(not_recorded)?;
        let samples = sampler.stop(LAST).ok_or_else(|| hangs(self.target.pid))??;
        let ended = samples.process_ended || self.target.stat().is_none();
        self.samples = Some(samples);
        Ok(match ended {
            true => Stopped::WithTheProcess,
            false => Stopped::OnRequest,
        })
    }

    fn more_cpu_seconds(&self) -> f64 {
        let samples = self.samples.as_ref();
        samples.map_or(0.0, |samples| {
            samples.forked_ticks as f64 / clock_ticks_per_second() as f64
        })
    }

    fn fold(&mut self, _stopped: Stopped) -> Result<Folded, Failure> {
        let samples = self.samples.take().ok_or_else(not_recorded)?;
        let (errors, reads) = (samples.errors, samples.reads);
        let lost = share(errors, reads).map(|percent| {
            Note::plain(format!(
                "{percent} of the stacks could not be read: Python changed them meanwhile"
            ))
            .coded(Code::SamplesLost)
            .with("share", fraction(errors, reads))
        });
        let native = samples.native.as_ref().map(Native::notes);
        let profiles = samples.profiles(SOURCE);
        Ok(Folded {
            profiles: profiles.map_err(|error| Failure::plain(error.to_string()))?,
            notes: lost.into_iter().chain(native.unwrap_or_default()).collect(),
        })
    }

    fn raw(&mut self) -> Result<Raw, Failure> {
        Err(Failure::new(
            "Python's stacks are folded as they are read and not kept",
            "leave --keep-raw out",
        )
        .coded(Code::OptionIgnored))
    }

    fn leave(mut self: Box<Self>) -> Vec<String> {
        self.sampler = None;
        Vec::new()
    }
}

/// `function (file)`; Python 3.11 and later also names the function's class.
fn frame(frame: &Frame) -> String {
    let name = python_frame(&frame.name, &frame.filename);
    name.chars().take(LONGEST_NAME).collect()
}

fn not_recorded() -> Failure {
    Failure::plain("nothing was recorded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_how_often() {
        let mut sampling = Sampling::of("cpu wall");
        sampling.frequency = 99;
        let (events, notes) = possible(&sampling).unwrap();
        let every: Vec<u128> = events.iter().map(|event| event.every.as_micros()).collect();
        assert_eq!((every, notes), (vec![10_101, 10_000], vec![]));
        sampling.frequency = 997;
        sampling.wall_interval = Some(50_000_000);
        let (events, notes) = possible(&sampling).unwrap();
        let every: Vec<u128> = events.iter().map(|event| event.every.as_millis()).collect();
        assert_eq!(
            (every, notes[0].code),
            (vec![10, 50], Code::FrequencyLowered)
        );
        let (events, notes) = possible(&Sampling::of("page-faults wall")).unwrap();
        assert_eq!((events.len(), notes[0].code), (1, Code::EventUnsupported));
        assert!(possible(&Sampling::of("alloc")).is_err());
        sampling.events = vec!["wall".to_owned()];
        sampling.wall_interval = Some(1_000_000);
        let (events, notes) = possible(&sampling).unwrap();
        assert_eq!(
            (events[0].every, notes[0].code),
            (WALL, Code::FrequencyLowered)
        );
    }
}
