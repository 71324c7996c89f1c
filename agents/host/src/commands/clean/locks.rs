//! Who holds which folders, by `/proc/locks`: for the words of a list. What is deleted is locked first.

use std::collections::HashMap;

use super::entry::Agent;
use crate::os::proc::read_text;

/// By the folder's inode: who holds it, as this pid namespace counts them. Whoever has no number here counts as 0.
#[derive(Default)]
pub struct Locks {
    holders: HashMap<u64, Vec<i32>>,
    /// Agents that are left over themselves, or soon are.
    agents: Vec<Agent>,
}

impl Locks {
    pub fn read(agents: Vec<Agent>) -> Self {
        let text = read_text("/proc/locks", 16 << 20).unwrap_or_default();
        let mut holders: HashMap<u64, Vec<i32>> = HashMap::new();
        for (pid, inode) in text.lines().filter_map(parse) {
            holders.entry(inode).or_default().push(pid);
        }
        Self { holders, agents }
    }

    /// The agent that holds this folder, and goes last, where only such hold it as are left over or soon are.
    pub fn held_by_ending(&self, inode: u64) -> Option<Agent> {
        let holders = self.holders.get(&inode)?.iter();
        let agents = holders.map(|&pid| self.agents.iter().find(|agent| agent.pid == pid));
        let agents: Option<Vec<&Agent>> = agents.collect();
        agents?.into_iter().max_by_key(|agent| agent.ends).cloned()
    }

    /// One that lives and holds it, if it is known.
    pub fn holder(&self, inode: u64) -> Option<i32> {
        let mut holders = self.holders.get(&inode)?.iter();
        holders.find(|&&pid| pid > 0).copied()
    }
}

/// Pid and inode of a lock on a whole file (`flock`).
fn parse(line: &str) -> Option<(i32, u64)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    words.next().filter(|&word| word == "FLOCK")?;
    let pid = words.nth(2)?.parse().ok()?;
    let inode = words.next()?.rsplit(':').next()?.parse().ok()?;
    Some((pid, inode))
}

#[cfg(test)]
impl Locks {
    /// Of folders and those who hold them.
    pub fn of(holders: &[(u64, i32)], agents: &[Agent]) -> Self {
        let holders = holders.iter().map(|&(folder, pid)| (folder, vec![pid]));
        Self {
            holders: holders.collect(),
            agents: agents.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_locks_of_whole_files_count() {
        let line = "4: FLOCK  ADVISORY  READ 812 08:01:393 0 EOF";
        assert_eq!(parse(line), Some((812, 393)));
        assert_eq!(parse("1: POSIX  ADVISORY  WRITE 5 08:01:9 0 EOF"), None);
        assert_eq!(parse("4: -> FLOCK  ADVISORY  WRITE 9 08:01:9 0 EOF"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_folder_of_agents_that_are_left_over_is_so_too() {
        let agent = |pid, ends| Agent { pid, ends };
        let (left, soon) = (agent(7, None), agent(9, Some(20)));
        let locks = Locks {
            holders: HashMap::from([(1, vec![7]), (2, vec![7, 8]), (3, vec![0]), (5, vec![9, 7])]),
            agents: vec![left.clone(), soon.clone()],
        };
        assert_eq!(locks.held_by_ending(1), Some(left));
        assert_eq!(locks.held_by_ending(2), None);
        assert_eq!(locks.holder(2), Some(7));
        assert_eq!(locks.held_by_ending(3), None);
        assert_eq!(locks.held_by_ending(4), None);
        assert_eq!(locks.held_by_ending(5), Some(soon));
    }
}
