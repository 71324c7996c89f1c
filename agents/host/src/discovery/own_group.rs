//! Which processes share the agent's own container: those in its control groups, or below. Where these tell nothing,
//! those that see the same mounts: each container has its own, even where all share their processes.

use std::os::unix::fs::MetadataExt;

use crate::os::proc::read_text;

const LIMIT: u64 = 1 << 20;
/// The number of the first namespace of control groups, the host's, on every kernel.
const OF_HOST: u64 = 0xEFFF_FFFB;

/// What the agent's own container is known by.
pub struct OwnGroup {
    /// The number of each hierarchy of control groups, and the path there; none where they tell nothing.
    groups: Vec<(String, String)>,
    /// The namespace of mounts.
    mounts: Option<(u64, u64)>,
}

impl OwnGroup {
    pub fn read() -> Self {
        let told = read_text("/proc/self/cgroup", LIMIT).unwrap_or_default();
        let of_host = namespace("self", "cgroup").is_some_and(|(_, number)| number == OF_HOST);
        Self::of(&told, of_host, namespace("self", "mnt"))
    }

    /// `of_host`: whether paths begin at the host's own groups. There the root is everybody's.
    pub fn of(told: &str, of_host: bool, mounts: Option<(u64, u64)>) -> Self {
        let mut groups = parse(told);
        if of_host && groups.iter().all(|(_, path)| path == "/") {
            groups.clear();
        }
        Self { groups, mounts }
    }

    /// Whether a process is in it. One of which that cannot be read is not.
    pub fn holds(&self, pid: i32) -> bool {
        match self.groups.is_empty() {
            true => self.mounts.is_some() && namespace(&pid.to_string(), "mnt") == self.mounts,
            false => {
                read_text(format!("/proc/{pid}/cgroup"), LIMIT).is_some_and(|text| self.has(&text))
            }
        }
    }

    /// Where the agent's namespace of control groups ends paths lead up and out of it: `/../…`.
    pub fn has(&self, text: &str) -> bool {
        let theirs = parse(text);
        let below = |own: &str, path: &str| {
            let rest = path.strip_prefix(own.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && !path.starts_with("/..")
        };
        let in_one = |(hierarchy, own): &(String, String)| {
            let mut theirs = theirs.iter();
            theirs.any(|(other, path)| other == hierarchy && below(own, path))
        };
        !self.groups.is_empty() && self.groups.iter().all(in_one)
    }
}

/// The device and number of a process's namespace; None where that is not the agent's to see.
fn namespace(process: &str, kind: &str) -> Option<(u64, u64)> {
    let there = std::fs::metadata(format!("/proc/{process}/ns/{kind}")).ok()?;
    Some((there.dev(), there.ino()))
}

fn parse(text: &str) -> Vec<(String, String)> {
    let fields = |line: &str| {
        let mut fields = line.splitn(3, ':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.to_owned()))
    };
    text.lines().filter_map(fields).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_same_container_or_not() {
        for (own, process, want) in [
            ("0::/", "0::/", true),
            ("0::/", "0::/init.scope", true),
            ("0::/", "0::/../cri-containerd-0123.scope", false),
            ("0::/", "0::/../../../../system.slice/sshd.service", false),
            ("0::/", "", false),
            ("0::/kubepods/pod1/abc", "0::/kubepods/pod1/abc", true),
            (
                "0::/kubepods/pod1/abc",
                "0::/kubepods/pod1/abc/worker",
                true,
            ),
            ("0::/kubepods/pod1/abc", "0::/kubepods/pod1/abcd", false),
            ("0::/kubepods/pod1/abc", "0::/kubepods/pod1/def", false),
            (
                "4:cpu:/k/a\n1:name=systemd:/",
                "4:cpu:/k/a\n1:name=systemd:/x",
                true,
            ),
            (
                "4:cpu:/k/a\n1:name=systemd:/",
                "4:cpu:/k/b\n1:name=systemd:/",
                false,
            ),
            ("4:cpu:/k/a\n1:name=systemd:/", "1:name=systemd:/", false),
            ("", "0::/anything", false),
            ("", "", false),
        ] {
            let own = OwnGroup::of(own, false, None);
            assert_eq!(own.has(process), want, "{process}");
        }
    }

    #[test]
    fn groups_that_tell_nothing_are_not_believed() {
        let me = std::process::id() as i32;
        let mounts = namespace("self", "mnt");
        assert!(mounts.is_some());
        for (told, of_host) in [("", false), ("0::/", true), ("4:cpu:/\n0::/\n", true)] {
            assert!(OwnGroup::of(told, of_host, mounts).holds(me), "{told}");
            // Nothing is known of it, or it is another one.
            for other in [None, Some((0, 0))] {
                assert!(!OwnGroup::of(told, of_host, other).holds(me), "{told}");
            }
        }
        let groups = |told, of_host| OwnGroup::of(told, of_host, mounts).groups.len();
        assert_eq!((groups("0::/", false), groups("0::/k/a", true)), (1, 1));
    }

    #[test]
    fn the_agent_is_in_its_own() {
        let own = OwnGroup::read();
        assert!(own.holds(std::process::id() as i32));
        assert!(!own.holds(-1));
    }
}
