//! What was found on a host, and what is to become of it.

use std::collections::{HashMap, HashSet};
use std::mem::take;

use rustix::fs::Stat;

use crate::discovery::fair_share::by_turns;
use crate::os::files::sha256;
use crate::wire::events::{Entry, Found, Kind, State, Undone};

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

    fn is_foreign(&self) -> bool {
        self.state == State::Foreign
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
/// No more of what is not to be removed is told of one user.
const MOST_FOREIGN: usize = 50;

impl Found {
    /// Leave out what would break a line of the protocol, and say so. What a user has many of hides nothing of another's,
    /// and what is not to be removed nothing that is.
    pub fn bounded(mut self) -> Self {
        let words = |it: &Undone| it.what.len() + it.reason.len();
        let mut entries = with_few_foreign(self.entries);
        if entries.len() > MOST || entries.iter().map(length).sum::<usize>() > MOST_TEXT {
            entries = wanted_first(entries);
        }
        let untold = bound(&mut entries, length);
        self.entries = entries;
        let more = bound(&mut self.cleaned.removed, String::len).len()
            + bound(&mut self.cleaned.spared, words).len()
            + bound(&mut self.cleaned.failed, words).len();
        let all_foreign = more == 0 && untold.iter().all(Entry::is_foreign);
        let more = more + untold.len();
        let then = match all_foreign {
            true => "none of them is to be removed",
            false => "clean up and look again",
        };
        if more > 0 {
            self.fail(
                "the list",
                format!("it is too long, {more} are not in it: {then}"),
            );
        }
        self
    }
}

fn length(entry: &Entry) -> usize {
    entry.path.len() + entry.reason.len()
}

/// Without those that are more than are told of one user's, but for their number.
fn with_few_foreign(entries: Vec<Entry>) -> Vec<Entry> {
    let mut of_users: HashMap<String, usize> = HashMap::new();
    let mut is_told = |entry: &Entry| {
        if !entry.is_foreign() {
            return true;
        }
        let of_user = of_users.entry(entry.user.clone()).or_default();
        *of_user += 1;
        *of_user <= MOST_FOREIGN
    };
    let mut told: Vec<Entry> = entries.into_iter().filter(|it| is_told(it)).collect();
    for (user, all) in of_users.into_iter().filter(|&(_, all)| all > MOST_FOREIGN) {
        let more = all - MOST_FOREIGN;
        let of_user = |entry: &&mut Entry| entry.is_foreign() && entry.user == user;
        if let Some(last) = told.iter_mut().rfind(of_user) {
            last.reason += &format!("; {more} more of this user's are not listed");
        }
    }
    told
}

/// What is left over, what soon is, the rest, what is not to be removed: of each all users take turns.
fn wanted_first(entries: Vec<Entry>) -> Vec<Entry> {
    let place = |entry: &Entry| match entry.state {
        State::Left => 0,
        State::Ending => 1,
        State::Used | State::Unknown => 2,
        State::Foreign => 3,
    };
    let mut entries = by_turns(entries, |entry| (place(entry), entry.user.clone()));
    entries.sort_by_key(place);
    entries
}

/// Keep what there is room for, the first first. What is left out.
fn bound<T>(list: &mut Vec<T>, length: impl Fn(&T) -> usize) -> Vec<T> {
    let (mut places, mut room) = (MOST, MOST_TEXT);
    let (kept, others) = take(list).into_iter().partition(|it| {
        let left = room.checked_sub(length(it)).filter(|_| places > 0);
        if let Some(left) = left {
            (places, room) = (places - 1, left);
        }
        left.is_some()
    });
    *list = kept;
    others
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

    fn entry(state: State, user: &str, path: String) -> Entry {
        Entry::of_process(Kind::Agent, 1, 2, path, user.to_owned()).judged(state, "why")
    }

    fn bounded(entries: impl Iterator<Item = Entry>) -> Found {
        let entries = entries.collect();
        Found {
            entries,
            ..Found::default()
        }
        .bounded()
    }

    #[test]
    fn a_list_fits_into_a_line() {
        let long = || entry(State::Left, "root", "\u{1}".repeat(200));
        let found = bounded((0..MOST + 9).map(|_| long()));
        assert!(found.entries.len() * 200 <= MOST_TEXT);
        assert!(found.cleaned.failed[0].reason.ends_with("look again"));
        assert!(serde_json::to_vec(&found).unwrap().len() < 16 << 20);
        assert!(bounded([long()].into_iter()).cleaned.failed.is_empty());
    }

    #[test]
    fn of_one_users_that_is_not_to_be_removed_a_few_are_told() {
        let foreign = |user: &str| entry(State::Foreign, user, "/".repeat(3800));
        let crowd = (0..160).map(|_| foreign("mallory"));
        let left = (0..2).map(|_| entry(State::Left, "root", "/tmp/x".to_owned()));
        let found = bounded(crowd.chain([foreign("alice")]).chain(left));
        assert!(
            found.cleaned.failed.is_empty(),
            "nothing of interest is untold"
        );
        let of = |user: &str| found.entries.iter().filter(|it| it.user == user).count();
        assert_eq!((of("mallory"), of("alice"), of("root")), (50, 1, 2));
        let last = found.entries.iter().rfind(|it| it.user == "mallory");
        let reason = &last.unwrap().reason;
        assert_eq!(reason, "why; 110 more of this user's are not listed");
    }

    #[test]
    fn what_is_not_to_be_removed_hides_nothing_that_is() {
        let crowd = (0..900).map(|n| {
            let user = format!("mallory{}", n / 30);
            entry(State::Foreign, &user, "/".repeat(3800))
        });
        let states = [State::Used, State::Ending, State::Left];
        let others = states.map(|state| entry(state, "root", "/tmp/x".to_owned()));
        let found = bounded(crowd.chain(others));
        let told: Vec<State> = found.entries.iter().take(3).map(|it| it.state).collect();
        assert_eq!(told, [State::Left, State::Ending, State::Used]);
        let told = &found.cleaned.failed[0].reason;
        assert!(told.ends_with("none of them is to be removed"), "{told}");
    }

    #[test]
    fn who_left_many_things_hides_nobody_elses() {
        let long = |user: &str| entry(State::Left, user, "/".repeat(3800));
        let crowd = (0..900).map(|_| long("mallory"));
        let found = bounded(crowd.chain((0..20).map(|_| long("root"))));
        let root = found.entries.iter().filter(|it| it.user == "root");
        assert_eq!(root.count(), 20);
        assert!(found.cleaned.failed[0].reason.ends_with("look again"));
    }
}
