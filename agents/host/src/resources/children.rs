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

/// The private memory of a child and of those that have no more, in bytes.
pub fn memory_up_to(pid: i32) -> u64 {
    let private = |pid| private_memory(&format!("/proc/{pid}/statm")).unwrap_or(0);
    let most = private(pid);
    let others: Vec<i32> = all()
        .iter()
        .copied()
        .filter(|&other| other != pid)
        .collect();
    let others = others.into_iter().map(private);
    most + others.filter(|&bytes| bytes <= most).sum::<u64>()
}

/// From such a file of a process, in bytes.
pub fn private_memory(statm: &str) -> Option<u64> {
    let text = read_text(statm, 256)?;
    let mut pages = text.split_ascii_whitespace().skip(1);
    let mut next = || pages.next()?.parse::<u64>().ok();
    let (resident, shared) = (next()?, next()?);
    Some(resident.saturating_sub(shared) * page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(120);

    struct Running(Child, Counted);

    impl Running {
        /// A shell that does this after it has said that it is there.
        fn of(script: &str) -> Self {
            let mut child = Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let said = BufReader::new(child.stdout.take().unwrap()).lines().next();
            assert_eq!(said.unwrap().unwrap(), "ready");
            let counted = Counted::of(child.id() as i32);
            Self(child, counted)
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn what_children_use_counts_as_long_as_they_live() {
        let begin = Instant::now();
        let busy = Running::of("echo ready; while :; do :; done");
        let used = |more: u64| {
            let before = processor_time();
            while processor_time() < before + Duration::from_millis(more) && begin.elapsed() < LONG
            {
            }
            processor_time() - before
        };
        // The test that waits uses as much, which does not count.
        let used = used(200);
        let own = Duration::from_millis(10) * stat::of(busy.1 .0).unwrap().cpu_ticks as u32;
        assert!(used >= Duration::from_millis(200) && own + Duration::from_millis(50) >= used);
        let large = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ready; read x";
        let large = Running::of(large);
        let [less, more] = [&busy, &large].map(|child| memory_up_to(child.1 .0));
        assert!(
            less < 10 << 20 && more > less + (20 << 20) - (2 << 20),
            "{less} {more}"
        );
        assert_eq!(count(), 2);
        drop((busy, large));
        assert_eq!((count(), processor_time()), (0, Duration::ZERO));
    }
}
