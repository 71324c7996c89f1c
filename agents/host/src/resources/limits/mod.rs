//! How much of a host the agent may take: processors on average, memory, and what ends it where these do not hold.

mod backstop;
mod memory;
mod pace;

use std::io::{self, Read};
use std::time::Duration;

pub use self::backstop::{raise_for_programs, usual_for_programs};
use self::memory::{Bound, LESS};
pub use self::pace::used;
use self::pace::Pace;
use crate::wire::outcome::{Code, Failure};
use crate::wire::sampling::AgentLimits;

/// The usual processors, on average.
const CORES: f64 = 1.0;

/// Bytes of the agent's memory for each value of a node of a call tree: what trees of two values were seen to take.
const CELL: u64 = 40;
/// Nodes times values of one event that the coordinator takes.
const MOST_OF_EVENT: usize = 1 << 23;

/// What the kernel is to see to from the beginning, before the coordinator has asked for anything.
pub fn set_first_backstop() {
    usual_for_programs();
    backstop::set_memory(Bound::new(None).bytes, 0);
}

/// The limits of one session's recordings.
pub struct Limits {
    cores: f64,
    pace: Pace,
    memory: Bound,
}

impl Limits {
    /// Those that are asked for, or the usual ones of this host.
    pub fn new(asked: &AgentLimits) -> Self {
        let cores = asked.agent_cpu.unwrap_or(CORES);
        Self {
            cores,
            pace: Pace::new(cores),
            memory: Bound::new(asked.agent_memory),
        }
    }

    /// What the kernel is to see to, while so many processes are recorded for so long.
    pub fn set_backstop(&self, processes: usize, duration: Duration) {
        self.set_memory_backstop(processes);
        self.extend_backstop(duration);
    }

    /// The same of memory alone, while so many processes are looked at.
    pub fn set_memory_backstop(&self, processes: usize) {
        backstop::set_memory(self.memory.bytes, processes);
    }

    /// Once more of the processors for so long, and for what follows.
    pub fn extend_backstop(&self, duration: Duration) {
        backstop::set_processor(self.cores, duration);
    }

    /// Wait, where more was used of the processors than there is for the agent.
    pub fn rest(&self) {
        self.pace.rest();
    }

    /// Why nothing more can be taken in: the agent has all the memory that it may have.
    pub fn refuse_full(&self) -> Result<(), Failure> {
        self.memory.refuse_full()
    }

    /// Something that is read no faster, and no further, than there is room for what is made of it.
    pub fn reading<R: Read>(&self, inner: R) -> Within<'_, R> {
        Within {
            limits: self,
            inner,
        }
    }

    /// The part of its memory that one of several things may take, in bytes.
    pub fn memory_part(&self, parts: u64) -> u64 {
        self.memory.bytes / parts
    }

    /// How many nodes of a call tree, times their values, may be made of a recording of so many events: they have one
    /// tree, and each has a part of its values.
    pub fn cells(&self, events: usize) -> usize {
        (MOST_OF_EVENT * events.clamp(1, 2)).min(self.memory_part(CELL) as usize)
    }

    /// Why there is no profile of something that is larger than it may be.
    pub fn too_large(&self, what: &str) -> Failure {
        let bytes = self.memory.bytes >> 20;
        let reason =
            format!("the recording needs more memory than the agent may use ({bytes} MiB): {what}");
        Failure::new(reason, LESS).coded(Code::MemoryLimit)
    }

    /// How much longer everything takes than with a processor.
    pub fn stretch(&self, time: Duration) -> Duration {
        time.div_f64(self.cores.min(1.0))
    }

    /// The processors that the agent uses on average.
    pub fn cores(&self) -> f64 {
        self.cores
    }

    /// For people.
    pub fn told(&self) -> String {
        let (cores, memory) = (self.cores, self.memory.bytes >> 20);
        let what = if cores == 1.0 {
            "processor"
        } else {
            "processors"
        };
        format!("the agent takes {cores} {what} on average and {memory} MiB of memory at most")
    }
}

/// See `Limits::reading`.
pub struct Within<'a, R> {
    limits: &'a Limits,
    inner: R,
}

/// Why something could not be read.
pub fn unread(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::OutOfMemory => {
            Failure::new(error.to_string(), LESS).coded(Code::MemoryLimit)
        }
        _ => Failure::plain(format!("the recording cannot be read: {error}"))
            .coded(Code::DamagedRecording),
    }
}

impl<R: Read> Read for Within<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limits.rest();
        let full = |failure: Failure| io::Error::new(io::ErrorKind::OutOfMemory, failure.reason);
        self.limits.refuse_full().map_err(full)?;
        self.inner.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(agent_cpu: Option<f64>, agent_memory: Option<u64>) -> AgentLimits {
        AgentLimits {
            agent_cpu,
            agent_memory,
        }
    }

    #[test]
    fn less_of_a_processor_takes_longer() {
        let limits = |cores| Limits::new(&asked(Some(cores), None));
        let second = Duration::from_secs(1);
        assert_eq!(limits(0.1).stretch(second), 10 * second);
        assert_eq!(limits(4.0).stretch(second), second);
    }

    #[test]
    fn who_has_no_memory_left_reads_no_further() {
        let little = Limits::new(&asked(None, Some(4096)));
        let mut buffer = [0; 4];
        let error = little.reading(&b"1234"[..]).read(&mut buffer).unwrap_err();
        assert!(error.to_string().contains("memory"), "{error}");
        let usual = Limits::new(&AgentLimits::default());
        assert_eq!(usual.reading(&b"1234"[..]).read(&mut buffer).unwrap(), 4);
    }
}
