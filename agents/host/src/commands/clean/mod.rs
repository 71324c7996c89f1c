//! Removes leftovers of interrupted sessions: agents, profilers that still record, and unused folders.
//!
//! Two things that end with their process show what is in use: the lock on a folder, and the lease that an agent shows
//! (`os::lease`).

mod agents;
mod folders;
mod names;
mod profilers;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::stat;
use rustix::process::{getegid, geteuid};

use crate::discovery::scan::{self, Overlooked, Seen};
use crate::os::audit;
use crate::os::files::file_id;
use crate::os::proc::users::Users;
use crate::os::worker_pool::{self, NoResult};
use crate::wire::events::split_off_excess;
use crate::wire::leftovers::{Clean, Done, Kind, Leftover, Leftovers, OutOfReach, State, Unseen};
use folders::View;

/// How many JVMs or folders are checked at a time, and the time for all of them.
const AT_ONCE: usize = 8;
const FOR_PROFILERS: Duration = Duration::from_secs(25);
const FOR_FOLDERS: Duration = Duration::from_secs(20);
const MOST_USERS: usize = 100;
/// Limits of an answer, which is one line of the protocol.
const MOST_ENTRIES: usize = 5000;
const MOST_BYTES: usize = 12 << 20;

/// Device and inode.
type FileId = (u64, u64);

#[derive(Clone)]
struct Sweep {
    order: Arc<Clean>,
    excluded: HashSet<i32>,
    /// The user this agent runs as. Its threads may act as others.
    me: u32,
    /// Whose agents and caches may be removed: those of this user, and under sudo those of the connecting user.
    mine: BTreeSet<(u32, u32)>,
    /// The folder this agent was started from.
    own: Option<FileId>,
    /// The executables of agents that live.
    running: HashSet<FileId>,
    /// Sessions of agents that are left over. In a dry run they still hold their folders.
    ended: HashSet<String>,
    users: Arc<Users>,
    /// In seconds since 1970.
    now: u64,
    /// Folders that were checked, by user: several JVMs may share one.
    looked: Arc<Mutex<HashSet<(FileId, u32)>>>,
}

/// List or clean this host, as far as this user may. `folder`: the cache that this agent uses.
pub fn clean(excluded: &HashSet<i32>, order: Clean, folder: Option<&str>) -> Leftovers {
    let owner = folder.and_then(|folder| stat(folder).ok());
    let me = (geteuid().as_raw(), getegid().as_raw());
    let connecting = owner.map(|stat| (stat.st_uid, stat.st_gid));
    let mut sweep = Sweep {
        order: Arc::new(order),
        excluded: excluded.clone(),
        me: me.0,
        mine: connecting.into_iter().chain([me]).collect(),
        own: owner.map(|stat| file_id(&stat)),
        running: HashSet::new(),
        ended: HashSet::new(),
        users: Arc::new(Users::read()),
        now: audit::now() as u64,
        looked: Arc::default(),
    };
    let mut found = Leftovers::default();
    for agent in agents::sweep(&sweep) {
        match agent.entry.state {
            State::Left => drop(sweep.ended.insert(agent.session())),
            _ => sweep.running.extend(agent.executable),
        }
        found.entries.push(agent.entry);
    }
    let jvms = sweep.jvms(&mut found);
    sweep.sweep_profilers(&jvms, &mut found);
    sweep.sweep_folders(&jvms, folder, &mut found);
    found.bounded()
}

/// A process, by pid, start time and user.
type Jvm = (i32, u64, u32);

impl Sweep {
    fn reaches(&self, uid: u32) -> bool {
        self.me == 0 || self.me == uid
    }

    fn may(&self, uid: u32) -> bool {
        self.mine.iter().any(|&(mine, _)| mine == uid)
    }

    /// All JVMs within reach. Those of other users are counted.
    fn jvms(&self, found: &mut Leftovers) -> Vec<Jvm> {
        let scanned = scan::processes(&self.excluded);
        let within_reach = |it: &Overlooked| self.reaches(it.uid);
        for it in scanned.overlooked.into_iter().filter(within_reach) {
            let program = it.program;
            if program == "java" || program.starts_with("jsvc") || program.is_empty() {
                found.fail(format!("process {}", it.pid), it.why.to_string());
            }
        }
        let jvms = scanned.seen.into_iter().filter(|it| it.jvm.is_some());
        let (jvms, others): (Vec<Seen>, Vec<Seen>) = jvms.partition(|it| self.reaches(it.uid));
        let mut users: BTreeMap<String, usize> = BTreeMap::new();
        for process in others {
            *users.entry(process.user).or_default() += 1;
        }
        let users = users.into_iter().take(MOST_USERS);
        found.out_of_reach = users
            .map(|(user, jvms)| OutOfReach { user, jvms })
            .collect();
        jvms.iter()
            .map(|it| (it.pid, it.start_time, it.uid))
            .collect()
    }

    /// The profilers that earlier sessions left running.
    fn sweep_profilers(&self, jvms: &[Jvm], found: &mut Leftovers) {
        let sweep = self.clone();
        let look = move |(pid, start_time, _)| profilers::sweep(&sweep, pid, start_time);
        let results = worker_pool::run_all(jvms.to_vec(), AT_ONCE, FOR_PROFILERS, look);
        for (&(pid, ..), result) in jvms.iter().zip(results) {
            match result {
                Ok(entries) => found.entries.extend(entries),
                Err(why) => found.late(format!("process {pid}"), why),
            }
        }
    }

    fn sweep_folders(&self, jvms: &[Jvm], folder: Option<&str>, found: &mut Leftovers) {
        let sweep = self.clone();
        let owners = worker_pool::run(FOR_FOLDERS, move || folders::owners(&sweep));
        if let Err(why) = owners {
            found.late("the folders for temporary files".to_owned(), why);
        }
        let owners = self.mine.iter().copied().chain(owners.unwrap_or_default());
        let users = owners.collect::<BTreeSet<_>>().into_iter();
        let users = users.map(|(uid, gid)| View::User { uid, gid });
        let views: Vec<View> = users
            .chain(
                jvms.iter()
                    .map(|&(pid, start_time, _)| View::Jvm { pid, start_time }),
            )
            .collect();
        let (sweep, folder) = (self.clone(), folder.map(str::to_owned));
        let look = move |view: View| folders::sweep(&sweep, &view, folder.as_deref());
        let results = worker_pool::run_all(views.clone(), AT_ONCE, FOR_FOLDERS, look);
        for (view, result) in views.iter().zip(results) {
            match result {
                Ok(more) => {
                    found.entries.extend(more.entries);
                    found.failed.extend(more.failed);
                }
                Err(why) => found.late(view.to_string(), why),
            }
        }
    }

    /// Whether this folder is checked for this user for the first time.
    fn is_first(&self, folder: FileId, uid: u32) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.insert((folder, uid))
    }
}

impl Leftover {
    fn new(kind: Kind, path: String, user: String) -> Self {
        Self {
            kind,
            path,
            pid: None,
            user,
            seconds: None,
            bytes: None,
            state: State::Left,
            reason: String::new(),
            result: None,
        }
    }

    fn judged(self, state: State, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            state,
            reason,
            ..self
        }
    }

    fn foreign(self) -> Self {
        let user = &self.user;
        let by_sudo = match user.as_str() {
            "root" => ", or --become sudo",
            _ => "",
        };
        let reason = format!("it is {user}'s: clean up as that user (--user {user}{by_sudo})");
        self.judged(State::Foreign, reason)
    }

    fn record(&mut self, result: Result<Done, String>) {
        match result {
            Ok(done) => self.result = Some(done),
            Err(reason) => (self.result, self.reason) = (Some(Done::Failed), reason),
        }
    }
}

impl Leftovers {
    fn fail(&mut self, what: String, reason: impl Into<String>) {
        let reason = reason.into();
        self.failed.push(Unseen { what, reason });
    }

    fn late(&mut self, what: String, why: NoResult) {
        let reason = match why {
            NoResult::Stuck => "it could not be checked in time: try again".to_owned(),
            why => why.to_string(),
        };
        self.fail(what, reason);
    }

    /// Keep what fits into a line of the protocol, leftovers first.
    fn bounded(mut self) -> Self {
        self.entries.sort_by_key(|entry| entry.state);
        let more = split_off_excess(&mut self.entries, MOST_ENTRIES, MOST_BYTES).len();
        if more > 0 {
            let reason =
                format!("the list is too long, {more} are left out: clean up and list again");
            self.fail("the list".to_owned(), reason);
        }
        self.failed.truncate(MOST_ENTRIES);
        self
    }
}
