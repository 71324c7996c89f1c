//! The control groups of the recorded processes, of version 1 and 2: CPU time that a limit withheld, and memory.

use std::fs;
use std::path::{Path, PathBuf};

use super::host::{pairs, Reread};
use super::process::Process;
use super::table::{id_of, Reading, Thing};
use crate::os::proc::target::Target;
use crate::os::proc::{group, seen_group};
use crate::wire::memory::GroupMemory;

const LONGEST: u64 = 16 << 10;
/// A group may have limits of its own, and all above it.
const DEEPEST: usize = 32;
/// Version 1 has a folder for each of its trees; version 2 may be beside them.
const OF_CPU: [&str; 3] = ["cpu,cpuacct", "cpuacct,cpu", "cpu"];
const UNLIMITED: u64 = 1 << 60;

/// A group, and what is read of it, CPU time or memory: one group may limit a process's CPU time, and another its
/// memory.
pub struct Group {
    id: String,
    of_cpu: bool,
    cpu: Reread,
    memory: Reread,
    limit: Reread,
    events: Reread,
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, self.of_cpu) == (&other.id, other.of_cpu)
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
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for process in processes {
        let text = process.target.read("cgroup", LONGEST).unwrap_or_default();
        for group in open(Path::new("/sys/fs/cgroup"), &text, &own) {
            if !found.contains(&group) {
                found.push(group);
            }
        }
    }
    found
}

/// The groups whose limits count for a process with this `/proc/PID/cgroup`; `own` is that of the agent.
fn open(root: &Path, text: &str, own: &str) -> Vec<Group> {
    let trees = Trees::of(root, text);
    let cpu = seen_group(&trees.cpu, text, own, trees.controllers[0]);
    let cpu = cpu.map(|path| limited(&trees.cpu, path));
    let cpu = cpu.map(|path| Group::open(path, Some(&trees.cpu), None, trees.names));
    let memory = trees.memory_group(text, own);
    let memory = memory.map(|path| Group::open(path, None, Some(&trees.memory), trees.names));
    cpu.into_iter().chain(memory).collect()
}

/// The memory of the group whose limit counts for a process.
pub fn memory(target: &Target) -> Option<GroupMemory> {
    let text = target.read("cgroup", LONGEST)?;
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    memory_in(Path::new("/sys/fs/cgroup"), &text, &own)
}

fn memory_in(root: &Path, text: &str, own: &str) -> Option<GroupMemory> {
    let trees = Trees::of(root, text);
    let path = trees.memory_group(text, own)?;
    let open = |name| Reread::open(trees.memory.join(path).join(name));
    let [used, limit, mut events] = trees.names.map(&open);
    let words = match trees.names {
        VERSION_1 => ["total_rss", "total_cache", "total_shmem"],
        _ => ["anon", "file", "shmem"],
    };
    let mut stat = open("memory.stat");
    let [anonymous, file, shared] = words.map(|word| value_of(&mut stat, word));
    let number = |mut file: Reread| file.number().filter(|&bytes| bytes < UNLIMITED);
    Some(GroupMemory {
        id: id_of(&format!("/{}", path.display())),
        limit: number(limit),
        used: number(used),
        anonymous,
        file,
        shared,
        out_of_memory: value_of(&mut events, "oom"),
        oom_kills: value_of(&mut events, "oom_kill"),
    })
}

fn value_of(file: &mut Reread, word: &str) -> Option<u64> {
    let mut found = pairs(file.text()?).filter(|&(name, _)| name == word);
    found.next().map(|(_, value)| value)
}

/// Where the groups are. Version 1 has a tree for each controller.
struct Trees {
    cpu: PathBuf,
    memory: PathBuf,
    controllers: [&'static str; 2],
    names: [&'static str; 3],
}

impl Trees {
    fn of(root: &Path, text: &str) -> Self {
        let mut of_cpu = OF_CPU.iter().map(|name| root.join(name));
        match of_cpu.find(|folder| folder.is_dir()) {
            Some(cpu) if group(text, "cpu").is_some() => Self {
                cpu,
                memory: root.join("memory"),
                controllers: ["cpu", "memory"],
                names: VERSION_1,
            },
            _ => Self {
                cpu: root.to_owned(),
                memory: root.to_owned(),
                controllers: ["", ""],
                names: VERSION_2,
            },
        }
    }

    fn memory_group<'a>(&self, text: &'a str, own: &str) -> Option<&'a Path> {
        let path = seen_group(&self.memory, text, own, self.controllers[1])?;
        Some(tightest(&self.memory, path, self.names[1]))
    }
}

/// The innermost group with a CPU limit, else the process's own. Only such a group counts periods.
fn limited<'a>(root: &Path, path: &'a Path) -> &'a Path {
    let counts = |path: &&Path| {
        let text = Reread::open(root.join(path).join("cpu.stat"))
            .text()
            .map(str::to_owned);
        text.is_some_and(|text| pairs(&text).any(|(word, value)| word == "nr_periods" && value > 0))
    };
    path.ancestors().take(DEEPEST).find(counts).unwrap_or(path)
}

/// The group with the smallest memory limit, of the process's own and all above it; without limits its own.
fn tightest<'a>(root: &Path, path: &'a Path, limit: &str) -> &'a Path {
    let limit = |path: &&Path| {
        let limit = Reread::open(root.join(path).join(limit)).number();
        limit.filter(|limit| *limit < UNLIMITED)
    };
    let limits = path.ancestors().take(DEEPEST);
    let limits = limits.filter_map(|path| Some((limit(&path)?, path)));
    limits
        .min_by_key(|(limit, _)| *limit)
        .map_or(path, |(_, path)| path)
}

impl Group {
    /// With the trees that have its CPU time and its memory.
    fn open(path: &Path, cpu: Option<&Path>, memory: Option<&Path>, names: [&str; 3]) -> Self {
        let file = |tree: Option<&Path>, name| {
            tree.map_or(Reread::of(None), |tree| {
                Reread::open(tree.join(path).join(name))
            })
        };
        let [used, limit, events] = names.map(|name| file(memory, name));
        Self {
            id: id_of(&format!("/{}", path.display())),
            of_cpu: cpu.is_some(),
            cpu: file(cpu, "cpu.stat"),
            memory: used,
            limit,
            events,
        }
    }

    pub fn read(&mut self, to: &mut Vec<Reading>) {
        let mut group = Thing::new("cgroup", &self.id, to);
        for (word, value) in self.cpu.text().into_iter().flat_map(pairs) {
            let (name, unit, value) = match word {
                "nr_periods" => ("periods", "count", value),
                "nr_throttled" => ("throttled_periods", "count", value),
                "throttled_usec" => ("throttled_us", "us", value),
                "throttled_time" => ("throttled_us", "us", value / 1000), // version 1: nanoseconds
                _ => continue,
            };
            group.counter(name, unit, value);
        }
        for (name, file) in [
            ("memory_used", &mut self.memory),
            ("memory_limit", &mut self.limit),
        ] {
            // Without a limit it is "max", or a number beyond every memory.
            if let Some(value) = file.number().filter(|value| *value < UNLIMITED) {
                group.gauge(name, "bytes", value);
            }
        }
        for (word, value) in self.events.text().into_iter().flat_map(pairs) {
            if word == "oom_kill" {
                group.counter("oom_kills", "count", value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::host::tests::told;
    use crate::os::files::tests::Folder;

    fn tree(files: &[(&str, &str)]) -> Folder {
        let tree = Folder::new();
        for (path, text) in files {
            tree.put(path, text);
        }
        tree
    }

    fn read(tree: &Path, text: &str, own: &str) -> Vec<String> {
        let mut to = Vec::new();
        let mut groups = open(tree, text, own);
        groups.iter_mut().for_each(|group| group.read(&mut to));
        told(&to)
    }

    #[test]
    fn version_1_has_a_tree_for_each_controller() {
        let tree = tree(&[
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
        ]);
        assert_eq!(
            read(&tree, "4:memory:/m\n3:cpuacct,cpu:/a/b\n0::/\n", ""),
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
    fn in_version_2_the_innermost_group_with_a_cpu_limit_counts() {
        let tree = tree(&[
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
        ]);
        assert_eq!(
            read(&tree, "0::/pod/jvm\n", "0::/\n"),
            [
                "cgroup /pod periods 10",
                "cgroup /pod throttled_periods 4",
                "cgroup /pod throttled_us 5",
                "cgroup /pod/jvm memory_used 7"
            ]
        );
    }

    /// Of Slurm's jobs, systemd's slices and pods.
    #[test]
    fn the_smallest_memory_limit_on_the_way_up_counts_with_that_groups_usage() {
        let files = [
            ("job/LIMIT", "1000\n"),
            ("job/USED", "900\n"),
            ("job/step/LIMIT", "500\n"),
            ("job/step/USED", "400\n"),
            ("job/step/task/LIMIT", "max\n"),
            ("job/step/task/USED", "7\n"),
        ];
        let kinds = [(VERSION_1, "memory/", "3:memory:"), (VERSION_2, "", "0::")];
        for ([used, limit, _], folder, kind) in kinds {
            let tree = Folder::new();
            for (path, text) in files {
                let path = path.replace("LIMIT", limit).replace("USED", used);
                tree.put(format!("{folder}{path}"), text);
            }
            if kind.contains("memory") {
                tree.put("cpu/job/step/task/cpu.stat", "nr_periods 0\n");
            }
            let text = format!("{kind}/job/step/task\n2:cpu:/job/step/task\n");
            let shown = read(&tree, &text, "");
            let mut of_memory = shown;
            of_memory.retain(|one| one.contains("memory"));
            assert_eq!(
                of_memory,
                ["memory_used 400", "memory_limit 500"]
                    .map(|one| format!("cgroup /job/step {one}")),
            );
        }
    }

    #[test]
    fn memory_of_both_versions_at_one_moment() {
        let one = tree(&[
            ("cpu/a/cpu.stat", "nr_periods 0\n"),
            ("memory/a/memory.usage_in_bytes", "90\n"),
            ("memory/a/memory.limit_in_bytes", "100\n"),
            (
                "memory/a/memory.stat",
                "rss 1\ntotal_rss 70\ntotal_cache 20\ntotal_shmem 5\n",
            ),
            ("memory/a/memory.oom_control", "under_oom 0\noom_kill 2\n"),
        ]);
        let two = tree(&[
            ("a/memory.current", "90\n"),
            ("a/memory.max", "100\n"),
            ("a/memory.stat", "anon 70\nfile 20\nshmem 5\n"),
            ("a/memory.events", "oom 3\noom_kill 2\n"),
        ]);
        let trees = [
            (one, "1:memory:/a\n2:cpu:/a\n", None),
            (two, "0::/a\n", Some(3)),
        ];
        for (tree, text, out_of_memory) in trees {
            let want = GroupMemory {
                id: "/a".to_owned(),
                limit: Some(100),
                used: Some(90),
                anonymous: Some(70),
                file: Some(20),
                shared: Some(5),
                out_of_memory,
                oom_kills: Some(2),
            };
            assert_eq!(memory_in(&tree, text, ""), Some(want));
        }
    }

    #[test]
    fn the_root_of_a_container_is_its_own_group_alone() {
        let tree = tree(&[("memory.current", "77\n")]);
        let own = "0::/docker/one\n";
        assert_eq!(read(&tree, own, own), ["cgroup / memory_used 77"]);
        assert_eq!(read(&tree, "0::/docker/two\n", own), [""; 0]);
        assert_eq!(read(&tree, "0::/../other\n", "0::/\n"), [""; 0]);
    }
}
