//! Where the memory of processes is (`memory`). All amounts are bytes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::wire::outcome::Outcome;

/// What a process's memory is used for. Each mapping is a part of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Heap,
    Metaspace,
    /// Compiled code.
    Code,
    Stacks,
    /// The areas from which the C library gives small pieces.
    Malloc,
    Libraries,
    /// Class files: jars, the JDK's own image, and its shared archive.
    Jars,
    Files,
    Shared,
    /// Memory without a name: large pieces of the C library (direct buffers, too), tables of the collector.
    Anonymous,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub resident: u64,
    pub swap: u64,
}

/// `time` is this host's clock, in seconds since 1970.
#[derive(Debug, Serialize)]
pub struct Measured {
    pub time: f64,
    pub processes: Vec<ProcessMemory>,
}

#[derive(Debug, Serialize)]
pub struct ProcessMemory {
    #[serde(flatten)]
    pub outcome: Outcome,
    pub memory: Option<Memory>,
}

#[derive(Debug, Serialize)]
pub struct Memory {
    /// How long the kernel took to say it.
    pub seconds: f64,
    /// Together they are all that is resident.
    pub parts: BTreeMap<Part, Amount>,
    /// Resident, where a page that N processes have counts 1/N.
    pub proportional: u64,
    pub mappings: usize,
    /// The C library's.
    pub arenas: usize,
    pub threads: u64,
    /// The files with most resident memory.
    pub files: Vec<FileMemory>,
    pub jvm: Option<JvmMemory>,
    pub group: Option<GroupMemory>,
}

#[derive(Debug, Serialize)]
pub struct FileMemory {
    pub path: String,
    pub resident: u64,
}

/// The JVM's own account. None: it does not say.
#[derive(Debug, Default, Serialize)]
pub struct JvmMemory {
    /// Whether it said where its heap is.
    pub heap_found: bool,
    pub heap_used: Option<u64>,
    pub heap_committed: Option<u64>,
    pub metaspace_used: Option<u64>,
    pub metaspace_committed: Option<u64>,
    /// Values of its flags that limit memory, by name.
    pub flags: BTreeMap<String, u64>,
    /// What each part of the JVM has committed, if it tracks that (NativeMemoryTracking).
    pub native: BTreeMap<String, u64>,
    pub histogram: Option<Histogram>,
}

/// Objects by class, those that are not reachable any more too.
#[derive(Debug, PartialEq, Serialize)]
pub struct Histogram {
    /// How long the JVM stood still, or at most, if it does not say.
    pub seconds: f64,
    pub objects: u64,
    pub bytes: u64,
    /// The largest ones.
    pub classes: Vec<ClassMemory>,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct ClassMemory {
    pub name: String,
    pub objects: u64,
    pub bytes: u64,
}

/// The control group whose memory limit is the tightest.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct GroupMemory {
    pub id: String,
    pub limit: Option<u64>,
    pub used: Option<u64>,
    pub anonymous: Option<u64>,
    /// The page cache.
    pub file: Option<u64>,
    pub shared: Option<u64>,
    /// How often its limit was reached and nothing could be reclaimed.
    pub out_of_memory: Option<u64>,
    pub oom_kills: Option<u64>,
}
