//! The interface of engines. An engine is made ready for one process, starts, stops, and makes profiles.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flamegraph::Profile;
use serde_json::Value;

use crate::engine::perf;
use crate::jvm::attach::Reply;
use crate::jvm::pauses::PauseLog;
use crate::jvm::preflight::Findings;
use crate::os::host::processors;
use crate::os::identity::Namespaces;
use crate::os::proc::target::Target;
use crate::os::turns::{Turn, Turns};
use crate::resources::folding::Folding;
use crate::resources::limits::Limits;
use crate::staging::folders::{is_library_file, stage_library, Held, Named};
use crate::wire::outcome::{Code, Failure, Parameters};
use crate::wire::requests::{Chosen, Prepare, SliceRule};
use crate::wire::sampling::Sampling;

/// A process that one engine is ready to record. It lives on its own thread, which has the process's user and
/// namespaces if the engine needs them.
pub trait Engine {
    fn target(&self) -> &Target;

    /// Start to record. Should the agent be killed, the recording ends by itself some time after the job's duration.
    fn start(&mut self) -> Result<Started, Failure>;

    /// When samples began to count, if that was before `start` returned: it may take long on a busy host.
    fn began(&self) -> Option<Instant> {
        None
    }

    /// Why the recording should end early: it takes too much of the host. Called about once a second.
    fn too_much(&self) -> Option<Failure> {
        None
    }

    /// Whether samples are taken until `stop` returns, or only until it is called.
    fn samples_until_stopped(&self) -> bool {
        true
    }

    /// What was recorded since the last part, while the recording goes on. None: nothing that can be read yet, or the
    /// engine gives all at its end.
    fn part(&mut self) -> Result<Option<Part>, Failure> {
        Ok(None)
    }

    /// Whether it writes parts by a clock of its own: one that cannot be read yet is finished soon.
    fn writes_parts(&self) -> bool {
        false
    }

    /// End the recording and write the rest of it.
    fn stop(&mut self) -> Result<Stopped, Failure>;

    /// How long the agent was attached to the process, without the wait for a turn: to load and start the profiler, or
    /// to ask for names. None if it did neither.
    fn attached(&self) -> Option<Duration> {
        None
    }

    /// The pauses of the process, if it is a JVM that publishes them. Called once.
    fn pauses(&mut self) -> Option<PauseLog> {
        None
    }

    /// The CPU time of other processes whose samples are in the profile, without that of parts. Called after `stop`.
    fn more_cpu_seconds(&self) -> f64 {
        0.0
    }

    /// Ask the process, while it lives, for what only it knows. It is no longer sampled. This cannot fail.
    fn ask(&mut self) {}

    /// Make profiles of the recording, or of what the parts did not have. Err if there is none.
    fn fold(&mut self, stopped: Stopped) -> Result<Folded, Failure>;

    /// The recording as it is; called after `fold` and at most once.
    fn raw(&mut self) -> Result<Raw, Failure>;

    /// Stop what may still run, and delete the files beside the process. Returns the paths that could not be deleted.
    fn leave(self: Box<Self>) -> Vec<String>;
}

/// How a recording started.
pub struct Started {
    /// What recorded each event.
    pub sources: BTreeMap<String, String>,
    /// What the user should know.
    pub notes: Vec<Note>,
}

/// The result of making a process ready.
pub enum Prepared {
    Ready(Box<dyn Engine>),
    /// How the recording would start, or why it would not, as far as the agent can see from outside.
    DryRun(Result<Started, Failure>),
}

/// A part of the outcome's reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    pub code: Code,
    pub parameters: Parameters,
    pub text: String,
    /// The cause, which several notes may share. None: the text says all.
    pub cause: Option<Failure>,
    /// Whether the result is worse than what was asked for.
    pub degraded: bool,
    /// What to do about that.
    pub remedy: String,
}

impl Note {
    pub fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            text,
            ..Self::default()
        }
    }

    pub fn degraded(text: impl Into<String>) -> Self {
        Self::of(Failure::plain(text))
    }

    pub fn coded(self, code: Code) -> Self {
        Self { code, ..self }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.parameters.insert(name, value.into());
        self
    }

    /// A note of what failed while the rest is recorded.
    pub fn of(failure: Failure) -> Self {
        Self {
            code: failure.code,
            parameters: failure.parameters,
            text: failure.reason,
            degraded: true,
            remedy: failure.remedy,
            ..Self::default()
        }
    }

    /// The same note, with a failure as its cause.
    pub fn because(self, failure: Failure) -> Self {
        let (code, parameters) = match self.code {
            Code::Failed => (failure.code, failure.parameters.clone()),
            own => (own, self.parameters),
        };
        Self {
            code,
            parameters,
            remedy: failure.remedy.clone(),
            cause: Some(failure),
            ..self
        }
    }
}

/// Up to this share of broken stacks, nameless frames or lost records there is no note.
const WORTH_SAYING: f64 = 0.02;

/// From 0 to 1; 0 of nothing.
pub fn fraction(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// A share in per cent, if it is worth a note.
pub fn share(part: u64, whole: u64) -> Option<String> {
    let share = fraction(part, whole);
    (share > WORTH_SAYING).then(|| format!("{:.0} %", share * 100.0))
}

/// How a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// By the agent, at its end.
    OnRequest,
    /// The process ended.
    WithTheProcess,
    /// By itself, in a process that lives.
    Early,
}

/// A part of a recording that goes on, and its end in microseconds since 1970.
pub struct Part {
    pub folded: Folded,
    pub until: i64,
    /// The CPU time of other processes whose samples are in it.
    pub more_cpu_seconds: f64,
}

/// The profiles of a recording.
pub struct Folded {
    pub profiles: Vec<EventProfile>,
    /// What is wrong with them.
    pub notes: Vec<Note>,
}

/// One event of one process; see `agents/PROTOCOL.md` for the profile's values.
pub struct EventProfile {
    pub event: String,
    pub source: String,
    /// What one sample stands for, in the event's unit; 0 if samples differ.
    pub interval: u64,
    pub profile: Profile,
    pub taken: u64,
    /// Whether functions that compiled Java code calls may be below wrong callers: its debug information is missing.
    pub callers_unsure: bool,
}

/// Whether samples of an event are taken anywhere in compiled code. Others are taken where the callers are known.
pub fn is_taken_anywhere(event: &str) -> bool {
    !matches!(
        event,
        "alloc" | "live" | "lock" | "nativemem" | "nativelive" | "offcpu"
    )
}

/// A recording as the engine wrote it. The process's user may own the file, so its content is not trusted.
pub struct Raw {
    pub file: File,
    pub size: u64,
}

/// The source of CPU samples without the kernel.
pub const USER_CODE: &str = "cpu-clock,alluser";

/// A JVM that has not answered by then waits for something else; the next need not wait for it.
const ATTACH: Duration = Duration::from_millis(500);
/// How long one process may keep the others from being folded: several may hang within a step.
const HOLD: Duration = Duration::from_secs(5);
/// The part of the agent's memory for results that wait to be received while the next is folded.
const WAITING: u64 = 4;
/// The processors of the host for each JVM that is attached to at a time, and how many these are at least and at most.
const ATTACH_PROCESSORS: u64 = 4;
const AT_ONCE: (u64, u64) = (2, 8);

/// What to record, and what the recordings of a session share.
pub struct Shared {
    pub sampling: Sampling,
    /// The pids of all processes that are recorded now.
    recorded: Mutex<HashSet<i32>>,
    pub libraries: Libraries,
    /// How names of threads say to which slice of the job samples belong.
    pub slices: Vec<SliceRule>,
    pub session: String,
    pub host: String,
    /// By how many microseconds the host's clock is ahead of the coordinator's.
    pub clock_offset: i64,
    /// Check whether the recording would succeed, and touch nothing.
    pub dry_run: bool,
    pub folding: Arc<Folding>,
    pub perf: perf::PerfShared,
    pub limits: Limits,
    /// Turns at attaching: it stops a JVM for a moment, and those of one job wait for each other.
    pub attaches: Turns,
}

impl Shared {
    pub fn of(
        request: &Prepare,
        libraries: Libraries,
        host: &str,
        session: &str,
        dry_run: bool,
    ) -> Self {
        let attaches = (processors() / ATTACH_PROCESSORS).clamp(AT_ONCE.0, AT_ONCE.1);
        let limits = Limits::set(request.agent_cpu, request.processes.len());
        let part = |parts| limits.memory_part(parts) as usize;
        Self {
            sampling: request.sampling.clone(),
            recorded: Mutex::new(request.processes.iter().map(|one| one.pid).collect()),
            libraries,
            slices: request.slices.clone(),
            session: session.to_owned(),
            host: host.to_owned(),
            clock_offset: (request.clock_offset * 1e6) as i64,
            dry_run,
            folding: Arc::new(Folding::new(limits.stretch(HOLD), part(WAITING))),
            perf: perf::PerfShared::of_host(),
            limits,
            attaches: Turns::new(attaches as usize, ATTACH),
        }
    }

    fn recorded(&self) -> MutexGuard<'_, HashSet<i32>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn pids(&self) -> Vec<i32> {
        self.recorded().iter().copied().collect()
    }

    /// How many share the host with each other.
    pub fn count(&self) -> usize {
        self.recorded().len()
    }

    /// These will be recorded.
    pub fn expect(&self, pids: impl Iterator<Item = i32>) {
        let mut recorded = self.recorded();
        recorded.extend(pids);
        self.limits.enforce(recorded.len());
    }

    /// Its recording is over.
    pub fn forget(&self, pid: i32) {
        self.recorded().remove(&pid);
    }

    /// Wait for a turn at attaching. Err: nobody is attached to any more.
    pub fn attach_turn(&self) -> Result<Turn<'_>, Failure> {
        let ended =
            || Failure::plain("ended before it was this process's turn").coded(Code::ProcessEnded);
        self.attaches.take().ok_or_else(ended)
    }
}

/// A file that an engine loads into processes. A dry run has no bytes of it.
pub struct Library {
    pub sha256: String,
    pub bytes: Vec<u8>,
}

impl Library {
    /// Put it into the first of these folders from which the JVM loads it. `load` gets its path there. Err says why the
    /// JVM loads it from none.
    pub fn load_from_first<T>(
        &self,
        names: &Named,
        namespaces: &Namespaces,
        bases: &[String],
        load: impl Fn(&str) -> Result<Reply<T>, Failure>,
    ) -> Result<(Held, Result<T, Failure>), String> {
        let mut tried = Vec::new();
        for base in bases {
            let held = match stage_library(namespaces, names, base, &self.sha256, &self.bytes) {
                Ok(held) => held,
                Err(reason) => {
                    tried.push(reason);
                    continue;
                }
            };
            match load(&format!("{}/{}", held.path, names.file)) {
                Ok(Reply::Returned(value)) => return Ok((held, Ok(value))),
                Ok(Reply::Refused(text)) => {
                    tried.push(format!("{}: {text}", held.path));
                    // `clean` will find what cannot be deleted now.
                    let _ = held.release(is_library_file);
                }
                Err(failure) => return Ok((held, Err(failure))),
            }
        }
        Err(tried.join("; "))
    }
}

/// The files that engines load. One that no engine needs may be missing.
#[derive(Default)]
pub struct Libraries {
    pub async_profiler: Option<Arc<Library>>,
    pub perfmap: Option<Arc<Library>>,
    pub thread_names: Option<Arc<Library>>,
}

/// One process of a session.
#[derive(Clone)]
pub struct Job {
    pub chosen: Chosen,
    pub shared: Arc<Shared>,
    /// When the recording that it joins ends. None: it lasts for the sampling's duration from its start on.
    pub end: Option<Instant>,
}

impl Job {
    /// How long it is recorded if it starts now, in seconds.
    pub fn duration(&self) -> f64 {
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        self.end
            .map_or(self.shared.sampling.duration, |end| left(end).as_secs_f64())
    }
}

/// An engine that can be asked to make a process ready. A dry run makes the same decisions and touches nothing.
pub struct Way {
    pub engine: &'static str,
    pub prepare: fn(&Job, Target, Arc<Findings>) -> Result<Prepared, Failure>,
}

#[cfg(test)]
impl Shared {
    /// For a recording of this process's CPU time.
    pub fn alone() -> Self {
        let request = Prepare {
            sampling: Sampling::of("cpu"),
            blobs: Default::default(),
            processes: vec![Chosen::this_process()],
            agent_cpu: 1.0,
            slices: Vec::new(),
            clock_offset: 0.0,
        };
        Self::of(&request, Libraries::default(), "test", "test", false)
    }
}

#[cfg(test)]
impl Chosen {
    pub fn this_process() -> Self {
        let Target {
            pid, start_time, ..
        } = Target::own();
        Self {
            pid,
            start_time,
            label: String::new(),
            labels: BTreeMap::new(),
            engine: None,
        }
    }
}
