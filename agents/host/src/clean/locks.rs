//! Who holds which folders, by `/proc/locks`: for the words of a list. What is deleted is locked first.

use std::collections::{HashMap, HashSet};

use crate::proc::read_text;

/// By the folder's inode: who holds it, as this pid namespace counts them. Whoever has no number here counts as 0.
#[derive(Default)]
pub struct Locks {
    holders: HashMap<u64, Vec<i32>>,
    /// Agents that are left over themselves.
    left: HashSet<i32>,
}

impl Locks {
    pub fn read(left: HashSet<i32>) -> Self {
        let text = read_text("/proc/locks", 16 << 20).unwrap_or_default();
        let mut holders: HashMap<u64, Vec<i32>> = HashMap::new();
        for (pid, inode) in text.lines().filter_map(parse) {
            holders.entry(inode).or_default().push(pid);
        }
        Self { holders, left }
    }

    /// Whether only agents that are left over hold this folder, and one of them.
    pub fn held_by_left(&self, inode: u64) -> Option<i32> {
        let holders = self.holders.get(&inode)?;
        let all = holders.iter().all(|pid| self.left.contains(pid));
        all.then(|| holders.first().copied()).flatten()
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
        let locks = Locks {
            holders: HashMap::from([(1, vec![7]), (2, vec![7, 8]), (3, vec![0])]),
            left: HashSet::from([7]),
        };
        assert_eq!(locks.held_by_left(1), Some(7));
        assert_eq!(locks.held_by_left(2), None);
        assert_eq!(locks.holder(2), Some(7));
        assert_eq!(locks.held_by_left(3), None);
        assert_eq!(locks.held_by_left(4), None);
    }
}
