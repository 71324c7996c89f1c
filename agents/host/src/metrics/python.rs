//! The Python workers of a Spark JVM and their CPU time, whether or not they are recorded.
//!
//! The JVM starts `pyspark.daemon`, which forks the workers, or without a daemon each `pyspark.worker`.

use std::collections::HashMap;
use std::time::Duration;

use super::table::{Reading, Thing};
use crate::os::proc::target::Target;
use crate::os::proc::{children, path, read_bounded, read_text, split_zero, stat};
use crate::os::worker_pool;

const MOST_THREADS: usize = 8192;
const MOST_FORKS: usize = 1024;
const MODULES: [&str; 2] = ["pyspark.daemon", "pyspark.worker"];
const COMMAND: u64 = 1 << 16;
/// Reading a command line waits for the lock of the process's memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// The Python children of one JVM since the first search.
#[derive(Default)]
pub struct PythonWorkers {
    /// By pid and start time.
    children: HashMap<(i32, u64), Child>,
    searched: bool,
}

/// CPU time in ticks, with that of forked workers.
struct Child {
    first: u64,
    last: u64,
    /// Living workers.
    workers: usize,
}

impl PythonWorkers {
    /// Look for new children. What is new after the first search counts from its start.
    pub fn search(&mut self, target: &Target) {
        let jvm = read_text(path(&format!("{}/comm", target.pid)), 64);
        if jvm.as_deref().map(str::trim_end) != Some("java") {
            return;
        }
        for pid in children(target.pid, MOST_THREADS) {
            let Some(key) = stat::of(pid).map(|stat| (pid, stat.start_time)) else {
                continue;
            };
            if self.children.contains_key(&key) || !is_pyspark(pid) {
                continue;
            }
            let (last, workers) = used(key).unwrap_or_default();
            let first = if self.searched { 0 } else { last };
            let child = Child {
                first,
                last,
                workers,
            };
            self.children.insert(key, child);
        }
        self.searched = true;
    }

    pub fn read(&mut self, id: &str, to: &mut Vec<Reading>) {
        if !self.searched {
            return;
        }
        for (key, child) in &mut self.children {
            let (ticks, workers) = used(*key).unwrap_or_default();
            child.last = child.last.max(ticks);
            child.workers = workers;
        }
        let children = || self.children.values();
        let ticks = children().map(|one| one.last - one.first).sum();
        let workers: usize = children().map(|one| one.workers).sum();
        let mut process = Thing::new("process", id, to);
        process.counter("python_ticks", "ticks", ticks);
        process.gauge("python_workers", "count", workers as u64);
    }
}

fn is_pyspark(pid: i32) -> bool {
    let name = read_text(path(&format!("{pid}/comm")), 64).unwrap_or_default();
    if !name.starts_with("python") && !name.starts_with("pypy") {
        return false;
    }
    let file = path(&format!("{pid}/cmdline"));
    let bytes = worker_pool::run(PATIENCE, move || read_bounded(file, COMMAND));
    let words = split_zero(&bytes.ok().flatten().unwrap_or_default());
    let mut pairs = words.windows(2);
    pairs.any(|pair| pair[0] == "-m" && MODULES.contains(&&*pair[1]))
}

/// The CPU time so far of a child of the JVM and of its own children, also of those that have ended, and how many
/// workers live. None: it has ended.
fn used((pid, start_time): (i32, u64)) -> Option<(u64, usize)> {
    let own = stat::of(pid).filter(|stat| stat.start_time == start_time && stat.lives())?;
    let forks = children(pid, 1);
    let forks = forks.into_iter().take(MOST_FORKS).filter_map(stat::of);
    let forks: Vec<_> = forks
        .filter(|stat| stat.ppid == pid && stat.lives())
        .collect();
    let ticks = |stat: &stat::Stat| stat.cpu_ticks.saturating_add(stat.reaped_ticks);
    let all = forks
        .iter()
        .map(ticks)
        .fold(ticks(&own), u64::saturating_add);
    // Only a daemon has children. A worker without a daemon is one itself.
    Some((all, forks.len().max(1)))
}
