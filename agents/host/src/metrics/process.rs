//! A recorded process, and the JVM in it. `/proc/PID/smaps` is never read: that would stop the process's mappings.

use super::host::pairs;
use super::jvm::Jvm;
use super::run_queue::RunQueue;
use super::table::{Kind, Reading};
use super::Chosen;
use crate::os::proc::target::Target;

const LONGEST: u64 = 16 << 10;

pub struct Process {
    pub target: Target,
    id: String,
    jvm: Option<Jvm>,
    run_queue: RunQueue,
}

impl Process {
    /// None: the process has ended.
    pub fn open(chosen: Chosen) -> Option<Self> {
        Some(Self {
            target: Target::open(chosen.pid, chosen.start_time).ok()?,
            id: chosen.pid.to_string(),
            jvm: chosen.published.and_then(Jvm::open),
            run_queue: RunQueue::default(),
        })
    }

    /// Nothing is read of a process that has ended.
    pub fn read(&mut self, to: &mut Vec<Reading>) {
        let Some(stat) = self.target.stat() else {
            return;
        };
        let mut put = |name: &'static str, kind, unit, value| {
            to.push(Reading {
                of: "process",
                id: self.id.clone(),
                name: name.to_owned(),
                kind,
                unit,
                value,
            });
        };
        put("major_faults", Kind::Counter, "count", stat.major_faults);
        put("user_ticks", Kind::Counter, "ticks", stat.user_ticks);
        put("system_ticks", Kind::Counter, "ticks", stat.system_ticks);
        put("threads", Kind::Gauge, "count", stat.threads);
        if let Some(text) = self.target.read("status", LONGEST) {
            status(&text, &mut put);
        }
        // Only the process's user, and root, may read it.
        if let Some(text) = self.target.read("io", LONGEST) {
            io(&text, &mut put);
        }
        if let Some(jvm) = &mut self.jvm {
            jvm.read(&self.id, to);
        }
    }

    /// How long its threads waited for a CPU. Returns how many there are.
    pub fn read_threads(&mut self, to: &mut Vec<Reading>) -> usize {
        self.run_queue.read(&self.target, &self.id, to)
    }
}

type Put<'a> = &'a mut dyn FnMut(&'static str, Kind, &'static str, u64);

fn status(text: &str, put: Put<'_>) {
    for (word, value) in pairs(text) {
        let name = match word {
            "VmRSS:" => "memory",
            "VmSwap:" => "swap",
            _ => continue,
        };
        put(name, Kind::Gauge, "bytes", value.saturating_mul(1024));
    }
}

/// What reached disks, not what was read from the page cache.
fn io(text: &str, put: Put<'_>) {
    for (word, value) in pairs(text) {
        let name = match word {
            "read_bytes:" => "read_bytes",
            "write_bytes:" => "written_bytes",
            _ => continue,
        };
        put(name, Kind::Counter, "bytes", value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(parse: fn(&str, Put<'_>), text: &str) -> Vec<String> {
        let mut told = Vec::new();
        parse(text, &mut |name, _, _, value| {
            told.push(format!("{name} {value}"))
        });
        told
    }

    #[test]
    fn files_of_a_process() {
        assert_eq!(
            told(
                status,
                "Name:\tx\nVmRSS:\t  12 kB\nVmSwap:\t 1 kB\nVmPTE: 1 kB\n"
            ),
            ["memory 12288", "swap 1024"]
        );
        assert_eq!(
            told(
                io,
                "rchar: 5\nread_bytes: 4096\nwrite_bytes: 1\ncancelled_write_bytes: 9\n"
            ),
            ["read_bytes 4096", "written_bytes 1"]
        );
    }
}
