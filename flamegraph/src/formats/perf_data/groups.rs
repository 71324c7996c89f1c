//! What stands above the stacks of threads: groups of threads, or the command as `perf script` prints it.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use crate::formats::ReadOptions;
use crate::ops::Threads;

/// Names of threads whose group is remembered; more are forgotten, and worked out anew.
const MOST_REMEMBERED: usize = 1 << 14;

/// The frames above the stacks of some threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group {
    pub(super) frames: Vec<String>,
    /// The command is a `java`, whose names are condensed.
    pub(super) java: bool,
}

/// The groups that were met, by number.
pub(super) struct Groups {
    most: usize,
    script: Option<ReadOptions>,
    all: Vec<Group>,
    numbers: HashMap<Group, u32>,
    by_thread: HashMap<(Arc<str>, u32, u32), u32>,
}

impl Groups {
    /// No groups yet, and never more than so many.
    pub(super) fn new(most: usize, script: Option<ReadOptions>) -> Groups {
        Groups {
            most,
            script,
            all: Vec::new(),
            numbers: HashMap::new(),
            by_thread: HashMap::new(),
        }
    }

    /// The group of a thread of this name; `None` when there is no room for it.
    pub(super) fn of(&mut self, comm: &Arc<str>, pid: u32, tid: u32) -> Option<u32> {
        // Threads of one name share a group unless the root frame has an id.
        let (pid, tid) = match &self.script {
            None => (0, 0),
            Some(script) if script.perf.tid || script.threads == Threads::Each => (pid, tid),
            Some(script) => (if script.perf.pid { pid } else { 0 }, 0),
        };
        let key = (Arc::clone(comm), pid, tid);
        if let Some(&known) = self.by_thread.get(&key) {
            return Some(known);
        }
        let group = self.group(comm, pid, tid);
        let number = match self.numbers.get(&group) {
            Some(&known) => known,
            None if self.all.len() >= self.most => return None,
            None => {
                let number = self.all.len() as u32;
                self.all.push(group.clone());
                self.numbers.insert(group, number);
                number
            }
        };
        if self.by_thread.len() >= MOST_REMEMBERED {
            self.by_thread.clear();
        }
        self.by_thread.insert(key, number);
        Some(number)
    }

    fn group(&self, comm: &str, pid: u32, tid: u32) -> Group {
        let threads = self
            .script
            .as_ref()
            .map_or(Threads::Groups, |script| script.threads);
        let (pid, tid) = (pid as i32, tid as i32);
        let thread = threads.frame(comm.as_bytes(), i64::from(tid));
        let text = |frame: Vec<u8>| String::from_utf8_lossy(&frame).replace(';', ":");
        let mut frames: Vec<String> = thread.map(text).into_iter().collect();
        let Some(ReadOptions { perf, .. }) = &self.script else {
            return Group {
                frames,
                java: false,
            };
        };
        let name = comm.replace(' ', "_").replace(';', ":");
        frames.push(match (perf.pid, perf.tid) {
            (_, true) => format!("{name}-{pid}/{tid}"),
            (true, false) => format!("{name}-{pid}"),
            (false, false) => name,
        });
        Group {
            frames,
            java: comm.starts_with("java"),
        }
    }

    pub(super) fn of_file(&self) -> bool {
        self.script.is_some()
    }

    pub(super) fn get(&self, number: u32) -> &Group {
        &self.all[number as usize]
    }
}
