//! What records. An engine is made ready for one process, starts, stops, and makes profiles of what it saw.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use flamegraph::Profile;
use serde_json::Value;

use crate::engine::perf;
use crate::jvm::preflight::Findings;
use crate::os::host::processors;
use crate::os::proc::target::Target;
use crate::os::turns::{Turn, Turns};
use crate::resources::folding::Folding;
use crate::resources::limits::Limits;
use crate::wire::outcome::{Code, Failure, Parameters};
use crate::wire::requests::Chosen;
use crate::wire::sampling::AgentLimits;
use crate::wire::sampling::Sampling;

/// A process that is ready to be recorded by one engine. It lives on a thread of its own, which has the process's user
/// and files where the engine needs that.
pub trait Engine {
    fn target(&self) -> &Target;

    /// Begin to record. It ends by itself some time after the job's duration, should the agent be killed.
    fn start(&mut self) -> Result<Started, Failure>;

    /// Why the recording should end before its time: it would take too much of the host. AgentLimits for now and then.
    fn too_much(&self) -> Option<Failure> {
        None
    }

    /// Whether the CPU time of the process counts until `stop` has returned, or until it is called.
    fn samples_until_stopped(&self) -> bool {
        true
    }

    /// End the recording and have everything written that it yielded.
    fn stop(&mut self) -> Result<Stopped, Failure>;

    /// How long the process was attached to for its recording, from its turn on: the profiler was put into it and
    /// started, or it was asked for its names. None where nothing was.
    fn attached(&self) -> Option<Duration> {
        None
    }

    /// Have the process tell what only it knows, while it lives. It is not sampled any more, and nothing fails by it.
    fn ask(&mut self) {}

    /// Make profiles of what was recorded. Err where there is not a single one.
    fn fold(&mut self, stopped: Stopped) -> Result<Folded, Failure>;

    /// What was recorded, as it is; asked for after `fold` and at most once.
    fn raw(&mut self) -> Result<Raw, Failure>;

    /// Stop what may still run and delete what was put beside the process. The paths that could not be deleted.
    fn leave(self: Box<Self>) -> Vec<String>;
}

/// How a recording began.
pub struct Started {
    /// What was really used for each event.
    pub sources: BTreeMap<String, String>,
    /// What the user should know of it.
    pub notes: Vec<Note>,
}

/// What came of making a process ready.
pub enum Prepared {
    Ready(Box<dyn Engine>),
    /// How the recording would start, or why it would not, as far as that can be seen from outside.
    DryRun(Result<Started, Failure>),
}

/// A word for the outcome's reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    pub code: Code,
    pub parameters: Parameters,
    pub text: String,
    /// What it follows from, which several notes may follow from; empty where the text says all.
    pub why: String,
    /// Whether it makes the result worse than what was asked for.
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

    /// Of what could not be done beside what is recorded.
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

    /// The same, as what follows from a failure.
    pub fn because(self, failure: Failure) -> Self {
        Self {
            code: match self.code {
                Code::Failed => failure.code,
                own => own,
            },
            why: failure.reason,
            remedy: failure.remedy,
            ..self
        }
    }
}

/// What share of stacks may be broken, of frames nameless or of records lost, before it is worth saying.
const WORTH_SAYING: f64 = 0.02;

/// A share in per cent, if it is worth saying.
pub fn share(part: u64, whole: u64) -> Option<String> {
    let share = part as f64 / whole.max(1) as f64;
    (share > WORTH_SAYING).then(|| format!("{:.0} %", share * 100.0))
}

/// How a recording was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    AsTold,
    /// By the process's end.
    WithTheProcess,
    /// Before it was told to, in a process that lives.
    Early,
}

/// What a recording yielded.
pub struct Folded {
    pub profiles: Vec<EventProfile>,
    /// What is wrong with them.
    pub notes: Vec<Note>,
}

/// One event of one process; see `agents/PROTOCOL.md` for the profile's values.
pub struct EventProfile {
    pub event: String,
    pub source: String,
    /// What one sample stands for, in the event's own unit; 0 where that means nothing.
    pub interval: u64,
    pub profile: Profile,
    pub taken: u64,
    /// Samples taken in each second since the recording's begin.
    pub timeline: Vec<u64>,
}

/// A recording as the engine wrote it. The file may be its process's user's: what is read is not to be trusted.
pub struct Raw {
    pub name: String,
    pub file: File,
    pub size: u64,
}

/// The source of CPU samples that are taken in the program's own code only.
pub const USER_CODE: &str = "cpu-clock,alluser";

/// A JVM that has not answered by then waits for something else; the next need not wait for it.
const ATTACH: Duration = Duration::from_millis(500);
/// The processors of the host for each JVM that is attached to at a time, and how many these are at least and at most.
const ATTACH_PROCESSORS: u64 = 4;
const AT_ONCE: (u64, u64) = (2, 8);

/// What the recordings of a session share.
pub struct Shared {
    /// How many processes are recorded.
    pub processes: usize,
    pub perf: perf::PerfShared,
    pub limits: Limits,
    /// Turns at attaching: it stops a JVM for a moment, and those of one job wait for each other.
    pub attaches: Turns,
}

impl Shared {
    /// What is made of recordings keeps within these limits.
    pub fn within(asked: &AgentLimits, processes: usize) -> Self {
        let attaches = (processors() / ATTACH_PROCESSORS).clamp(AT_ONCE.0, AT_ONCE.1);
        Self {
            processes,
            perf: perf::PerfShared::of_host(),
            limits: Limits::set(asked, processes),
            attaches: Turns::new(attaches as usize, ATTACH),
        }
    }

    /// Wait for a turn at attaching. Err once nobody is to be attached to any more.
    pub fn attach_turn(&self) -> Result<Turn<'_>, Failure> {
        let ended =
            || Failure::plain("ended before it was this process's turn").coded(Code::ProcessEnded);
        self.attaches.take().ok_or_else(ended)
    }
}

/// A file that an engine loads into processes. Of one that is only told of there are no bytes.
pub struct Library {
    pub sha256: String,
    pub version: Option<String>,
    pub bytes: Vec<u8>,
}

/// The files that engines may load; one that no engine needs may be missing.
#[derive(Clone, Default)]
pub struct Libraries {
    pub async_profiler: Option<Arc<Library>>,
    pub perfmap: Option<Arc<Library>>,
}

/// What to record; the same for all processes of a session but for `chosen`.
#[derive(Clone)]
pub struct Job {
    pub chosen: Chosen,
    pub sampling: Sampling,
    pub libraries: Libraries,
    pub session: String,
    pub host: String,
    /// The turn to read and fold one process's output.
    pub folding: Arc<Folding>,
    pub shared: Arc<Shared>,
    /// Nothing is to be touched: only what a recording would come to is wanted.
    pub dry_run: bool,
}

/// Makes a process ready. A dry run makes the same decisions and touches nothing.
type Prepare = fn(&Job, Target, &Findings) -> Result<Prepared, Failure>;

/// An engine that can be asked to make a process ready.
pub struct Way {
    pub engine: &'static str,
    pub prepare: Prepare,
}
