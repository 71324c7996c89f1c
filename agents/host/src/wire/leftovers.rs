//! What hprofiler sessions left on a host, and what a cleanup did about it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize)]
pub struct Clean {
    /// Only list.
    #[serde(default)]
    pub dry: bool,
    /// Whether this visit sent the agent: then a cache with nothing else is removed and not listed.
    #[serde(default)]
    pub brought: bool,
}

/// A process, a profiler, a folder or a file that is, or looks like, one of ours.
#[derive(Debug, Clone, Serialize)]
pub struct Leftover {
    pub kind: Kind,
    /// The program of an agent, the library of a profiler.
    pub path: String,
    pub pid: Option<i32>,
    pub user: String,
    pub seconds: Option<u64>,
    pub bytes: Option<u64>,
    pub state: State,
    /// Why it has this state, or why it could not be removed.
    pub reason: String,
    pub result: Option<Done>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Agent,
    Profiler,
    Folder,
    File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// To be removed.
    Left,
    Unknown,
    /// In use by a session.
    Used,
    /// Not ours, or another user's.
    Foreign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Done {
    Removed,
    /// The folder stays with what is not ours.
    Emptied,
    Ended,
    Stopped,
    Failed,
}

/// What could not be checked, and why.
#[derive(Debug, Serialize)]
pub struct Unseen {
    pub what: String,
    pub reason: String,
}

/// JVMs of a user that this agent cannot become.
#[derive(Debug, Serialize)]
pub struct OutOfReach {
    pub user: String,
    pub jvms: usize,
}

/// The answer to `clean`.
#[derive(Debug, Default, Serialize)]
pub struct Leftovers {
    pub entries: Vec<Leftover>,
    pub out_of_reach: Vec<OutOfReach>,
    pub failed: Vec<Unseen>,
}
