//! The control groups of the recorded processes, of version 1 and 2: CPU time that a limit withheld, and memory.

use std::path::{Path, PathBuf};

use super::host::{pairs, Reread};
use super::process::Process;
use super::table::{id_of, Kind, Reading};

const LONGEST: u64 = 16 << 10;
/// A group may have limits of its own, and all above it.
const DEEPEST: usize = 32;
/// Version 1 has a folder for each of its trees; version 2 may be beside them.
const OF_CPU: [&str; 3] = ["cpu,cpuacct", "cpuacct,cpu", "cpu"];
const UNLIMITED: u64 = 1 << 60;

/// A group, and what is read of it: in version 1 a process may be in one group for CPU time, and in another for memory.
pub struct Group {
    id: String,
    of_cpu: bool,
    of_memory: bool,
    cpu: Reread,
    memory: Reread,
    limit: Reread,
    events: Reread,
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, self.of_cpu, self.of_memory) == (&other.id, other.of_cpu, other.of_memory)
    }
}

const VERSION_1: [&str; 3] = [
    "memory.usage_in_bytes",
    "memory.limit_in_bytes",
    "memory.oom_control",
];
const VERSION_2: [&str; 3] = ["memory.current", "memory.max", "memory.events"];

/// The groups of processes, each once.
pub fn of<'a>(processes: impl Iterator<Item = &'a Process>) -> Vec<Group> {
    let mut found: Vec<Group> = Vec::new();
    for process in processes {
        let text = process.target.read("cgroup", LONGEST).unwrap_or_default();
        for group in open(Path::new("/sys/fs/cgroup"), &text) {
            if !found.contains(&group) {
                found.push(group);
            }
        }
    }
    found
}

/// The groups whose limits count for a process with this `/proc/PID/cgroup`.
fn open(root: &Path, text: &str) -> Vec<Group> {
    let path_in = |tree: &str| {
        let mut lines = text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':')
        });
        let found = lines.find(|(trees, _)| trees.split(',').any(|one| one == tree));
        found.map(|(_, path)| path.trim_start_matches('/'))
    };
    let of_cpu = OF_CPU
        .iter()
        .map(|name| root.join(name))
        .find(|folder| folder.is_dir());
    if let (Some(folder), Some(path)) = (of_cpu, path_in("cpu")) {
        let (cpu, id) = limited(&folder, path);
        let root = root.join("memory");
        let (memory, of_memory) = match path_in("memory").map(|path| (root.join(path), path)) {
            Some((own, path)) if own.is_dir() => (own, id_of(&format!("/{path}"))),
            _ => (root, "/".to_owned()), // a container sees its own group as the root
        };
        if of_memory == id {
            return vec![Group::open(id, Some(&cpu), Some(&memory), VERSION_1)];
        }
        return vec![
            Group::open(id, Some(&cpu), None, VERSION_1),
            Group::open(of_memory, None, Some(&memory), VERSION_1),
        ];
    }
    let Some(path) = path_in("") else {
        return Vec::new();
    };
    let (folder, id) = limited(root, path);
    vec![Group::open(id, Some(&folder), Some(&folder), VERSION_2)]
}

/// The innermost group with a CPU limit, else the process's own; and its name. Only such a group counts periods.
fn limited(root: &Path, path: &str) -> (PathBuf, String) {
    let own = Path::new(path);
    let counts = |path: &&Path| {
        let text = Reread::open(root.join(path).join("cpu.stat"))
            .text()
            .map(str::to_owned);
        text.is_some_and(|text| pairs(&text).any(|(word, value)| word == "nr_periods" && value > 0))
    };
    let usable = !own.components().any(|part| part.as_os_str() == "..");
    let above = own.ancestors().take(if usable { DEEPEST } else { 0 });
    let there = own
        .ancestors()
        .find(|path| usable && root.join(path).is_dir());
    let chosen = above
        .into_iter()
        .find(counts)
        .or(there)
        .unwrap_or(Path::new(""));
    (root.join(chosen), id_of(&format!("/{}", chosen.display())))
}

impl Group {
    fn open(id: String, cpu: Option<&Path>, memory: Option<&Path>, names: [&str; 3]) -> Self {
        let file = |folder: Option<&Path>, name| {
            folder.map_or(Reread::of(None), |folder| Reread::open(folder.join(name)))
        };
        let [used, limit, events] = names.map(|name| file(memory, name));
        Self {
            id,
            of_cpu: cpu.is_some(),
            of_memory: memory.is_some(),
            cpu: file(cpu, "cpu.stat"),
            memory: used,
            limit,
            events,
        }
    }

    pub fn read(&mut self, to: &mut Vec<Reading>) {
        let mut put = |name: &str, kind, unit, value| {
            to.push(Reading {
                of: "cgroup",
                id: self.id.clone(),
                name: name.to_owned(),
                kind,
                unit,
                value,
            });
        };
        for (word, value) in self.cpu.text().into_iter().flat_map(pairs) {
            let (name, unit, value) = match word {
                "nr_periods" => ("periods", "count", value),
                "nr_throttled" => ("throttled_periods", "count", value),
                "throttled_usec" => ("throttled_us", "us", value),
                "throttled_time" => ("throttled_us", "us", value / 1000), // version 1: nanoseconds
                _ => continue,
            };
            put(name, Kind::Counter, unit, value);
        }
        for (name, file) in [
            ("memory_used", &mut self.memory),
            ("memory_limit", &mut self.limit),
        ] {
            // Without a limit it is "max", or a number beyond every memory.
            if let Some(value) = file.number().filter(|value| *value < UNLIMITED) {
                put(name, Kind::Gauge, "bytes", value);
            }
        }
        for (word, value) in self.events.text().into_iter().flat_map(pairs) {
            if word == "oom_kill" {
                put("oom_kills", Kind::Counter, "count", value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::metrics::host::tests::told;

    /// A tree of files, removed with the value.
    struct Tree(PathBuf);

    impl Tree {
        fn of(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir()
                .join(format!("hprofiler-cgroup-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }

        fn read(&self, text: &str) -> Vec<String> {
            let mut to = Vec::new();
            open(&self.0, text)
                .iter_mut()
                .for_each(|group| group.read(&mut to));
            told(&to)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn version_1_has_a_tree_for_each_controller() {
        let tree = Tree::of(
            "one",
            &[
                (
                    "cpu,cpuacct/a/b/cpu.stat",
                    "nr_periods 10\nnr_throttled 4\nthrottled_time 5000\n",
                ),
                ("memory/m/memory.usage_in_bytes", "77\n"),
                ("memory/m/memory.limit_in_bytes", "9223372036854771712\n"),
                (
                    "memory/m/memory.oom_control",
                    "oom_kill_disable 0\noom_kill 2\n",
                ),
            ],
        );
        assert_eq!(
            tree.read("4:memory:/m\n3:cpuacct,cpu:/a/b\n0::/\n"),
            [
                "/a/b periods 10",
                "/a/b throttled_periods 4",
                "/a/b throttled_us 5",
                "/m memory_used 77",
                "/m oom_kills 2"
            ]
            .map(|one| format!("cgroup {one}"))
        );
    }

    #[test]
    fn in_version_2_the_innermost_group_with_a_limit_counts() {
        let tree = Tree::of(
            "two",
            &[
                (
                    "pod/cpu.stat",
                    "usage_usec 5\nnr_periods 10\nnr_throttled 4\nthrottled_usec 5\n",
                ),
                ("pod/memory.current", "77\n"),
                ("pod/memory.max", "max\n"),
                ("pod/memory.events", "low 0\noom 1\noom_kill 1\n"),
                (
                    "pod/jvm/cpu.stat",
                    "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
                ),
                ("pod/jvm/memory.current", "7\n"),
            ],
        );
        assert_eq!(
            tree.read("0::/pod/jvm\n"),
            [
                "periods 10",
                "throttled_periods 4",
                "throttled_us 5",
                "memory_used 77",
                "oom_kills 1"
            ]
            .map(|one| format!("cgroup /pod {one}"))
        );
        // A path of another namespace is not followed.
        assert_eq!(tree.read("0::/../other\n"), [""; 0]);
    }
}
