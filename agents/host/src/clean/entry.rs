//! What was found on a host, and what is to become of it.

use std::collections::HashSet;

use rustix::fs::Stat;
use serde::Serialize;

use crate::files::sha256;
use crate::protocol::{Cleaned, Undone};

/// One thing that an hprofiler left, or that looks as if.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Unlike that of anything else of this boot: what is put in its place later has another.
    pub id: String,
    pub kind: Kind,
    /// Of a process its program, of a profiler its library.
    pub path: String,
    pub pid: Option<i32>,
    pub user: String,
    /// How long it is there.
    pub seconds: Option<u64>,
    pub bytes: Option<u64>,
    pub state: State,
    /// In how many seconds one that is ending is left over.
    pub ends: Option<u64>,
    /// Why it is, or is not, left over.
    pub reason: String,
    /// Whether it is the folder that this very agent was started from.
    pub own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Agent,
    /// What an agent ran: perf.
    Program,
    Profiler,
    Folder,
    File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Left over: to be removed.
    Left,
    /// A session that lives uses it.
    Used,
    /// That of an agent that is stopped, or that should have ended, or a cache that other hosts may have used: it is left
    /// over after a time.
    Ending,
    /// Not ours, or not this user's to remove.
    Foreign,
    /// Cannot be told.
    Unknown,
}

impl Entry {
    pub fn of_process(kind: Kind, pid: i32, start_time: u64, path: String, user: String) -> Self {
        let word = match kind {
            Kind::Agent => "agent",
            Kind::Program => "program",
            _ => "profiler",
        };
        Self {
            id: format!("{word}:{pid}:{start_time}"),
            kind,
            path,
            pid: Some(pid),
            user,
            seconds: None,
            bytes: None,
            state: State::Left,
            ends: None,
            reason: String::new(),
            own: false,
        }
    }

    /// A process may have several.
    pub fn of_profiler(pid: i32, start_time: u64, library: String, user: String) -> Self {
        let which = &sha256(library.as_bytes())[..8];
        let entry = Self::of_process(Kind::Profiler, pid, start_time, library.clone(), user);
        Self {
            id: format!("{}:{which}", entry.id),
            ..entry
        }
    }

    /// `now`: seconds since 1970.
    pub fn of_path(kind: Kind, path: String, stat: &Stat, user: String, now: u64) -> Self {
        let word = if kind == Kind::Folder {
            "folder"
        } else {
            "file"
        };
        Self {
            id: format!("{word}:{}:{}", stat.st_dev, stat.st_ino),
            kind,
            path,
            pid: None,
            user,
            seconds: Some(now.saturating_sub(u64::try_from(stat.st_mtime).unwrap_or(0))),
            // How much a folder holds only who may look into it knows.
            bytes: u64::try_from(stat.st_size)
                .ok()
                .filter(|_| kind != Kind::Folder),
            state: State::Left,
            ends: None,
            reason: String::new(),
            own: false,
        }
    }

    pub fn judged(mut self, state: State, reason: impl Into<String>) -> Self {
        (self.state, self.reason) = (state, reason.into());
        self
    }

    /// What to do about what only its own user removes.
    pub fn of_another_user(&self) -> String {
        let user = &self.user;
        let by_sudo = match user.as_str() {
            "root" => ", or --become sudo",
            _ => "",
        };
        format!("it is {user}'s: clean up as that user (--user {user}{by_sudo})")
    }

    /// Left over in so many seconds.
    pub fn ending(self, seconds: u64, reason: impl Into<String>) -> Self {
        Self {
            ends: Some(seconds),
            ..self.judged(State::Ending, reason)
        }
    }

    /// Judged by the agent whose it is.
    pub fn of_agent(self, agent: &Agent, reason: impl Into<String>) -> Self {
        match agent.ends {
            None => self.judged(State::Left, reason),
            Some(seconds) => self.ending(seconds, reason),
        }
    }
}

/// An agent that is left over, or is so in some seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub pid: i32,
    pub ends: Option<u64>,
}

impl Agent {
    pub fn words(&self) -> String {
        match self.ends {
            None => format!("agent {}, which is left over", self.pid),
            Some(_) => format!("agent {}, which is to end", self.pid),
        }
    }
}

/// What is to be removed of what is left over.
pub enum Order {
    /// Nothing: it is listed.
    List,
    All,
    /// What was listed before, by its ids.
    Only(HashSet<String>),
}

impl Order {
    pub fn lists(&self) -> bool {
        matches!(self, Self::List)
    }

    /// Whether it is of any interest what this one's state is.
    pub fn wants(&self, entry: &Entry) -> bool {
        self.lists() || self.names(entry)
    }

    fn names(&self, entry: &Entry) -> bool {
        match self {
            Self::List => false,
            Self::All => true,
            Self::Only(ids) => ids.contains(&entry.id),
        }
    }
}

/// So many JVMs of another user.
#[derive(Debug, Serialize)]
pub struct OutOfReach {
    pub user: String,
    pub jvms: usize,
}

/// All that was found, or all that was done.
#[derive(Debug, Default, Serialize)]
pub struct Found {
    pub entries: Vec<Entry>,
    /// JVMs that were not looked at, for they are of users that this one is not.
    pub out_of_reach: Vec<OutOfReach>,
    #[serde(flatten)]
    pub cleaned: Cleaned,
}

impl Found {
    /// Take in what was found; whether it is to be removed now.
    pub fn meet(&mut self, order: &Order, entry: Entry) -> bool {
        let left = entry.state == State::Left;
        match order {
            Order::List => self.entries.push(entry),
            Order::All if entry.state == State::Unknown => self.fail(what(&entry), entry.reason),
            // It is no failure that somebody came to use it since it was listed.
            Order::Only(_) if matches!(entry.state, State::Used | State::Ending) => {
                if order.names(&entry) {
                    let (what, reason) = (what(&entry), entry.reason);
                    self.cleaned.spared.push(Undone { what, reason });
                }
            }
            Order::Only(_) if !left && order.names(&entry) => {
                let reason = format!("it is not left over any more: {}", entry.reason);
                self.fail(what(&entry), reason);
            }
            _ => return left && order.names(&entry),
        }
        false
    }

    pub fn fail(&mut self, what: impl Into<String>, reason: impl Into<String>) {
        let (what, reason) = (what.into(), reason.into());
        self.cleaned.failed.push(Undone { what, reason });
    }

    pub fn merge(&mut self, more: Self) {
        self.entries.extend(more.entries);
        self.cleaned.removed.extend(more.cleaned.removed);
        self.cleaned.stopped.extend(more.cleaned.stopped);
        self.cleaned.ended.extend(more.cleaned.ended);
        self.cleaned.spared.extend(more.cleaned.spared);
        self.cleaned.failed.extend(more.cleaned.failed);
    }
}

/// A line of the protocol has room for these, in entries and in bytes of their texts, which JSON may make six times as long.
const MOST: usize = 5000;
const MOST_TEXT: usize = 600 << 10;

impl Found {
    /// Leave out what would break a line of the protocol, and say so.
    pub fn bounded(mut self) -> Self {
        let words = |it: &Undone| it.what.len() + it.reason.len();
        let more = bound(&mut self.entries, |it| it.path.len() + it.reason.len())
            + bound(&mut self.cleaned.removed, String::len)
            + bound(&mut self.cleaned.spared, words)
            + bound(&mut self.cleaned.failed, words);
        if more > 0 {
            self.fail(
                "the list",
                format!("it is too long, {more} are not in it: clean up and look again"),
            );
        }
        self
    }
}

/// How many are left out.
fn bound<T>(list: &mut Vec<T>, text: impl Fn(&T) -> usize) -> usize {
    let mut room = MOST_TEXT;
    let fit = list.iter().take(MOST).take_while(|it| {
        let fits = text(it) <= room;
        room = room.saturating_sub(text(it));
        fits
    });
    let fit = fit.count();
    let more = list.len() - fit;
    list.truncate(fit);
    more
}

fn what(entry: &Entry) -> String {
    match entry.pid {
        Some(pid) => format!("process {pid}"),
        None => entry.path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profilers_of_one_jvm_are_told_apart() {
        let of = |library: &str| Entry::of_profiler(7, 9, library.to_owned(), "root".to_owned());
        let (one, other) = (of("/tmp/a/lib.so"), of("/tmp/b/lib.so"));
        assert_ne!(one.id, other.id);
        assert_eq!(one.id, of("/tmp/a/lib.so").id);
    }

    #[test]
    fn a_list_fits_into_a_line() {
        let mut found = Found::default();
        let entry = |path: String| Entry::of_process(Kind::Agent, 1, 2, path, "root".to_owned());
        found.entries = (0..MOST + 9).map(|_| entry("\u{1}".repeat(200))).collect();
        let found = found.bounded();
        assert!(found.entries.len() * 200 <= MOST_TEXT);
        assert!(found.cleaned.failed[0].reason.contains("not in it"));
        assert!(serde_json::to_vec(&found).unwrap().len() < 16 << 20);
        let mut short = Found::default();
        short.entries.push(entry("/tmp/x".to_owned()));
        assert!(short.bounded().cleaned.failed.is_empty());
    }
}
