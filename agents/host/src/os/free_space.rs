//! How much may be written to a folder beside a process: the free space of its disk. If the folder is in memory
//! (`/dev/shm`, often `/tmp`), the free memory of the host and of the process's control groups.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{fstatfs, fstatvfs};

use crate::os::proc::target::Target;
use crate::os::proc::{number_after, read_text, seen_group};

/// tmpfs and ramfs.
const OF_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
const MEMINFO: &str = "/proc/meminfo";
/// Where control groups limit memory, and their files.
const KINDS: [Kind; 2] = [
    Kind {
        controller: "memory",
        mount: "/sys/fs/cgroup/memory",
        limit: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        idle: "total_inactive_file ",
    },
    Kind {
        controller: "",
        mount: "/sys/fs/cgroup",
        limit: "memory.max",
        used: "memory.current",
        idle: "inactive_file ",
    },
];
/// A larger limit is none, in bytes.
const NO_LIMIT: u64 = 1 << 60;

struct Kind {
    /// As `/proc/PID/cgroup` names it.
    controller: &'static str,
    mount: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` with the memory that the kernel would reclaim first.
    idle: &'static str,
}

/// Where to read the memory that is left to a process. The files are opened before a thread takes the process's user
/// and files, and may not be visible afterwards.
pub struct Memory {
    host: Option<File>,
    groups: Vec<Group>,
}

struct Group {
    limit: u64,
    used: File,
    stat: Option<File>,
    idle: &'static str,
}

/// In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub free: u64,
    pub is_memory: bool,
}

impl Memory {
    pub fn of(target: &Target) -> Self {
        Self::of_groups(
            &target.read("cgroup", 64 << 10).unwrap_or_default(),
            &own_groups(),
        )
    }

    pub fn of_agent() -> Self {
        let own = own_groups();
        Self::of_groups(&own, &own)
    }

    fn of_groups(groups: &str, own: &str) -> Self {
        let kinds = KINDS.iter();
        Self {
            host: File::open(MEMINFO).ok(),
            groups: kinds.flat_map(|kind| kind.groups(groups, own)).collect(),
        }
    }

    /// The least free memory of the host and each group.
    pub fn free(&self) -> u64 {
        let host = self.host.as_ref().and_then(|file| {
            let kib = number_after(&text(file)?, "MemAvailable:")?;
            Some(kib.saturating_mul(1024))
        });
        let groups = self.groups.iter().filter_map(Group::free);
        host.into_iter().chain(groups).min().unwrap_or(u64::MAX)
    }

    /// None: the file system does not report it.
    pub fn room(&self, folder: impl AsFd) -> Option<Room> {
        let (disk, kind) = (fstatvfs(&folder).ok()?, fstatfs(&folder).ok()?);
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let is_memory = OF_MEMORY.contains(&(kind.f_type as u64));
        Some(Room {
            free: match is_memory {
                true => free.min(self.free()),
                false => free,
            },
            is_memory,
        })
    }
}

impl Kind {
    /// The groups of this kind that limit a process, from its `/proc/PID/cgroup` and the agent's: its own, and all
    /// above it. None of a process whose groups the agent does not see.
    fn groups(&self, cgroup: &str, own: &str) -> Vec<Group> {
        let mount = Path::new(self.mount);
        let Some(path) = seen_group(mount, cgroup, own, self.controller) else {
            return Vec::new();
        };
        let folders = path.ancestors().map(|path| mount.join(path));
        folders.filter_map(|folder| self.group(&folder)).collect()
    }

    fn group(&self, folder: &Path) -> Option<Group> {
        let limit = text(&File::open(folder.join(self.limit)).ok()?)?;
        let limit = limit
            .trim()
            .parse()
            .ok()
            .filter(|limit| *limit < NO_LIMIT)?;
        let used = File::open(folder.join(self.used)).ok()?;
        Some(Group {
            limit,
            used,
            stat: File::open(folder.join("memory.stat")).ok(),
            idle: self.idle,
        })
    }
}

impl Group {
    fn free(&self) -> Option<u64> {
        let used: u64 = text(&self.used)?.trim().parse().ok()?;
        let stat = self.stat.as_ref().and_then(text).unwrap_or_default();
        let idle = number_after(&stat, self.idle).unwrap_or(0);
        Some(self.limit.saturating_sub(used.saturating_sub(idle)))
    }
}

fn own_groups() -> String {
    read_text("/proc/self/cgroup", 64 << 10).unwrap_or_default()
}

fn text(file: &File) -> Option<String> {
    let mut bytes = vec![0; 16 << 10];
    let read = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(read);
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::files::tests::Folder;

    const LIMITED: &[(&str, &str)] = &[
        ("memory.max", "1000\n"),
        ("memory.current", "700\n"),
        ("memory.stat", "anon 1\ninactive_file 100\nactive_file 5\n"),
    ];

    fn kind(mount: &str) -> Kind {
        Kind {
            mount: mount.to_owned().leak(),
            ..KINDS[1]
        }
    }

    #[test]
    fn a_group_and_those_above_it_limit_memory() {
        let mount = Folder::new();
        for (name, content) in LIMITED {
            mount.put(format!("outer/inner/{name}"), content);
        }
        mount.put("outer/memory.max", "max\n");
        mount.put("memory.max", "600");
        mount.put("memory.current", "450");
        let kind = kind(mount.to_str().unwrap());
        let own = "0::/container\n";
        for (cgroup, want) in [
            ("4:memory:/x\n0::/outer/inner\n", &[400, 150][..]),
            // A container's mount has its own group as the root.
            (own, &[150]),
            // Not in the agent's view, even where it has a group of that name.
            ("0::/../outer/inner\n", &[]),
            ("0::/other\n", &[]),
            ("4:memory:/outer/inner\n", &[]),
        ] {
            let groups = kind.groups(cgroup, own);
            let free: Vec<u64> = groups.iter().filter_map(Group::free).collect();
            assert_eq!(free, want, "{cgroup}");
        }
    }
}
