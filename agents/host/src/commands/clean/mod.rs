//! Leftovers of sessions that were broken off, of any version: agents and what they ran, profilers that still record,
//! folders that nobody holds any more. First they are listed; then what was listed is removed if it is still the same.

mod agents;
mod elsewhere;
mod entry;
mod folders;
mod locks;
mod names;
mod needs;
mod profilers;
mod turns;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{stat, Stat};
use rustix::process::{getegid, geteuid};

pub use entry::Order;

use crate::discovery::scan::{self, Overlooked, Seen};
use crate::jvm::loaded::Loaded;
use crate::jvm::preflight::writes_recording;
use crate::os::audit;
use crate::os::identity::Shoes;
use crate::os::proc::memory::words;
use crate::os::proc::target::Target;
use crate::os::proc::users::{homes, Users};
use crate::staging::folders::USUAL;
use crate::wire::events::{Entry, Found, OutOfReach, State};
use entry::Agent;
use folders::Base;
use locks::Locks;
use names::Named;
use needs::Needs;
use turns::Work;

/// All JVMs are asked within this time.
const PATIENCE: Duration = Duration::from_secs(25);
/// All together are read, and their folders looked through, within these: a list has to come before nobody waits for it.
const TO_READ: Duration = Duration::from_secs(5);
const TO_LOOK_THROUGH: Duration = Duration::from_secs(15);
const MOST_USERS: usize = 100;

/// What is the same for everything that is looked at.
pub struct Cleaning {
    order: Order,
    /// Whether what is kept for the next run stays.
    kept: bool,
    excluded: HashSet<i32>,
    /// Whose agents and caches are this user's to remove: its own, and under sudo the connecting user's.
    mine: BTreeSet<(u32, u32)>,
    /// The folder this agent was started from.
    own: Option<(u64, u64)>,
    /// Files and folders that agents which live were started from.
    running: HashSet<(u64, u64)>,
    locks: Locks,
    users: Users,
    /// In seconds since 1970.
    now: u64,
    met: Mutex<HashSet<(u64, u64)>>,
    looked: Mutex<HashSet<((u64, u64), u32)>>,
    strangers: Mutex<HashMap<(u64, u64), Stranger>>,
    needs: Needs,
}

/// Something of another user than the one who looked.
struct Stranger {
    owner: u32,
    /// Whether nobody but its owner removes it.
    private: bool,
    entry: Entry,
}

impl Stranger {
    fn reason(&self) -> String {
        if reaches(self.owner) {
            let what = "it is in a container, and of another user than the JVM there";
            format!("{what}: clean up there")
        } else if self.private {
            self.entry.of_another_user()
        } else {
            let user = &self.entry.user;
            format!("it is {user}'s: clean up as that user, or as root (--become sudo)")
        }
    }
}

impl Cleaning {
    fn may(&self, uid: u32) -> bool {
        self.mine.iter().any(|&(mine, _)| mine == uid)
    }

    /// Whether it was not met before: by another JVM that sees the same folder.
    fn is_first(&self, id: (u64, u64)) -> bool {
        lock(&self.met).insert(id)
    }

    /// Whether nobody has looked through this folder for this user.
    fn looks(&self, folder: (u64, u64), uid: u32) -> bool {
        lock(&self.looked).insert((folder, uid))
    }

    /// What has another owner than who looks at it: told at the end, unless its owner was seen to.
    fn stranger(&self, id: (u64, u64), stranger: Stranger) {
        lock(&self.strangers).insert(id, stranger);
    }

    /// Whether an agent runs from this folder or file.
    fn runs(&self, stat: &Stat) -> bool {
        self.running.contains(&(stat.st_dev, stat.st_ino))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// List or clean this host, as far as this user may. `folder`: what this agent itself keeps for the next run.
pub fn clean(excluded: &HashSet<i32>, order: Order, kept: bool, folder: Option<&str>) -> Found {
    let mut found = Found::default();
    let mut cleaning = Cleaning::begin(excluded, order, kept, folder);
    let agents = agents::look(&cleaning);
    let living = agents.iter().filter(|agent| !agent.is_left());
    cleaning.running = living.flat_map(|agent| agent.from.clone()).collect();
    let mut ending: Vec<Agent> = agents.iter().filter_map(agents::Ours::ends).collect();
    agents::end(&cleaning, agents, &mut found);
    // Those that were ended hold nothing any more; of those that are listed it is told.
    ending.retain(|agent| agent.ends.is_some() || cleaning.order.lists());
    cleaning.locks = Locks::read(ending);
    let cleaning = Arc::new(cleaning);
    clean_jvms(&cleaning, &mut found);
    clean_users(&cleaning, folder, &mut found);
    tell_strangers(&cleaning, &mut found);
    found.bounded()
}

impl Cleaning {
    fn begin(excluded: &HashSet<i32>, order: Order, kept: bool, folder: Option<&str>) -> Self {
        let owner = folder.and_then(|folder| stat(folder).ok());
        let me = (geteuid().as_raw(), getegid().as_raw());
        let connecting = owner.map(|stat| (stat.st_uid, stat.st_gid));
        Self {
            order,
            kept,
            excluded: excluded.clone(),
            mine: connecting.into_iter().chain([me]).collect(),
            own: owner.map(|stat| (stat.st_dev, stat.st_ino)),
            running: HashSet::new(),
            locks: Locks::default(),
            users: Users::read(),
            now: audit::now() as u64,
            met: Mutex::default(),
            looked: Mutex::default(),
            strangers: Mutex::default(),
            needs: Needs::default(),
        }
    }
}

/// Whether no thread asks a JVM any more, or looks through a folder. Each takes away what it put beside a JVM.
pub fn is_over() -> bool {
    turns::at_work() == 0
}

/// As far as this user may: root is every user.
fn reaches(uid: u32) -> bool {
    let own = geteuid().as_raw();
    own == 0 || own == uid
}

/// What one JVM needs, a look at another one's folders would remove: so before anything is asked it is known of all what
/// they need, and their profilers come before all folders.
fn clean_jvms(cleaning: &Arc<Cleaning>, found: &mut Found) {
    let scanned = scan::processes(&cleaning.excluded);
    let overlooked = scanned.overlooked.into_iter();
    let overlooked: Vec<Overlooked> = overlooked.filter(|it| reaches(it.uid)).collect();
    // Whatever it is: any program may have a JVM in it.
    let unknown = overlooked.iter().map(|process| (process.pid, process.uid));
    cleaning.needs.expect(unknown);
    tell_overlooked(overlooked, found);
    let jvms = scanned.seen.into_iter();
    let jvms = jvms.filter(|process| process.jvm.is_some());
    let (jvms, others): (Vec<Seen>, Vec<Seen>) = jvms.partition(|process| reaches(process.uid));
    found.out_of_reach = out_of_reach(others);
    let expected = jvms.iter().map(|jvm| (jvm.pid, jvm.uid));
    cleaning.needs.expect(expected);
    // Who is not read in time is asked all the same, and told of then.
    with_all(cleaning, &jvms, read_needs, TO_READ, &mut Found::default());
    with_all(cleaning, &jvms, clean_profilers, PATIENCE, found);
    with_all(cleaning, &jvms, clean_folders, TO_LOOK_THROUGH, found);
}

/// What we left in those that may be JVMs by their names is not known.
fn tell_overlooked(overlooked: Vec<Overlooked>, found: &mut Found) {
    for process in overlooked {
        let program = process.program.as_str();
        if program == "java" || program.starts_with("jsvc") || program.is_empty() {
            found.fail(format!("process {}", process.pid), words(process.why));
        }
    }
}

/// One step of the work.
fn with_all(
    cleaning: &Arc<Cleaning>,
    jvms: &[Seen],
    step: fn(&Cleaning, i32, u64) -> Found,
    patience: Duration,
    found: &mut Found,
) {
    let works = jvms.iter().map(|process| {
        let (pid, start_time) = (process.pid, process.start_time);
        let cleaning = cleaning.clone();
        Work {
            what: format!("process {pid}"),
            uid: process.uid,
            run: Box::new(move || step(&cleaning, pid, start_time)),
        }
    });
    turns::work(works, patience, found);
}

/// Whose they are; at most so many users.
fn out_of_reach(others: Vec<Seen>) -> Vec<OutOfReach> {
    let mut users: BTreeMap<String, usize> = BTreeMap::new();
    for process in others {
        *users.entry(process.user).or_default() += 1;
    }
    let users = users.into_iter().take(MOST_USERS);
    users
        .map(|(user, jvms)| OutOfReach { user, jvms })
        .collect()
}

/// Which folders of libraries a JVM needs, until it is known that its profilers do not record.
fn read_needs(cleaning: &Cleaning, pid: i32, start_time: u64) -> Found {
    if let Ok(target) = Target::open(pid, start_time) {
        let ours = profilers::ours(&Loaded::of(&target).unwrap_or_default());
        if ours.is_empty() {
            cleaning.needs.settle_all(pid);
        } else if let Ok(shoes) = Shoes::put_on(&target) {
            profilers::need(cleaning, &target, &shoes, &ours);
        }
    } else {
        cleaning.needs.settle_all(pid);
    }
    Found::default()
}

/// The profilers that earlier sessions left running in a JVM.
fn clean_profilers(cleaning: &Cleaning, pid: i32, start_time: u64) -> Found {
    let mut found = Found::default();
    let Ok(target) = Target::open(pid, start_time) else {
        cleaning.needs.settle_all(pid);
        return found;
    };
    let loaded = Loaded::of(&target).unwrap_or_default();
    let paths = profilers::ours(&loaded);
    if paths.is_empty() {
        cleaning.needs.settle_all(pid);
        return found;
    }
    let writing = writes_recording(&target);
    if let Ok(shoes) = Shoes::put_on(&target) {
        let libraries = profilers::Libraries {
            paths,
            writing,
            loaded,
        };
        profilers::look(cleaning, &target, &shoes, libraries, &mut found);
    }
    found
}

/// The folders as a JVM sees them.
fn clean_folders(cleaning: &Cleaning, pid: i32, start_time: u64) -> Found {
    let mut found = Found::default();
    let Ok(target) = Target::open(pid, start_time) else {
        return found;
    };
    let Ok(shoes) = Shoes::put_on(&target) else {
        return found;
    };
    let usual = USUAL.into_iter().map(str::to_owned);
    for path in usual.chain(shoes.cwd_path.clone()) {
        if let Some(base) = Base::open(&shoes, &path) {
            base.look(cleaning, &mut found);
        }
    }
    found
}

/// What users left on this host's own file system.
fn clean_users(cleaning: &Arc<Cleaning>, folder: Option<&str>, found: &mut Found) {
    let end = Instant::now() + PATIENCE;
    let mut owners = cleaning.mine.clone();
    let looking = cleaning.clone();
    let looked = thread::spawn(move || owners_of_leftovers(&looking)).join();
    owners.extend(looked.unwrap_or_default());
    let folder = folder.map(str::to_owned);
    let works = owners.into_iter().map(|(uid, gid)| {
        let (cleaning, folder) = (cleaning.clone(), folder.clone());
        Work {
            what: format!("what user {uid} left"),
            uid,
            run: Box::new(move || clean_as(&cleaning, uid, gid, folder.as_deref())),
        }
    });
    turns::work(works, end.saturating_duration_since(Instant::now()), found);
}

/// The users within reach that something of ours belongs to.
fn owners_of_leftovers(cleaning: &Cleaning) -> BTreeSet<(u32, u32)> {
    let mut owners = BTreeSet::new();
    let Ok(shoes) = Shoes::of_user(geteuid().as_raw(), getegid().as_raw()) else {
        return owners;
    };
    for base in USUAL
        .into_iter()
        .filter_map(|path| Base::open(&shoes, path))
    {
        for stat in base.ours().0.iter().filter_map(|(name, _)| base.stat(name)) {
            if reaches(stat.st_uid) && !cleaning.may(stat.st_uid) {
                owners.insert((stat.st_uid, stat.st_gid));
            }
        }
    }
    owners
}

fn clean_as(cleaning: &Cleaning, uid: u32, gid: u32, folder: Option<&str>) -> Found {
    let mut found = Found::default();
    let Ok(shoes) = Shoes::of_user(uid, gid) else {
        return found;
    };
    for base in USUAL
        .into_iter()
        .filter_map(|path| Base::open(&shoes, path))
    {
        base.look(cleaning, &mut found);
    }
    if !cleaning.may(uid) {
        return found;
    }
    for home in homes(uid) {
        if let Some(base) = Base::open(&shoes, &home) {
            base.look(cleaning, &mut found);
        }
        meet(
            cleaning,
            &shoes,
            &format!("{home}/.cache/{}", names::CACHE),
            &mut found,
        );
    }
    if let Some(folder) = folder {
        meet(cleaning, &shoes, folder, &mut found);
    }
    found
}

/// A folder for what is kept, which may be called as it likes.
fn meet(cleaning: &Cleaning, shoes: &Shoes, folder: &str, found: &mut Found) {
    let path = Path::new(folder);
    let parent = path.parent().and_then(Path::to_str);
    let name = path.file_name().and_then(|name| name.to_str());
    if let (Some(parent), Some(name)) = (parent, name) {
        if let Some(base) = Base::open(shoes, parent) {
            base.meet(cleaning, name, Named::Private, found);
        }
    }
}

/// What was seen by others than its owner, and never as its owner.
fn tell_strangers(cleaning: &Cleaning, found: &mut Found) {
    let met = lock(&cleaning.met);
    for (id, stranger) in lock(&cleaning.strangers).drain() {
        if !met.contains(&id) {
            let reason = stranger.reason();
            found.meet(
                &cleaning.order,
                stranger.entry.judged(State::Foreign, reason),
            );
        }
    }
}
