use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Degraded,
    Failed,
}

/// How far it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    Prepare,
    Start,
    Record,
    Dump,
    Measure,
    Fetch,
}

/// What ended a recording before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    Process,
    /// The agent, while the process continued.
    Cut,
}

/// What happened, for programs. `docs/reference/outcomes.md` explains each code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    AttachDisabled,
    AttachFailed,
    AttachSocketTaken,
    AttachTimeout,
    BadRequest,
    BadSelector,
    BrokenStacks,
    Cancelled,
    CannotLoad,
    ConnectionLost,
    CounterMissing,
    CountersCapped,
    CountersTaken,
    CountersUserOnly,
    CutShort,
    DamagedRecording,
    DamagedTransfer,
    DiskLimit,
    Dumped,
    DumpCut,
    EventLeftOut,
    EventTooFrequent,
    EventUnknown,
    EventUnsupported,
    /// No more precise code fits.
    #[default]
    Failed,
    FrequencyLowered,
    InternalError,
    IntervalChosen,
    JdkTooOld,
    LargeObjectsMissed,
    LibraryMissing,
    LibraryRefused,
    LiveCut,
    Measured,
    MemoryLimit,
    NoDebugSymbols,
    NoFramePointers,
    NoInlining,
    NoJavaNames,
    NoKernelFrames,
    NoKernelNames,
    NoNativeFrames,
    NoSamples,
    NoWritableFolder,
    NotAJvm,
    NotPermitted,
    NotPython,
    NotReady,
    Openj9,
    OptionIgnored,
    OtherEngine,
    OtherProfiler,
    OtherSession,
    OutputMissing,
    PathTooLong,
    PerfFailed,
    PerfKilled,
    PerfLate,
    PerfMissing,
    PerfTimeout,
    PerfUnusable,
    PerfVersion,
    ProcessEnded,
    ProcessHangs,
    ProcessKilled,
    ProcessStopped,
    ProfilerEnded,
    ProgramMissing,
    PythonUnreadable,
    PythonUnsupported,
    RawLeftOut,
    ReaderEnded,
    Recorded,
    RecordingOver,
    SamplerSlow,
    SamplesLost,
    SamplesMissing,
    StartFailed,
    StopFailed,
    StoppedForSamples,
    ThreadNamesIncomplete,
    ThreadNamesUnread,
    TimerUsed,
    TimesIncomplete,
    TooManyFiles,
    TooManyProcesses,
    TooManyThreads,
    TracefsNotMounted,
    UnknownFrames,
    VersionMismatch,
}

/// Figures and names, typed, which programs read instead of the sentence.
pub type Parameters = BTreeMap<&'static str, Value>;

/// If there are several reasons, `notes` are all of them.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    pub pid: Option<i32>,
    pub status: Status,
    pub stage: Stage,
    pub code: Code,
    #[serde(skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    pub reason: String,
    pub remedy: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// The length of a recording that ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// Why something could not be done, or was done worse, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub code: Code,
    #[serde(skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    pub reason: String,
    pub remedy: String,
}

impl Failure {
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            code: Code::Failed,
            parameters: Parameters::new(),
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }

    pub fn coded(self, code: Code) -> Self {
        Self { code, ..self }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.parameters.insert(name, value.into());
        self
    }

    /// A failure without a remedy.
    pub fn plain(reason: impl Into<String>) -> Self {
        Self::new(reason, "")
    }

    /// Several failures as one: each reason and remedy once, with the code of the first.
    pub fn all(failures: impl IntoIterator<Item = Self>) -> Self {
        let failures: Vec<Self> = failures.into_iter().collect();
        let (code, parameters) = failures
            .first()
            .map(|first| (first.code, first.parameters.clone()))
            .unwrap_or_default();
        let (reasons, remedies): (Vec<_>, Vec<_>) = failures
            .into_iter()
            .map(|failure| (failure.reason, failure.remedy))
            .unzip();
        Self {
            parameters,
            ..Self::new(each_once(reasons), each_once(remedies)).coded(code)
        }
    }

    pub fn at(self, pid: i32, stage: Stage) -> Outcome {
        Outcome {
            pid: Some(pid),
            status: Status::Failed,
            stage,
            code: self.code,
            parameters: self.parameters,
            reason: self.reason,
            remedy: self.remedy,
            ended: None,
            seconds: None,
            notes: Vec::new(),
        }
    }
}

impl Outcome {
    /// What a recording of the whole host lacks.
    pub fn of_host(notes: Vec<Failure>, stage: Stage) -> Self {
        let all = Failure::all(notes.clone());
        Self {
            pid: None,
            status: Status::Degraded,
            stage,
            code: all.code,
            parameters: all.parameters,
            reason: all.reason,
            remedy: all.remedy,
            notes,
            ended: None,
            seconds: None,
        }
    }
}

pub fn each_once(words: impl IntoIterator<Item = String>) -> String {
    let mut unique: Vec<String> = Vec::new();
    for word in words {
        if !word.is_empty() && !unique.contains(&word) {
            unique.push(word);
        }
    }
    unique.join("; ")
}
