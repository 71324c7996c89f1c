//! How much of a host the agent may use: processors on average, and memory. Beyond twice the memory the kernel kills the
//! agent (`RLIMIT_DATA`), so that the host keeps some.

use std::fs;
use std::io::{self, Read};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

use super::children;
use super::pace::Pace;
use crate::os::free_space::Memory;
use crate::os::proc::read_text;
use crate::wire::outcome::{Code, Failure};

/// The agent's part of the memory that the host and its control groups have left, and the bounds of that in bytes.
const PART: u64 = 4;
const BOUNDS: (u64, u64) = (64 << 20, 512 << 20);
/// What threads reserve for their stacks, per process and for the agent, in bytes.
const STACKS: u64 = 6 << 20;
const OWN_STACKS: u64 = 64 << 20;
/// Bytes of memory for each value of a node of a call tree, measured with two values.
const CELL: u64 = 40;
/// The most rows of a recording's times, and bytes of memory for each, which is held several times for a moment.
const MOST_ROWS: usize = 1 << 20;
const ROW: u64 = 256;
/// Nodes times values of one event that the coordinator accepts.
const MOST_OF_EVENT: usize = 1 << 23;
const LESS: &str =
    "record for a shorter time, fewer events or with longer intervals, or free memory on the host";

/// Class 3 of `ioprio_set(2)`: the disk is used only when it is idle.
const IDLE_DISK: libc::c_long = 3 << 13;
/// `IOPRIO_WHO_PROCESS`.
const PROCESS: libc::c_long = 1;
/// The kernel ends the process with the highest score first when memory runs out.
const HIGHEST_SCORE: i32 = 1000;
const SCORE: &str = "/proc/self/oom_score_adj";
const OWN: &str = "/proc/self/statm";

/// Use disks only when they are idle, and be the first process that the kernel ends when memory runs out. Call it
/// before starting threads, since they and the agent's programs inherit it. It needs no rights.
pub fn set_low_priority() {
    // SAFETY: takes three numbers and changes no memory.
    unsafe { libc::syscall(libc::SYS_ioprio_set, PROCESS, 0 as libc::c_long, IDLE_DISK) };
    let score = read_text(SCORE, 16).and_then(|text| text.trim().parse::<i32>().ok());
    if score.is_some_and(|score| score < HIGHEST_SCORE) {
        let _ = fs::write(SCORE, HIGHEST_SCORE.to_string());
    }
}

static USUAL: OnceLock<Rlimit> = OnceLock::new();

/// The limit of memory that the agent was started with. The first call is before the agent sets its own.
pub fn usual_memory_limit() -> Rlimit {
    *USUAL.get_or_init(|| getrlimit(Resource::Data))
}

/// Give a program the limit that the agent was started with. Only a system call, to be used between fork and exec.
pub fn restore_memory_limit(usual: Rlimit) {
    // If that fails, the program keeps the agent's.
    let _ = setrlimit(Resource::Data, usual);
}

pub struct Limits {
    /// Processors, on average.
    pub cores: f64,
    pace: Pace,
    /// Bytes of memory.
    memory: u64,
}

impl Limits {
    /// For an agent that works for this many processes.
    pub fn set(cores: f64, processes: usize) -> Self {
        let memory = (Memory::of_agent().free() / PART).clamp(BOUNDS.0, BOUNDS.1);
        let limits = Self::new(cores, memory);
        limits.enforce(processes);
        limits
    }

    /// Have the kernel enforce them, for this many processes.
    pub fn enforce(&self, processes: usize) {
        let stacks = STACKS.saturating_mul(processes as u64) + OWN_STACKS;
        let most = self.memory.saturating_mul(2).saturating_add(stacks);
        let usual = usual_memory_limit();
        // A lower limit of the host stays.
        let bounds = [usual.current, usual.maximum].into_iter().flatten();
        // A kernel without this limit leaves the agent's own.
        let _ = setrlimit(
            Resource::Data,
            Rlimit {
                current: Some(bounds.fold(most, u64::min)),
                maximum: usual.maximum,
            },
        );
    }

    fn new(cores: f64, memory: u64) -> Self {
        let pace = Pace::new(cores);
        Self {
            cores,
            pace,
            memory,
        }
    }

    /// Wait if the agent has used more than its processors.
    pub fn rest(&self) {
        self.pace.rest();
    }

    /// Err: the agent has used up its memory. Folded results are freed when they are sent, so others may still fit.
    pub fn refuse_full(&self) -> Result<(), Failure> {
        self.refuse_more(children::private_memory(OWN))
    }

    /// The same with this child and those that take less. The largest are refused first: if one process makes its child
    /// take much, the others do not lose by it.
    pub fn refuse_child(&self, pid: i32) -> Result<(), Failure> {
        let own = children::private_memory(OWN);
        self.refuse_more(own.map(|own| own + children::memory_up_to(pid)))
    }

    fn refuse_more(&self, used: Option<u64>) -> Result<(), Failure> {
        match used {
            Some(bytes) if bytes > self.memory => Err(Failure::new(
                format!(
                    "the agent uses {} MiB of memory; its limit is {} MiB",
                    bytes >> 20,
                    self.memory >> 20
                ),
                LESS,
            )
            .coded(Code::MemoryLimit)
            .with("limit_bytes", self.memory)),
            _ => Ok(()),
        }
    }

    /// A reader that keeps to the agent's pace and memory.
    pub fn reading<R: Read>(&self, inner: R) -> Within<'_, R> {
        Within {
            limits: self,
            inner,
        }
    }

    /// In bytes.
    pub fn memory_part(&self, parts: u64) -> u64 {
        self.memory / parts
    }

    /// The nodes of a call tree, times their values, that a recording with this many events may have. The events share
    /// one tree.
    pub fn cells(&self, events: usize) -> usize {
        (MOST_OF_EVENT * events.clamp(1, 2)).min(self.memory_part(CELL) as usize)
    }

    /// The rows of a recording's times: how many samples a stack has in a span of time.
    pub fn rows(&self) -> usize {
        MOST_ROWS.min(self.memory_part(ROW) as usize)
    }

    pub fn too_large(&self, what: &str) -> Failure {
        let bytes = self.memory >> 20;
        let reason =
            format!("the recording needs more memory than the agent may use ({bytes} MiB): {what}");
        Failure::new(reason, LESS)
            .coded(Code::MemoryLimit)
            .with("limit_bytes", self.memory)
    }

    /// How much longer everything takes than with a whole processor.
    pub fn stretch(&self, time: Duration) -> Duration {
        time.div_f64(self.cores.min(1.0))
    }

    pub fn text(&self) -> String {
        let (cores, memory) = (self.cores, self.memory >> 20);
        let what = if cores == 1.0 {
            "processor"
        } else {
            "processors"
        };
        format!("the agent takes {cores} {what} on average and {memory} MiB of memory at most")
    }
}

pub struct Within<'a, R> {
    limits: &'a Limits,
    inner: R,
}

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

    #[test]
    fn less_of_a_processor_takes_longer() {
        let limits = |cores| Limits::new(cores, 1 << 30);
        let second = Duration::from_secs(1);
        assert_eq!(limits(0.1).stretch(second), 10 * second);
        assert_eq!(limits(4.0).stretch(second), second);
    }

    #[test]
    fn reading_stops_when_memory_is_used_up() {
        let mut buffer = [0; 4];
        let mut read = |memory| {
            Limits::new(1.0, memory)
                .reading(&b"1234"[..])
                .read(&mut buffer)
        };
        let error = read(4096).unwrap_err();
        assert!(error.to_string().contains("memory"), "{error}");
        assert_eq!(read(1 << 40).unwrap(), 4);
    }
}
