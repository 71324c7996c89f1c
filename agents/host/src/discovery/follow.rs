//! Processes that appear during a recording.
//!
//! A look reads only what is new. Whether a process is meant may depend on others (claims of containers, parents), so
//! as soon as there is a candidate, all processes are searched as for a `find`.

use std::collections::{BTreeMap, HashSet};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::discovery::find::{Finding, Matches};
use crate::discovery::scan::{self, Scanned, Seen};
use crate::jvm::young::age;
use crate::os::proc::{pids, stat};
use crate::os::threads::STACK;

const EVERY: Duration = Duration::from_millis(500);
/// How many times as long as the last look took the agent rests before the next one.
const REST: u32 = 20;
/// Before that a process may be a copy of its parent that is about to execute another program.
const NEWBORN: Duration = Duration::from_millis(100);
/// Before that a process may still become what is meant: a JVM maps its library, a script executes a program.
const SETTLED: Duration = Duration::from_secs(5);
/// The settled processes of which a look checks whether they have executed another program.
const CHECKED: usize = 500;

/// Looks until it is dropped.
pub struct Follower {
    _end: Option<Sender<()>>,
}

impl Follower {
    /// `send` gets what each look finds, also what was found before. Without a thread nothing is looked for.
    pub fn begin(
        finding: Finding,
        excluded: HashSet<i32>,
        send: impl Fn(Matches) + Send + 'static,
    ) -> Self {
        let (end, ended) = channel();
        let work = move || {
            let mut looks = Looks::new(finding, excluded);
            loop {
                let began = Instant::now();
                if let Some(matches) = looks.look() {
                    send(matches);
                }
                let rest = (began.elapsed() * REST).max(EVERY);
                if ended.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("follow".to_owned());
        let started = thread.stack_size(STACK).spawn(work);
        Self {
            _end: started.ok().map(|_| end),
        }
    }
}

/// What is known of a process.
struct Known {
    /// When it started, and its program. None: it has no command line, like a thread of the kernel.
    identity: Option<(u64, String)>,
    /// Until when it is read by each look. None: it is not read again.
    young: Option<Instant>,
}

struct Looks {
    finding: Finding,
    excluded: HashSet<i32>,
    known: BTreeMap<i32, Known>,
    /// The first pid to be checked by the next look.
    next: i32,
    begun: bool,
}

impl Looks {
    fn new(finding: Finding, excluded: HashSet<i32>) -> Self {
        Self {
            finding,
            excluded,
            known: BTreeMap::new(),
            next: 0,
            begun: false,
        }
    }

    /// None: there is no candidate.
    fn look(&mut self) -> Option<Matches> {
        let there: HashSet<i32> = pids().into_iter().collect();
        self.known.retain(|pid, _| there.contains(pid));
        let is_new = |pid: &i32| match self.known.get(pid) {
            Some(known) => known.young.is_some(),
            None => true,
        };
        let mut new: Vec<i32> = there.into_iter().filter(is_new).collect();
        new.extend(self.changed());
        new.sort_unstable();
        if new.is_empty() {
            return None;
        }
        let scanned = scan::some(new.clone(), &self.excluded);
        let all = scanned.seen.iter().chain(&scanned.own);
        let candidates: HashSet<i32> = all
            .filter(|process| self.is_candidate(process))
            .map(|process| process.pid)
            .collect();
        self.remember(&new, &scanned, &candidates);
        let first = !std::mem::replace(&mut self.begun, true);
        if candidates.is_empty() {
            return None;
        }
        let all = match first {
            true => scanned,
            false => scan::processes(&self.excluded),
        };
        Some(self.find(all))
    }

    /// Settled processes that have executed another program, or whose pids belong to others now.
    fn changed(&mut self) -> Vec<i32> {
        let known = self
            .known
            .range(self.next..)
            .chain(self.known.range(..self.next));
        let settled = known.filter(|(_, known)| known.young.is_none() && known.identity.is_some());
        let mut checked = settled.take(CHECKED + 1);
        let first = checked.by_ref().take(CHECKED);
        let changed = first.filter(|(pid, known)| stat::identity(**pid) != known.identity);
        let changed = changed.map(|(pid, _)| *pid).collect();
        self.next = checked.next().map_or(0, |(pid, _)| *pid);
        changed
    }

    fn is_candidate(&self, process: &Seen) -> bool {
        !is_unready(process) && self.finding.may_find(process)
    }

    fn remember(&mut self, new: &[i32], scanned: &Scanned, candidates: &HashSet<i32>) {
        let now = Instant::now();
        let mut ages = BTreeMap::new();
        for process in scanned.seen.iter().chain(&scanned.own) {
            // A JVM that is not meant does not change.
            let settled =
                process.jvm.is_some() && !is_unready(process) && !candidates.contains(&process.pid);
            let age = age(process.start_time);
            ages.insert(process.pid, if settled { SETTLED } else { age });
        }
        for pid in new {
            let identity = ages.get(pid).and_then(|_| stat::identity(*pid));
            let before = self.known.remove(pid);
            let same = before.filter(|before| before.identity == identity);
            let left = match ages.get(pid) {
                Some(age) => SETTLED.saturating_sub(*age),
                None if self.begun => SETTLED,
                None => Duration::ZERO,
            };
            // What has executed another program is young again.
            let until = match same {
                Some(Known { young: until, .. }) => until,
                None => Some(now + left),
            };
            let young = until.filter(|until| *until > now);
            self.known.insert(*pid, Known { identity, young });
        }
    }

    fn find(&self, all: Scanned) -> Matches {
        let seen = all.seen.iter().chain(&all.own);
        let (mut unready, mut settled) = (HashSet::new(), HashSet::new());
        for process in seen {
            if is_unready(process) {
                unready.insert(process.pid);
            } else if age(process.start_time) >= SETTLED {
                settled.insert(process.pid);
            }
        }
        let mut matches = self.finding.among(all, &self.excluded);
        matches.processes.retain(|it| !unready.contains(&it.pid));
        matches.ignored.retain(|it| settled.contains(&it.pid));
        matches
    }
}

/// Whether it may become another program, or a JVM, in a moment.
fn is_unready(process: &Seen) -> bool {
    let age = age(process.start_time);
    let is_launcher = process.jvm.is_none() && process.program == "java";
    age < NEWBORN || is_launcher && age < SETTLED
}
