use std::collections::BTreeMap;

use serde::Serialize;

use crate::wire::leftovers::Leftovers;
use crate::wire::memory::Measured;
use crate::wire::outcome::{Failure, Outcome};

/// What the agent sends.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Event {
    Hello {
        protocol: u32,
        host: HostFacts,
        /// Names the session's folders.
        session: String,
        blobs: Vec<String>,
    },
    Stored {
        sha256: String,
    },
    Processes {
        processes: Vec<Process>,
        ignored: Vec<Ignored>,
    },
    Found {
        searched: usize,
        processes: Vec<Process>,
        ignored: Vec<Ignored>,
    },
    /// What `follow` found since.
    Appeared {
        processes: Vec<Process>,
        ignored: Vec<Ignored>,
    },
    Outcome(Outcome),
    Ready {
        processes: Vec<Pid>,
    },
    Started {
        pid: i32,
        engine: &'static str,
        sources: BTreeMap<String, String>,
        #[serde(flatten)]
        past: Past,
    },
    Recording {
        processes: usize,
    },
    /// The coordinator was lost during the recording, which ended it after so many seconds.
    Interrupted {
        seconds: f64,
        reason: &'static str,
    },
    Resumed {
        found: bool,
    },
    /// This host's clock, in seconds since 1970.
    Clock {
        time: f64,
    },
    Checked(Checked),
    Audit(Action),
    Profile(ProfileHead),
    Raw(RawHead),
    Pauses(Pauses),
    Metrics(Metrics),
    Memory(Measured),
    Dump(DumpHead),
    /// All processes of a `dump` have their outcomes.
    Dumped {
        left: Vec<String>,
    },
    Done {
        left: Vec<String>,
    },
    /// The session is over.
    Left {
        left: Vec<String>,
    },
    Leftovers(Leftovers),
    /// The agent gives up.
    Error(Failure),
}

/// What a process did before its recording: the seconds that it had lived, and its CPU time.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Past {
    pub age: Option<f64>,
    pub cpu_before: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
pub struct HostFacts {
    pub name: String,
    pub boot_id: String,
    pub pid_namespace: String,
    pub kernel: String,
    pub arch: String,
    pub cpus: usize,
    /// Runnable tasks, averaged over a minute; negative if unknown.
    pub load: f64,
    pub memory_bytes: u64,
    /// Available without swapping; None if unknown.
    pub memory_available: Option<u64>,
    pub uid: u32,
    pub user: String,
}

/// One process as the coordinator sees it.
#[derive(Debug, Serialize)]
pub struct Process {
    pub pid: i32,
    pub namespace_pid: i32,
    pub start_time: u64,
    pub uid: u32,
    pub user: String,
    pub ppid: i32,
    pub main_class: String,
    pub command: String,
    pub label: String,
    pub labels: BTreeMap<String, String>,
    pub jvm: Option<JvmFacts>,
}

/// Known without touching the JVM.
#[derive(Debug, Clone, Serialize)]
pub struct JvmFacts {
    pub version: String,
}

/// A process that matched but was left out, or that may match. `container`: the one that it is in, or claims.
#[derive(Debug, Serialize)]
pub struct Ignored {
    pub pid: i32,
    pub reason: String,
    pub doubtful: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

impl Ignored {
    pub fn new(pid: i32, reason: impl Into<String>, doubtful: bool) -> Self {
        let reason = reason.into();
        Self {
            pid,
            reason,
            doubtful,
            container: None,
        }
    }

    pub fn in_container(self, id: String) -> Self {
        Self {
            container: Some(id),
            ..self
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Pid {
    pub pid: i32,
}

/// Describes the payload that follows. `seconds`, `cpu_seconds` and `resident_bytes` are of the recording, or of this part
/// of it if another one follows (`more`).
#[derive(Debug, Serialize)]
pub struct ProfileHead {
    pub pid: i32,
    pub event: String,
    pub engine: &'static str,
    pub source: String,
    pub interval: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub resident_bytes: u64,
    pub attach_seconds: Option<f64>,
    pub callers_unsure: bool,
    pub samples: Samples,
    pub more: bool,
    pub sha256: String,
    pub size: usize,
}

/// Describes the text that follows, which is compressed (gzip).
#[derive(Debug, Serialize)]
pub struct DumpHead {
    pub pid: i32,
    pub kind: DumpKind,
    /// When the process was asked, by this host's clock, in seconds since 1970.
    pub time: f64,
    /// How long the answer took.
    pub seconds: f64,
    /// The CPU time that each thread has used so far, in seconds, by its number as the process itself sees it.
    pub cpu: Vec<(i32, f64)>,
    pub size: usize,
}

/// Who wrote a dump's text: the JVM, the reader of Python's stacks, or the agent of what the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DumpKind {
    Jvm,
    Python,
    Native,
}

/// Describes the file that follows.
#[derive(Debug, Serialize)]
pub struct RawHead {
    pub pid: i32,
    pub name: &'static str,
    pub sha256: String,
    pub size: u64,
}

/// When a process stood still for its garbage collectors, since the message before. The three lists belong together.
#[derive(Debug, Default, Serialize)]
pub struct Pauses {
    pub pid: i32,
    /// The recording goes on, and others may follow.
    pub more: bool,
    /// The names of the process's collectors.
    pub collectors: Vec<String>,
    /// The number of each pause's collector.
    pub collector: Vec<u8>,
    /// When it was over, in microseconds since 1970 by the coordinator's clock.
    pub end: Vec<i64>,
    /// In microseconds.
    pub duration: Vec<u64>,
    /// How many more there were.
    pub left_out: u64,
}

/// What the host published during a recording. `time`: the first reading in microseconds since 1970 by the
/// coordinator's clock, then differences. `every`: seconds between two readings. `facts`: numbers for formulas. `more`:
/// these are the last ones of a recording that goes on.
#[derive(Debug, Serialize)]
pub struct Metrics {
    pub more: bool,
    pub every: f64,
    pub time: Vec<i64>,
    pub facts: BTreeMap<&'static str, u64>,
    pub series: Vec<Series>,
}

/// One number of one thing. `values`: the first one, then differences; None was not read. What is missing at the end
/// is like the last one.
#[derive(Debug, Serialize)]
pub struct Series {
    pub of: &'static str,
    pub id: String,
    pub name: String,
    pub kind: Kind,
    pub unit: &'static str,
    pub values: Vec<Option<i64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Counter,
    Gauge,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Samples {
    pub expected: u64,
    pub taken: u64,
    pub lost: u64,
}

/// Paths are as the process `pid` sees them, or the host if there is none.
#[derive(Debug, Serialize)]
pub struct Action {
    pub time: f64,
    pub what: &'static str,
    pub pid: Option<i32>,
    pub detail: String,
}

/// `time` is this host's clock, in seconds since 1970.
#[derive(Debug, Serialize)]
pub struct Checked {
    pub time: f64,
    pub findings: Vec<Finding>,
    pub processes: Vec<CheckedProcess>,
}

/// The outcome that a recording of one process would start with, and other findings.
#[derive(Debug, Serialize)]
pub struct CheckedProcess {
    pub engine: &'static str,
    pub sources: BTreeMap<String, String>,
    #[serde(flatten)]
    pub outcome: Outcome,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Ok,
    Info,
    Warning,
    Error,
}

/// `about` is one word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    pub about: &'static str,
    pub text: String,
    pub remedy: String,
}

/// Cut a list to `most` members that take at most `bytes` as JSON. Returns the members after that.
pub fn split_off_excess<T: Serialize>(list: &mut Vec<T>, most: usize, bytes: usize) -> Vec<T> {
    let size = |one: &T| serde_json::to_string(one).map_or(0, |text| text.len() + 1);
    let mut room = bytes;
    let fit = list.iter().take(most).take_while(|one| {
        let left = room.checked_sub(size(one));
        room = left.unwrap_or(0);
        left.is_some()
    });
    list.split_off(fit.count())
}
