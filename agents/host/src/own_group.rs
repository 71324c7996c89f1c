//! Which processes share the agent's own container: those in its control groups, or below.

use crate::proc::read_text;

const LIMIT: u64 = 1 << 20;

/// The agent's control groups: the number of each hierarchy, and the path there.
pub struct OwnGroup(Vec<(String, String)>);

impl OwnGroup {
    pub fn read() -> Self {
        Self(parse(
            &read_text("/proc/self/cgroup", LIMIT).unwrap_or_default(),
        ))
    }

    /// Whether a process is in them. One whose groups cannot be read is not.
    pub fn holds(&self, pid: i32) -> bool {
        read_text(format!("/proc/{pid}/cgroup"), LIMIT).is_some_and(|text| self.has(&text))
    }

    /// Where the agent's namespace of control groups ends paths lead up and out of it: `/../…`.
    fn has(&self, text: &str) -> bool {
        let theirs = parse(text);
        let below = |own: &str, path: &str| {
            let rest = path.strip_prefix(own.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && !path.starts_with("/..")
        };
        self.0.iter().all(|(hierarchy, own)| {
            let mut same = theirs.iter().filter(|(other, _)| other == hierarchy);
            same.all(|(_, path)| below(own, path))
        })
    }
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
            ("", "0::/anything", true),
        ] {
            let own = OwnGroup(parse(own));
            assert_eq!(own.has(process), want, "{process}");
        }
    }

    #[test]
    fn the_agent_is_in_its_own() {
        let own = OwnGroup::read();
        assert!(own.holds(std::process::id() as i32));
        assert!(!own.holds(-1));
    }
}
