//! A recorded process, and the JVM in it. `/proc/PID/smaps` is never read: that would stop the process's mappings.

use super::host::pairs;
use super::jvm::Jvm;
use super::python::PythonWorkers;
use super::run_queue::RunQueue;
use super::table::{Reading, Thing};
use super::Chosen;
use crate::os::proc::target::Target;

const LONGEST: u64 = 16 << 10;

pub struct Process {
    pub target: Target,
    id: String,
    jvm: Option<Jvm>,
    run_queue: RunQueue,
    python: PythonWorkers,
}

impl Process {
    /// None: the process has ended.
    pub fn open(chosen: Chosen) -> Option<Self> {
        Some(Self {
            target: Target::open(chosen.pid, chosen.start_time).ok()?,
            id: chosen.pid.to_string(),
            jvm: chosen.published.and_then(Jvm::open),
            run_queue: RunQueue::default(),
            python: PythonWorkers::default(),
        })
    }

    /// Nothing is read of a process that has ended.
    pub fn read(&mut self, to: &mut Vec<Reading>) {
        let Some(stat) = self.target.stat() else {
            return;
        };
        let mut process = Thing::new("process", &self.id, to);
        process.counter("major_faults", "count", stat.major_faults);
        process.counter("user_ticks", "ticks", stat.user_ticks);
        process.counter("system_ticks", "ticks", stat.system_ticks);
        process.gauge("threads", "count", stat.threads);
        if let Some(text) = self.target.read("status", LONGEST) {
            status(&text, &mut process);
        }
        // Only the process's user, and root, may read it.
        if let Some(text) = self.target.read("io", LONGEST) {
            io(&text, &mut process);
        }
        if let Some(jvm) = &mut self.jvm {
            jvm.read(&self.id, to);
        }
        self.python.read(&self.id, to);
    }

    /// How long its threads waited for a CPU, and which Python workers they have started. Returns how many threads there
    /// are.
    pub fn read_threads(&mut self, to: &mut Vec<Reading>) -> usize {
        self.python.search(&self.target);
        self.run_queue.read(&self.target, &self.id, to)
    }
}

fn status(text: &str, process: &mut Thing) {
    for (word, value) in pairs(text) {
        let name = match word {
            "VmRSS:" => "memory",
            "VmSwap:" => "swap",
            _ => continue,
        };
        process.gauge(name, "bytes", value.saturating_mul(1024));
    }
}

/// What reached disks, not what was read from the page cache.
fn io(text: &str, process: &mut Thing) {
    for (word, value) in pairs(text) {
        let name = match word {
            "read_bytes:" => "read_bytes",
            "write_bytes:" => "written_bytes",
            _ => continue,
        };
        process.counter(name, "bytes", value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::host::tests::told;

    fn read(parse: fn(&str, &mut Thing), text: &str) -> Vec<String> {
        let mut to = Vec::new();
        parse(text, &mut Thing::new("process", "7", &mut to));
        told(&to)
    }

    #[test]
    fn files_of_a_process() {
        assert_eq!(
            read(
                status,
                "Name:\tx\nVmRSS:\t  12 kB\nVmSwap:\t 1 kB\nVmPTE: 1 kB\n"
            ),
            ["process 7 memory 12288", "process 7 swap 1024"]
        );
        assert_eq!(
            read(
                io,
                "rchar: 5\nread_bytes: 4096\nwrite_bytes: 1\ncancelled_write_bytes: 9\n"
            ),
            ["process 7 read_bytes 4096", "process 7 written_bytes 1"]
        );
    }
}
