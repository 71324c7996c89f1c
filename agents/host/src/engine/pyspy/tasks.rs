//! The threads of a process by the kernel's account: which of them run, and their names.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::os::proc::stat;
use crate::os::proc::target::Target;

/// The bytes of a C library's description of a thread in which the thread's number is searched.
const DESCRIPTION: usize = 1024;
/// The place of a flag, among numbers of four bytes.
const MULTIPLE_THREADS: usize = 6;

pub struct Task {
    pub running: bool,
    /// The nanoseconds for which it has run on a processor. None: the kernel does not say it, or it does not run.
    pub ran: Option<u64>,
    pub name: String,
}

/// The threads of one process. They are known by the number that the process itself sees, which differs in a container.
pub struct Tasks {
    pub target: Target,
    memory: File,
    /// The process's own number of each thread, by the agent's.
    numbers: HashMap<i32, i32>,
    /// The number of a thread, by what Python before 3.11 knows of it: the address of its description.
    described: HashMap<u64, i32>,
    /// The CPU time of the process before the recording, and since then, at the last read.
    before: u64,
    pub cpu_ticks: u64,
}

impl Tasks {
    /// `memory` is the process's `/proc/PID/mem`, `before` its CPU time before the recording.
    pub fn of(target: Target, memory: File, before: u64) -> Self {
        Self {
            target,
            memory,
            numbers: HashMap::new(),
            described: HashMap::new(),
            before,
            cpu_ticks: 0,
        }
    }

    /// None: the process has ended.
    pub fn read(&mut self) -> Option<HashMap<i32, Task>> {
        self.cpu_ticks = self.target.stat()?.cpu_ticks.saturating_sub(self.before);
        let numbers: HashSet<i32> = self.target.threads().into_iter().collect();
        self.numbers.retain(|number, _| numbers.contains(number));
        let tasks = numbers.into_iter().filter_map(|number| {
            let line = self.target.read(&format!("task/{number}/stat"), 4096)?;
            let name = &line[line.find('(')? + 1..line.rfind(')')?];
            let running = stat::parse(&line)?.state == 'R';
            let read = || {
                let line = self.target.read(&format!("task/{number}/schedstat"), 256)?;
                line.split_ascii_whitespace().next()?.parse().ok()
            };
            let task = Task {
                running,
                ran: running.then(read).flatten(),
                name: name.to_owned(),
            };
            Some((self.own_number(number)?, task))
        });
        Some(tasks.collect())
    }

    /// The agent's number of a thread, by the process's own.
    pub fn number_of(&self, own: i32) -> Option<i32> {
        if self.target.status.namespace_pid == self.target.pid {
            return Some(own);
        }
        let mut numbers = self.numbers.iter();
        numbers.find_map(|(&number, &known)| (known == own).then_some(number))
    }

    pub fn memory(&self) -> &File {
        &self.memory
    }

    fn own_number(&mut self, number: i32) -> Option<i32> {
        if self.target.status.namespace_pid == self.target.pid {
            return Some(number);
        }
        if let Some(&known) = self.numbers.get(&number) {
            return Some(known);
        }
        let status = self
            .target
            .read(&format!("task/{number}/status"), 1 << 16)?;
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let own = line?.split_ascii_whitespace().last()?.parse().ok()?;
        self.numbers.insert(number, own);
        Some(own)
    }

    /// The number of a thread whose description in the C library is at this address. The description contains the
    /// number, at a place that depends on the library.
    pub fn described_at(&mut self, address: u64, tasks: &HashMap<i32, Task>) -> Option<i32> {
        let known = self.described.get(&address);
        if let Some(known) = known.filter(|known| tasks.contains_key(known)) {
            return Some(*known);
        }
        let mut bytes = [0; DESCRIPTION];
        let read = self.memory.read_at(&mut bytes, address).ok()?;
        let numbers = bytes[..read].chunks_exact(4);
        let numbers = numbers.map(|four| i32::from_ne_bytes([four[0], four[1], four[2], four[3]]));
        // glibc says there whether there are several threads, with 1, which in a container is a thread, too.
        let is_flag = |place: usize, number: i32| place == MULTIPLE_THREADS && number == 1;
        let (_, number) = numbers
            .enumerate()
            .find(|(place, number)| tasks.contains_key(number) && !is_flag(*place, *number))?;
        self.described.insert(address, number);
        Some(number)
    }
}
