//! What the coordinator sends.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::wire::leftovers::Clean;
use crate::wire::outcome::{Code, Failure};
use crate::wire::sampling::Sampling;

pub const PROTOCOL: u32 = 3;
/// The longest line either side may send, in bytes.
pub const MAX_LINE: usize = 16 << 20;
/// The largest payload of a request, in bytes.
pub const MAX_PAYLOAD: u64 = 64 << 20;
/// The most processes that one session records. A host with more is profiled in parts.
pub const MAX_PROCESSES: usize = 512;
/// The most rules for slices, and the longest prefix of one, in bytes: together they fit into the library's options.
const MAX_SLICE_RULES: usize = 8;
const MAX_PREFIX: usize = 60;
/// The processors that the agent may be given.
const AGENT_CPU: RangeInclusive<f64> = 0.1..=1024.0;
/// The most seconds between two clocks.
const MOST_OFFSET: f64 = 1e11;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Request {
    Hello(Greeting),
    /// Continue the session with this token, of which the coordinator has received `received` bytes.
    Resume {
        token: String,
        received: u64,
    },
    /// The coordinator has received this many bytes of the session.
    Received {
        bytes: u64,
    },
    /// A file follows as payload.
    Put {
        #[serde(default)]
        name: String,
        sha256: String,
        size: u64,
    },
    List,
    Find(Find),
    /// Name the processes that this would find, and that appear during the recording.
    Follow(Box<Find>),
    Prepare(Box<Prepare>),
    Check(Box<Prepare>),
    Start,
    /// Record these processes too, for the rest of the time.
    Join {
        processes: Vec<Chosen>,
    },
    Stop,
    /// What was read since the last such request. With `processes`, those are read from now on, and `counters`.
    Watch {
        processes: Option<Vec<Watched>>,
        #[serde(default)]
        counters: Vec<String>,
    },
    /// What the threads of these processes do now.
    Dump(Dump),
    /// Where the memory of these processes is. With `heap`, JVMs count their objects: they stand still meanwhile.
    Memory {
        processes: Vec<Watched>,
        #[serde(default)]
        heap: bool,
    },
    Ping,
    /// What time it is.
    Clock,
    Clean(Clean),
    Bye,
}

impl Request {
    pub fn payload_size(&self) -> u64 {
        match self {
            Self::Put { size, .. } => *size,
            _ => 0,
        }
    }
}

/// The first request of a session.
#[derive(Debug, Deserialize)]
pub struct Greeting {
    pub protocol: u32,
    pub lease_seconds: f64,
    #[serde(default)]
    pub exclude: Option<Exclude>,
    /// Whether the agent reports each of its actions on the host.
    #[serde(default)]
    pub audit: bool,
    /// The token by which another connection may continue the session. None: it cannot be continued.
    #[serde(default)]
    pub resume: Option<String>,
}

/// The coordinator's own processes. They count only on its own machine and in its pid namespace.
#[derive(Debug, Deserialize)]
pub struct Exclude {
    pub boot_id: String,
    pub pid_namespace: String,
    pub pids: Vec<i32>,
}

/// A process to read without a recording.
#[derive(Debug, Clone, Deserialize)]
pub struct Watched {
    pub pid: i32,
    pub start_time: u64,
}

#[derive(Debug, Deserialize)]
pub struct Dump {
    pub processes: Vec<Watched>,
    /// Whether JVMs say, too, who owns the locks of java.util.concurrent: they search their heap for it.
    #[serde(default)]
    pub owners: bool,
    #[serde(default = "one_processor")]
    pub agent_cpu: f64,
}

impl Dump {
    pub fn check(&self) -> Result<(), Failure> {
        refuse_too_many(self.processes.len())?;
        refuse_processors(self.agent_cpu)
    }
}

/// Which processes to find: those that match a selector, those in certain containers, or those that do both.
#[derive(Debug, Deserialize)]
pub struct Find {
    pub selector: Option<Query>,
    /// Whether processes that are not JVMs may match.
    #[serde(default)]
    pub native: bool,
    pub containers: Option<Vec<String>>,
    /// Rules for processes that are found too if they descend from a JVM that is found.
    #[serde(default)]
    pub children: Vec<Query>,
    /// Rules for processes that are found too if they have started a JVM that is found.
    #[serde(default)]
    pub starters: Vec<Starter>,
    /// The container that the agent itself is in.
    pub own: Option<String>,
    /// The users of the containers' applications, as far as they are known, by container id.
    #[serde(default)]
    pub owners: BTreeMap<String, String>,
    /// The port on which the NodeManager listens.
    #[serde(default)]
    pub manager_port: Option<u16>,
}

/// A rule for the process that has started a JVM whose arguments have what `arguments` matches.
#[derive(Debug, Deserialize)]
pub struct Starter {
    pub rule: Query,
    pub arguments: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Query {
    Pids {
        pids: Vec<i32>,
    },
    Text {
        text: String,
    },
    Regex {
        regex: String,
    },
    Rule {
        any: Vec<Alternative>,
        #[serde(default)]
        labels: BTreeMap<String, Capture>,
        #[serde(default)]
        process_label: String,
    },
}

/// One way to match a rule. Every member that is given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Alternative {
    pub main_class: Vec<String>,
    pub arguments: Option<String>,
    pub options: Option<String>,
    pub environment: BTreeMap<String, String>,
    pub user: Vec<String>,
    pub cgroup: Option<String>,
    pub program: Vec<String>,
    pub parents: Option<String>,
}

/// Where a label's value is found: in the regex's only group.
#[derive(Debug, Deserialize)]
pub struct Capture {
    pub from: Source,
    #[serde(default)]
    pub name: String,
    pub regex: String,
}

/// What a label's regex is applied to.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Arguments,
    /// The arguments, one a line: they may have blanks.
    ArgumentLines,
    Options,
    Environment,
    Cgroup,
    MainClass,
    /// The command lines of its ancestors.
    Parents,
}

/// What to record, and of which processes.
#[derive(Debug, Deserialize)]
pub struct Prepare {
    pub sampling: Sampling,
    #[serde(default)]
    pub blobs: Blobs,
    pub processes: Vec<Chosen>,
    #[serde(default = "one_processor")]
    pub agent_cpu: f64,
    #[serde(default)]
    pub slices: Vec<SliceRule>,
    /// By how many seconds this host's clock is ahead of the coordinator's.
    #[serde(default)]
    pub clock_offset: f64,
}

/// How the name of a JVM's thread says to which slice of the job its samples belong.
#[derive(Debug, Clone, Deserialize)]
pub struct SliceRule {
    /// The JVMs that have such threads, by their main class; `*` is any text. None: all.
    #[serde(default)]
    pub main_class: Vec<String>,
    /// The beginning of the names.
    pub prefix: String,
    /// Its only group takes the place of `{}` in `name`.
    pub regex: String,
    pub name: String,
}

impl SliceRule {
    /// In the library's options these characters end a prefix.
    fn is_usable(&self) -> bool {
        (1..=MAX_PREFIX).contains(&self.prefix.len()) && !self.prefix.contains([',', '|', '\0'])
    }
}

fn one_processor() -> f64 {
    1.0
}

pub fn refuse_too_many(processes: usize) -> Result<(), Failure> {
    match processes > MAX_PROCESSES {
        true => Err(Failure::new(
            format!("{processes} processes exceed the limit of {MAX_PROCESSES} per session"),
            "use a narrower selector",
        )),
        false => Ok(()),
    }
}

fn refuse_processors(cores: f64) -> Result<(), Failure> {
    let (least, most) = (AGENT_CPU.start(), AGENT_CPU.end());
    let reason = || format!("{cores} processors for the agent are not between {least} and {most}");
    match AGENT_CPU.contains(&cores) {
        true => Ok(()),
        false => Err(Failure::plain(reason()).coded(Code::BadRequest)),
    }
}

impl Prepare {
    /// Refuse what is out of range. The sampling is checked for each process.
    pub fn check(&self) -> Result<(), Failure> {
        refuse_too_many(self.processes.len())?;
        if self.slices.len() > MAX_SLICE_RULES || !self.slices.iter().all(SliceRule::is_usable) {
            return Err(Failure::plain("bad rules for slices").coded(Code::BadSelector));
        }
        refuse_processors(self.agent_cpu)?;
        if self.clock_offset.abs() > MOST_OFFSET {
            let reason = format!("a clock cannot be {} s ahead", self.clock_offset);
            return Err(Failure::plain(reason).coded(Code::BadRequest));
        }
        Ok(())
    }
}

/// The hashes of the files that engines load into processes. A file that no engine needs may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Blobs {
    pub async_profiler: Option<String>,
    pub perfmap: Option<String>,
    pub threadnames: Option<String>,
}

/// A process that was found before. `start_time` guards against a reused pid.
#[derive(Debug, Clone, Deserialize)]
pub struct Chosen {
    pub pid: i32,
    pub start_time: u64,
    #[serde(default)]
    pub label: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The only engine that may record the process. None: the sampling's engine decides.
    #[serde(default)]
    pub engine: Option<String>,
}
