//! Processes that a Python process forks while it is recorded, such as the workers of `pyspark.daemon`.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use py_spy::PythonSpy;
use rustix::fs::OFlags;

use super::files::Reading;
use super::messages::Order;
use super::tasks::Tasks;
use crate::os::proc::target::Target;
use crate::os::proc::{children, path, read_bounded, stat};

/// How often to look for new ones. A process that was forked to start another program has started it by the next look.
const EVERY: Duration = Duration::from_millis(250);
/// The most of one process that are recorded.
const MOST: usize = 64;
/// The threads that are asked for their children.
const MOST_THREADS: usize = 64;
const COMMAND: u64 = 1 << 16;

pub struct Forks {
    parent: i32,
    /// Its user and group.
    user: (u32, u32),
    command: Vec<u8>,
    reading: Reading,
    /// What started before the agent was there when the user chose.
    agent_start: u64,
    /// The CPU time of those that were there when the recording began, in ticks, by PID and start time.
    before: HashMap<(i32, u64), u64>,
    /// Processes that are not looked at any more: the session records them anyway, or they were opened or refused.
    known: HashSet<i32>,
    /// Of the last look.
    new: HashSet<i32>,
    opened: usize,
    next: Instant,
}

impl Forks {
    pub fn of(order: &Order, reading: Reading) -> Self {
        Self {
            parent: order.pid,
            user: (order.uid, order.gid),
            command: command(order.pid),
            reading,
            agent_start: order.agent_start,
            before: HashMap::new(),
            known: order.recorded.iter().copied().collect(),
            new: HashSet::new(),
            opened: 0,
            next: Instant::now(),
        }
    }

    /// The recording begins.
    pub fn begin(&mut self) {
        let there = children(self.parent, MOST_THREADS).into_iter();
        let ticks = there.filter_map(|pid| {
            let stat = stat::of(pid)?;
            Some(((pid, stat.start_time), stat.cpu_ticks))
        });
        self.before = ticks.collect();
    }

    /// Those that can be sampled from now on.
    pub fn appeared(&mut self) -> Vec<(PythonSpy, Tasks)> {
        if Instant::now() < self.next || self.opened >= MOST {
            return Vec::new();
        }
        self.next = Instant::now() + EVERY;
        let children = children(self.parent, MOST_THREADS);
        let seen_twice: Vec<i32> = self.new.intersection(&children).copied().collect();
        self.known.extend(&seen_twice);
        self.new = children.difference(&self.known).copied().collect();
        let opened = seen_twice.into_iter().filter_map(|pid| self.open(pid));
        let opened: Vec<_> = opened.take(MOST - self.opened).collect();
        self.opened += opened.len();
        opened
    }

    /// None: it is older, or runs another program, or as another user, who must not get at the rights of this one, or
    /// cannot be read.
    fn open(&self, pid: i32) -> Option<(PythonSpy, Tasks)> {
        let began = stat::of(pid)?.start_time;
        if began < self.agent_start || command(pid) != self.command {
            return None;
        }
        let target = Target::open(pid, began).ok()?;
        let status = &target.status;
        if !status.one_user || (status.uid, status.gid) != self.user {
            return None;
        }
        let memory = target.open_link("mem", OFlags::RDONLY).ok()?;
        let spy = self.reading.open(&target, 1).ok()?;
        let before = self.before.get(&(pid, began)).copied().unwrap_or(0);
        Some((spy, Tasks::of(target, memory.into(), before)))
    }
}

fn command(pid: i32) -> Vec<u8> {
    read_bounded(path(&format!("{pid}/cmdline")), COMMAND).unwrap_or_default()
}
