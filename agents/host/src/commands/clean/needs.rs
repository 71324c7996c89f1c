//! Folders of libraries that JVMs need: without its file no profiler can be told to stop any more.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use super::lock;

#[derive(Default)]
pub struct Needs {
    /// Folders, and the JVMs whose profilers may record.
    needed: Mutex<HashSet<((u64, u64), i32)>>,
    /// JVMs of which it is not known which libraries they have, and whose they are.
    unread: Mutex<HashMap<i32, u32>>,
}

impl Needs {
    /// Begin with JVMs and their users, of which nothing is known.
    pub fn expect(&self, jvms: impl Iterator<Item = (i32, u32)>) {
        lock(&self.unread).extend(jvms);
    }

    pub fn add(&self, folder: (u64, u64), pid: i32) {
        lock(&self.needed).insert((folder, pid));
    }

    /// All that this JVM needs was added.
    pub fn are_known(&self, pid: i32) {
        lock(&self.unread).remove(&pid);
    }

    pub fn settle(&self, folder: (u64, u64), pid: i32) {
        lock(&self.needed).remove(&(folder, pid));
    }

    /// This JVM has none of our libraries, or has ended.
    pub fn settle_all(&self, pid: i32) {
        lock(&self.needed).retain(|&(_, needing)| needing != pid);
        self.are_known(pid);
    }

    /// Why this folder of this user's must stay.
    pub fn of(&self, folder: (u64, u64), owner: u32) -> Option<String> {
        let needed = lock(&self.needed);
        let pids = needed.iter().filter(|(its, _)| *its == folder);
        if let Some(pid) = pids.map(|&(_, pid)| pid).min() {
            return Some(format!("process {pid} has its library and may record"));
        }
        let unread = lock(&self.unread);
        let pids = unread.iter().filter(|&(_, &uid)| uid == owner);
        let pid = pids.map(|(&pid, _)| pid).min()?;
        Some(format!(
            "process {pid} may have its library, and could not be looked at"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stays_until_it_is_known_that_nobody_needs_it() {
        let (folder, other) = ((1, 2), (1, 3));
        let needs = Needs::default();
        let says =
            |folder, owner, word: &str| needs.of(folder, owner).is_some_and(|it| it.contains(word));
        needs.expect([(7, 1000), (9, 1000)].into_iter());
        assert!(says(folder, 1000, "process 7 may have"));
        assert_eq!(needs.of(folder, 1001), None, "another user's");
        needs.add(folder, 7);
        needs.are_known(7);
        assert!(says(folder, 1000, "process 7 has"));
        assert!(says(other, 1000, "process 9 may have"));
        needs.settle_all(9);
        assert_eq!(needs.of(other, 1000), None);
        needs.settle(folder, 7);
        assert_eq!(needs.of(folder, 1000), None);
    }
}
