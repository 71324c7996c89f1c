//! The agent's children, which are the same program: what they use counts as the agent's.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};

use crate::os::proc::{read_text, stat};

static ALL: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// A child, as long as it counts.
pub struct Counted(i32);

impl Counted {
    pub fn of(pid: i32) -> Self {
        all().push(pid);
        Self(pid)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        all().retain(|&pid| pid != self.0);
    }
}

fn all() -> MutexGuard<'static, Vec<i32>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn count() -> usize {
    all().len()
}

/// The processor time of those that live.
pub fn processor_time() -> Duration {
    let ticks = |&pid: &i32| Some(stat::of(pid)?.cpu_ticks);
    let ticks: u64 = all().iter().filter_map(ticks).sum();
    Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
}

/// The private memory of those that live, in bytes.
pub fn memory() -> u64 {
    let private = |pid: &i32| private_memory(&format!("/proc/{pid}/statm"));
    all().iter().filter_map(private).sum()
}

/// From such a file of a process, in bytes.
pub fn private_memory(statm: &str) -> Option<u64> {
    let text = read_text(statm, 256)?;
    let mut pages = text.split_ascii_whitespace().skip(1);
    let mut next = || pages.next()?.parse::<u64>().ok();
    let (resident, shared) = (next()?, next()?);
    Some(resident.saturating_sub(shared) * page_size() as u64)
}
