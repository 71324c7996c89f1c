//! A recorded process, and the JVM in it. `/proc/PID/smaps` is never read: that would stop the process's mappings.

use super::host::pairs;
use super::jvm::Jvm;
use super::run_queue::RunQueue;
use super::table::{Kind, Reading};
use super::Chosen;
use crate::os::proc::stat::parse;
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
        let own = self.target.read("stat", LONGEST);
        let Some(own) = own.filter(|text| parse(text).is_some_and(|stat| stat.lives())) else {
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
        stat(&own, &mut put);
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

/// The program's name may contain spaces and parentheses: fields are counted from the last closing one.
fn stat(text: &str, put: Put<'_>) {
    /// Name, kind, unit, and the field by the numbers of proc(5).
    const FIELDS: [(&str, Kind, &str, usize); 4] = [
        ("major_faults", Kind::Counter, "count", 12),
        ("user_ticks", Kind::Counter, "ticks", 14),
        ("system_ticks", Kind::Counter, "ticks", 15),
        ("threads", Kind::Gauge, "count", 20),
    ];
    let Some(end) = text.rfind(')') else {
        return;
    };
    let fields: Vec<&str> = text[end + 1..].split_ascii_whitespace().collect();
    for (name, kind, unit, number) in FIELDS {
        if let Some(value) = fields.get(number - 3).and_then(|word| word.parse().ok()) {
            put(name, kind, unit, value);
        }
    }
}

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
        let line = "7 (a) b) S 12 1 1 0 -1 4194304 100 0 5 0 30 12 0 0 20 0 9 0 98765 1 2 3";
        assert_eq!(
            told(stat, line),
            [
                "major_faults 5",
                "user_ticks 30",
                "system_ticks 12",
                "threads 9"
            ]
        );
        assert_eq!(told(stat, "7 (a"), [""; 0]);
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
