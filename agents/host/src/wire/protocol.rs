//! The wire: requests and events of `agents/PROTOCOL.md`, and bounded reading of them.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

use crate::commands::doctor::Checked;
use crate::discovery::selector::Query;
use crate::os::audit::Kept;
use crate::resources::limits::Asked;
use crate::wire::leftovers::{Clean, Leftovers};
use crate::wire::outcome::Outcome;
use crate::wire::sampling::Sampling;

/// The protocol version this agent speaks.
pub const PROTOCOL: u32 = 2;
/// The longest line either side may send, in bytes.
pub const MAX_LINE: usize = 16 << 20;
/// The largest payload a request may carry, in bytes.
const MAX_PAYLOAD: u64 = 64 << 20;

/// What the coordinator asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Request {
    Hello(Greeting),
    /// Go on with the session of that token, of which so many bytes were received.
    Resume {
        token: String,
        received: u64,
    },
    /// So many bytes of the session were received.
    Received {
        bytes: u64,
    },
    Put {
        #[serde(default)]
        name: String,
        sha256: String,
        size: u64,
    },
    List,
    Find(Find),
    Prepare(Box<Prepare>),
    Check(Box<Prepare>),
    Start,
    Stop,
    Ping,
    Clean(Clean),
    Bye,
}

/// How a session begins.
#[derive(Debug, Deserialize)]
pub struct Greeting {
    pub protocol: u32,
    pub lease_seconds: f64,
    #[serde(default)]
    pub exclude: Option<Exclude>,
    /// Whether what is done on the host is to be told, as it happens.
    #[serde(default)]
    pub audit: bool,
    /// By what another connection may go on with the session; never where it is absent.
    #[serde(default)]
    pub resume: Option<String>,
}

/// The coordinator's own processes; they count only on its own machine and pid namespace.
#[derive(Debug, Deserialize)]
pub struct Exclude {
    pub boot_id: String,
    pub pid_namespace: String,
    pub pids: Vec<i32>,
}

/// Which processes to look for: those of a selector, those of some containers, or what is both.
#[derive(Debug, Deserialize)]
pub struct Find {
    pub selector: Option<Query>,
    /// Whether processes that are no JVMs may match.
    #[serde(default)]
    pub native: bool,
    pub containers: Option<Vec<String>>,
    /// The one of them that the agent itself is in.
    pub own: Option<String>,
    /// The users of their applications, as far as they are known, by the containers' ids.
    #[serde(default)]
    pub owners: BTreeMap<String, String>,
    /// Where the node's manager listens.
    #[serde(default)]
    pub manager_port: Option<u16>,
}

/// What to record, and of which processes.
#[derive(Debug, Deserialize)]
pub struct Prepare {
    pub sampling: Sampling,
    #[serde(default)]
    pub blobs: Blobs,
    /// Of those files, where they are known: by the same names.
    #[serde(default)]
    pub versions: Blobs,
    pub processes: Vec<Chosen>,
    #[serde(flatten)]
    pub limits: Asked,
}

/// The hashes of the files that engines load into processes; one that no engine needs may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Blobs {
    pub async_profiler: Option<String>,
    pub perfmap: Option<String>,
}

/// A process that was found before; `start_time` guards against a reused pid.
#[derive(Debug, Clone, Deserialize)]
pub struct Chosen {
    pub pid: i32,
    pub start_time: u64,
    #[serde(default)]
    pub label: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The only engine that may record it; where it is absent the sampling's says which.
    #[serde(default)]
    pub engine: Option<String>,
}

/// What the agent tells.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Event {
    Hello {
        protocol: u32,
        version: &'static str,
        sha256: String,
        host: HostFacts,
        /// By this the folders of the session are known.
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
    Outcome(Outcome),
    Ready {
        processes: Vec<Pid>,
    },
    Started {
        pid: i32,
        engine: &'static str,
        sources: BTreeMap<String, String>,
    },
    Recording {
        processes: usize,
    },
    /// The coordinator was lost while processes were recorded, which ended it after so many seconds.
    Interrupted {
        seconds: f64,
        reason: &'static str,
    },
    Resumed {
        found: bool,
    },
    Checked(Checked),
    Audited(Kept),
    Profile(ProfileHead),
    Raw(RawHead),
    Done {
        left: Vec<String>,
    },
    /// The session is over.
    Left {
        left: Vec<String>,
    },
    Leftovers(Leftovers),
    Error {
        reason: String,
        remedy: String,
    },
}

/// What the agent says of its machine.
#[derive(Debug, Clone, Serialize)]
pub struct HostFacts {
    pub name: String,
    pub boot_id: String,
    pub pid_namespace: String,
    pub kernel: String,
    pub arch: String,
    pub cpus: usize,
    /// Tasks that want to run, on average of a minute; below zero where that is not known.
    pub load: f64,
    pub memory_bytes: u64,
    /// What could be taken of it without swapping; None where that is not known.
    pub memory_available_bytes: Option<u64>,
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

/// What is known of a JVM without touching it.
#[derive(Debug, Clone, Serialize)]
pub struct JvmFacts {
    pub version: String,
}

/// A process that matched and was left out all the same, or of which that is not known.
#[derive(Debug, Serialize)]
pub struct Ignored {
    pub pid: i32,
    pub reason: String,
    /// Whether it may be one that is meant.
    pub doubtful: bool,
}

/// A process that is ready to be recorded.
#[derive(Debug, Serialize)]
pub struct Pid {
    pub pid: i32,
}

/// Says what the payload that follows is; `seconds` and `cpu_seconds` are of the recording.
#[derive(Debug, Serialize)]
pub struct ProfileHead {
    pub pid: i32,
    pub event: String,
    pub engine: &'static str,
    pub source: String,
    pub interval: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub attach_seconds: Option<f64>,
    pub samples: Samples,
    pub timeline: Vec<u64>,
    pub sha256: String,
    pub size: usize,
}

/// Says what file the payload that follows is.
#[derive(Debug, Serialize)]
pub struct RawHead {
    pub pid: i32,
    pub name: String,
    pub sha256: String,
    pub size: u64,
}

/// How many samples a recording should have had, had, and missed.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Samples {
    pub expected: u64,
    pub taken: u64,
    pub lost: u64,
}

/// What came out of stdin.
#[derive(Debug)]
pub enum Input {
    Request(Request, Vec<u8>),
    /// Not the protocol: the session cannot go on.
    Bad(String),
    /// The coordinator is gone, perhaps in the middle of a line or payload.
    Closed,
}

/// Read the next request and its payload; never more than the protocol's limits.
pub fn read_input(from: &mut impl BufRead) -> Input {
    let mut line = Vec::new();
    match from
        .by_ref()
        .take(MAX_LINE as u64 + 1)
        .read_until(b'\n', &mut line)
    {
        Err(_) | Ok(0) => return Input::Closed,
        Ok(_) if line.len() > MAX_LINE => {
            return Input::Bad("a request line is longer than 16 MiB".into())
        }
        Ok(_) if line.last() != Some(&b'\n') => return Input::Closed,
        Ok(_) => {}
    }
    let request = match serde_json::from_slice(&line) {
        Ok(request) => request,
        Err(error) => return Input::Bad(format!("a request cannot be understood: {error}")),
    };
    match payload_size(&request) {
        size if size > MAX_PAYLOAD => Input::Bad(format!(
            "a payload of {size} bytes is over the limit of 64 MiB"
        )),
        size => match read_payload(from, size) {
            Ok(payload) => Input::Request(request, payload),
            Err(_) => Input::Closed,
        },
    }
}

fn payload_size(request: &Request) -> u64 {
    match request {
        Request::Put { size, .. } => *size,
        _ => 0,
    }
}

/// Grows with what really comes, so that a lying size reserves nothing.
fn read_payload(from: &mut impl BufRead, size: u64) -> io::Result<Vec<u8>> {
    let mut payload = Vec::new();
    from.by_ref().take(size).read_to_end(&mut payload)?;
    if payload.len() as u64 == size {
        Ok(payload)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Input {
        read_input(&mut io::BufReader::new(bytes))
    }

    #[test]
    fn a_request_and_its_payload() {
        let input =
            read(b"{\"type\":\"put\",\"name\":\"l\",\"sha256\":\"ab\",\"size\":3}\nxyzrest");
        assert!(
            matches!(input, Input::Request(Request::Put { size: 3, .. }, payload) if payload == b"xyz")
        );
    }

    #[test]
    fn what_ends_in_the_middle_is_a_closed_connection() {
        assert!(matches!(read(b""), Input::Closed));
        assert!(matches!(read(b"{\"type\":\"pi"), Input::Closed));
        assert!(matches!(
            read(b"{\"type\":\"put\",\"sha256\":\"ab\",\"size\":9}\nxyz"),
            Input::Closed
        ));
    }

    #[test]
    fn what_is_not_the_protocol_is_refused() {
        assert!(matches!(read(b"hello\n"), Input::Bad(_)));
        assert!(matches!(read(b"{\"type\":\"dance\"}\n"), Input::Bad(_)));
        assert!(matches!(
            read(b"{\"type\":\"put\",\"sha256\":\"ab\",\"size\":999999999999}\n"),
            Input::Bad(_)
        ));
        assert!(matches!(read(&vec![b' '; MAX_LINE + 2]), Input::Bad(_)));
    }
}
