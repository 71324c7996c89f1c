//! How much of the host's memory the kernel may keep for perf's samples: of all processes of a session together.
//!
//! perf takes a buffer of each processor and a counter of each thread on each processor, for every process: on a host
//! of many processors a few hundred processes would take gigabytes of what applications need.

use std::sync::{Mutex, PoisonError};

use rustix::param::page_size;

use crate::os::host::{self, processors};
use crate::wire::outcome::{Code, Failure};

/// The share of the host's memory, and its bounds in bytes.
const SHARE: u64 = 32;
const BOUNDS: (u64, u64) = (64 << 20, 1 << 30);
/// What the kernel keeps of one counter, roughly.
const COUNTER: u64 = 2 << 10;

/// What all may take, and what they have taken. Nothing is given back: all of a session are recorded at once.
pub struct KernelMemory {
    most: u64,
    taken: Mutex<(u64, usize)>,
}

impl KernelMemory {
    pub fn of_host() -> Self {
        Self::new((host::memory_bytes() / SHARE).clamp(BOUNDS.0, BOUNDS.1))
    }

    fn new(most: u64) -> Self {
        let taken = Mutex::default();
        Self { most, taken }
    }

    /// Take so many bytes for one more process, if there is room.
    pub fn take(&self, bytes: u64) -> Result<(), Failure> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes > self.most - taken.0 {
            return Err(self.full(bytes, taken.1));
        }
        *taken = (taken.0 + bytes, taken.1 + 1);
        Ok(())
    }

    fn full(&self, bytes: u64, processes: usize) -> Failure {
        let most = self.most >> 20;
        let reason = match processes {
            0 => format!(
                "perf would take {} MiB of the kernel's memory for this process alone: {most} MiB are the most for all of a host",
                bytes >> 20
            ),
            _ => format!(
                "this host has room for {processes} processes that perf records at once ({most} MiB of the kernel's memory for their samples), and they are in use"
            ),
        };
        let remedy = "use a narrower selector, a lower frequency or fewer events";
        Failure::new(reason, remedy).coded(Code::MemoryLimit)
    }
}

/// What the kernel keeps for a process of so many threads: buffers of `pages` and a counter of each event.
pub fn bytes(pages: u64, threads: u64, events: usize) -> u64 {
    let buffer = (pages + 1).saturating_mul(page_size() as u64);
    let counters = threads.saturating_mul(events as u64 * COUNTER);
    processors().saturating_mul(buffer.saturating_add(counters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_there_is_room_for() {
        let memory = KernelMemory::new(100 << 20);
        let taken: Vec<_> = (0..4).map(|_| memory.take(30 << 20)).collect();
        let refused = taken[3].as_ref().err().unwrap();
        assert!(
            refused.reason.contains("room for 3 processes"),
            "{refused:?}"
        );
        assert!(refused.remedy.contains("narrower selector"));
        let alone = KernelMemory::new(1).take(u64::MAX).err().unwrap();
        assert!(alone.reason.contains("for this process alone"));
    }

    #[test]
    fn each_processor_has_a_buffer_and_each_thread_a_counter() {
        let one = bytes(64, 1, 1);
        assert!(one >= 65 * page_size() as u64 + COUNTER);
        assert!(bytes(64, 100, 2) >= one + 199 * COUNTER);
        assert_eq!(bytes(u64::MAX - 1, u64::MAX, 16), u64::MAX);
    }
}
