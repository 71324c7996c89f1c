//! What the agent and its child for one Python process write to each other.
//!
//! The agent writes an order, a line of JSON, and then commands, a word each. The child writes messages: JSON, with its
//! length before it. After the messages `Part` and `Profiles` the profiles follow. The child has read what a hostile process made,
//! so nothing that it writes is trusted.

use std::io::{self, Read, Write};
use std::time::Duration;

use flamegraph::{Limits, Profile};
use serde::{Deserialize, Serialize};

use super::native::Stops;
use super::sampler::value_types;
pub use super::sampler::Event;
use super::SOURCE;
use crate::engine::api::EventProfile;
use crate::wire::outcome::{Code, Failure};

/// The longest message, and the longest text that is shown of it, in bytes and characters.
const MOST_BYTES: u32 = 64 << 10;
const MOST_TEXT: usize = 500;
/// A sample cannot stand for more nanoseconds.
const MOST_INTERVAL: u64 = 1 << 50;

/// What to record. The agent has checked it.
#[derive(Default, Serialize, Deserialize)]
pub struct Order {
    /// The agent's number, and when it started.
    pub agent: i32,
    pub agent_start: u64,
    pub pid: i32,
    pub start_time: u64,
    /// Whose process it is.
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    /// All processes that the session records.
    pub recorded: Vec<i32>,
    /// The names of events, and the nanoseconds between two samples of a thread.
    pub events: Vec<(String, u64)>,
    /// In seconds.
    pub duration: f64,
    /// Whether it is wanted when samples were taken.
    pub times: bool,
    pub native: bool,
    /// Whether frames have the numbers of their lines.
    pub lines: bool,
    /// Bytes of memory that the child may take, and of these for the symbols of native code.
    pub memory: u64,
    pub symbols: usize,
    pub cells: usize,
    pub rows: usize,
}

impl Order {
    pub fn events(&self) -> Vec<Event> {
        let events = self.events.iter().map(|(name, every)| Event {
            name: if name == "wall" { "wall" } else { "cpu" },
            every: Duration::from_nanos(*every),
        });
        events.collect()
    }
}

pub enum Command {
    /// Sample, with so many processors on average.
    Start(f64),
    /// Send what was sampled since the last part, and go on.
    Part,
    Stop,
    /// Send what all threads do now, in at most so many bytes.
    Dump(usize),
}

impl Command {
    pub fn line(&self) -> String {
        match self {
            Self::Start(cores) => format!("start {cores}\n"),
            Self::Part => "part\n".to_owned(),
            Self::Stop => "stop\n".to_owned(),
            Self::Dump(most) => format!("dump {most}\n"),
        }
    }

    pub fn of(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            Some(("start", cores)) => cores.parse().ok().map(Self::Start),
            Some(("dump", most)) => most.parse().ok().map(Self::Dump),
            _ if line == "part" => Some(Self::Part),
            _ => (line == "stop").then_some(Self::Stop),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message {
    /// It can be sampled.
    Ready,
    /// It cannot.
    Failed {
        code: Code,
        reason: String,
        remedy: String,
    },
    /// It is sampled; about once a second.
    Alive,
    /// What was sampled since the last part. It goes on.
    Part {
        forked_ticks: u64,
        profiles: Vec<Head>,
    },
    /// It is not sampled any more.
    Over(Totals),
    Profiles {
        profiles: Vec<Head>,
    },
    /// A text of so many bytes follows. `cut`: it is only the beginning.
    Dump {
        size: usize,
        cut: bool,
    },
}

/// What was sampled.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Totals {
    pub process_ended: bool,
    /// The call tree is too large.
    pub full: bool,
    /// How often stacks were read, and how often they could not be.
    pub reads: u64,
    pub errors: u64,
    /// The CPU time of processes that it forked, which are sampled too, without that of parts.
    pub forked_ticks: u64,
    /// If native frames are wanted.
    pub stops: Option<Stops>,
}

/// Of the profile of one event.
#[derive(Debug, Serialize, Deserialize)]
pub struct Head {
    pub interval: u64,
    pub size: u64,
}

pub fn write_message(to: &mut impl Write, message: &Message) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    to.write_all(&(bytes.len() as u32).to_le_bytes())?;
    to.write_all(&bytes)?;
    to.flush()
}

pub fn read_message(from: &mut impl Read) -> io::Result<Message> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Why it cannot be sampled, as the child says.
pub fn failure(code: Code, reason: &str, remedy: &str) -> Failure {
    let plain = |text: &str| {
        let text = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        text.take(MOST_TEXT).collect::<String>()
    };
    Failure::new(plain(reason), plain(remedy)).coded(code)
}

/// The profiles of these events, as far as they can be of this recording. Err says what is wrong with them.
pub fn read_profiles(
    from: &mut impl Read,
    heads: &[Head],
    events: &[Event],
    limits: &Limits,
) -> Result<Vec<EventProfile>, String> {
    if heads.len() != events.len() {
        return Err("it has other events".to_owned());
    }
    let profiles = heads.iter().zip(events).map(|(head, event)| {
        if head.size > limits.pprof_bytes || head.interval > MOST_INTERVAL {
            return Err("it is too large".to_owned());
        }
        let mut bytes = vec![0; head.size as usize];
        from.read_exact(&mut bytes).map_err(|e| e.to_string())?;
        let profile = Profile::read_compact(&bytes, limits).map_err(|error| error.to_string())?;
        if profile.values() != value_types(event.name) || !profile.labels().is_empty() {
            return Err("it has other values".to_owned());
        }
        let taken = profile.total(0).map_err(|error| error.to_string())?;
        let interval = match event.name {
            "wall" => head.interval,
            _ => event.every.as_nanos() as u64,
        };
        Ok(EventProfile {
            callers_unsure: false,
            event: event.name.to_owned(),
            source: SOURCE.to_owned(),
            interval,
            taken: u64::try_from(taken).map_err(|_| "it has a negative total".to_owned())?,
            profile,
        })
    });
    profiles.collect()
}
