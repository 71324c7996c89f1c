//! Groups of threads: what their names have in common.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use crate::ops::Threads;

/// Names of threads whose group is remembered; more are forgotten, and worked out anew.
const MOST_REMEMBERED: usize = 1 << 14;

/// The groups that were met, by number.
pub(super) struct Groups {
    most: usize,
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    by_thread: HashMap<Arc<str>, u32>,
}

impl Groups {
    /// No groups yet, and never more than so many.
    pub(super) fn new(most: usize) -> Groups {
        Groups {
            most,
            names: Vec::new(),
            by_name: HashMap::new(),
            by_thread: HashMap::new(),
        }
    }

    /// The group of a thread of this name; `None` when there is no room for it.
    pub(super) fn of(&mut self, thread: &Arc<str>) -> Option<u32> {
        if let Some(&known) = self.by_thread.get(thread) {
            return Some(known);
        }
        let frame = Threads::Groups.frame(thread.as_bytes(), 0);
        let name = String::from_utf8_lossy(&frame.unwrap_or_default()).replace(';', ":");
        let next = self.names.len();
        if next >= self.most && !self.by_name.contains_key(&name) {
            return None;
        }
        let group = *self.by_name.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next as u32
        });
        if self.by_thread.len() >= MOST_REMEMBERED {
            self.by_thread.clear();
        }
        self.by_thread.insert(Arc::clone(thread), group);
        Some(group)
    }

    pub(super) fn name(&self, group: u32) -> &str {
        &self.names[group as usize]
    }
}
