//! How much memory the agent may have: what it makes of recordings must fit beside the applications.

use rustix::param::page_size;

use crate::os::free_space::Memory;
use crate::os::proc::read_text;
use crate::wire::outcome::{Code, Failure};

/// The part of what is left on the host, and of what its control groups leave to the agent.
const PART: u64 = 4;
/// In bytes: it needs some to work at all, and never more than the largest recordings take.
const BOUNDS: (u64, u64) = (64 << 20, 512 << 20);
pub const LESS: &str =
    "record for a shorter time, fewer events or with longer intervals, or free memory on the host";

/// The most bytes that the agent may have for itself.
pub struct Bound {
    pub bytes: u64,
}

impl Bound {
    /// What is asked for, or what this host has to spare.
    pub fn new(asked: Option<u64>) -> Self {
        let of_host = || (Memory::of_agent().free() / PART).clamp(BOUNDS.0, BOUNDS.1);
        Self {
            bytes: asked.unwrap_or_else(of_host),
        }
    }

    /// Err once it has them. What was folded is freed as soon as it was sent: others may still have room.
    pub fn refuse_full(&self) -> Result<(), Failure> {
        match own() {
            Some(bytes) if bytes > self.bytes => Err(Failure::new(
                format!(
                    "the agent uses {} MiB of memory; its limit is {} MiB",
                    bytes >> 20,
                    self.bytes >> 20
                ),
                LESS,
            )
            .coded(Code::MemoryLimit)),
            _ => Ok(()),
        }
    }
}

/// What the agent has in memory and shares with nobody, in bytes.
fn own() -> Option<u64> {
    let text = read_text("/proc/self/statm", 256)?;
    let mut pages = text.split_ascii_whitespace().skip(1);
    let mut next = || pages.next()?.parse::<u64>().ok();
    let (resident, shared) = (next()?, next()?);
    Some(resident.saturating_sub(shared) * page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_has_is_counted() {
        let before = own().unwrap();
        let much = vec![1u8; 256 << 20];
        let after = own().unwrap();
        assert!(after > before + (much.len() as u64) / 2);
    }

    #[test]
    fn the_usual_bound_follows_the_host() {
        let usual = Bound::new(None).bytes;
        assert!((BOUNDS.0..=BOUNDS.1).contains(&usual));
        assert_eq!(Bound::new(Some(7)).bytes, 7);
    }
}
