//! Processes that appear during a recording.
//!
//! A look reads only what is new. Whether a process is meant may depend on others (claims of containers, parents), so
//! as soon as there is a candidate, all that may matter are read, and searched as for a `find`.

use std::collections::HashSet;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::discovery::find::{Finding, Matches};
use crate::discovery::scan::{self, Scanned, Seen, MOST_PARENTS};
use crate::jvm::young::age;
use crate::os::proc::{pids, stat};
use crate::os::threads::STACK;

const EVERY: Duration = Duration::from_millis(500);
/// The agent rests before the next look, this many times as long as the last one took, but not for longer than this.
const REST: u32 = 4;
const LONGEST_REST: Duration = Duration::from_secs(2);
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
                let rest = (began.elapsed() * REST).clamp(EVERY, LONGEST_REST);
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
    pid: i32,
    /// When it started, and its program. None: it has no command line, like a thread of the kernel.
    identity: Option<(u64, String)>,
    /// Until when it is read by each look. None: it is not read again.
    young: Option<Instant>,
    /// Whether what is found of others may depend on it.
    matters: bool,
}

impl Known {
    /// How long it is still read.
    fn left(&self) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.young.map_or(Duration::ZERO, left)
    }
}

struct Looks {
    finding: Finding,
    excluded: HashSet<i32>,
    /// By pid.
    known: Vec<Known>,
    /// The first pid to be checked by the next look.
    next: i32,
    begun: bool,
}

impl Looks {
    fn new(finding: Finding, excluded: HashSet<i32>) -> Self {
        Self {
            finding,
            excluded,
            known: Vec::new(),
            next: 0,
            begun: false,
        }
    }

    fn place(&self, pid: i32) -> Result<usize, usize> {
        self.known.binary_search_by_key(&pid, |known| known.pid)
    }

    /// None: there is no candidate.
    fn look(&mut self) -> Option<Matches> {
        let mut new = pids();
        new.sort_unstable();
        self.known
            .retain(|known| new.binary_search(&known.pid).is_ok());
        let changed = self.changed();
        new.retain(|pid| match self.place(*pid) {
            Ok(place) => self.known[place].young.is_some() || changed.contains(pid),
            Err(_) => true,
        });
        if new.is_empty() {
            return None;
        }
        let scanned = scan::some(new.clone(), &self.excluded);
        let mut candidates: Vec<&Seen> = scanned.seen.iter().chain(&scanned.own).collect();
        candidates.retain(|process| self.is_candidate(process));
        self.remember(&new, &scanned, &candidates);
        let first = !std::mem::replace(&mut self.begun, true);
        if candidates.is_empty() {
            return None;
        }
        let all = match first {
            true => scanned,
            false => scan::some(self.that_matter(&candidates), &self.excluded),
        };
        let found = self.find(all);
        for process in &found.processes {
            if let Ok(place) = self.place(process.pid) {
                self.known[place].young = None;
            }
        }
        Some(found)
    }

    /// The candidates, their ancestors, and others that matter.
    fn that_matter(&self, candidates: &[&Seen]) -> Vec<i32> {
        let known = self.known.iter().filter(|known| known.matters);
        let mut pids: Vec<i32> = known.map(|known| known.pid).collect();
        for process in candidates {
            pids.push(process.pid);
            let mut pid = process.ppid;
            for _ in 0..MOST_PARENTS {
                pids.push(pid);
                pid = stat::of(pid).map_or(0, |stat| stat.ppid);
            }
        }
        pids.retain(|pid| *pid > 0);
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Settled processes that have executed another program, or whose pids belong to others now.
    fn changed(&mut self) -> Vec<i32> {
        let (before, from) = self
            .known
            .split_at(self.known.partition_point(|known| known.pid < self.next));
        let (mut changed, mut checked) = (Vec::new(), 0);
        self.next = 0;
        for known in from.iter().chain(before) {
            if known.young.is_some() || known.identity.is_none() {
                continue;
            }
            if checked == CHECKED {
                self.next = known.pid;
                break;
            }
            checked += 1;
            if stat::identity(known.pid) != known.identity {
                changed.push(known.pid);
            }
        }
        changed
    }

    fn is_candidate(&self, process: &Seen) -> bool {
        !is_unready(process) && self.finding.may_find(process)
    }

    fn remember(&mut self, new: &[i32], scanned: &Scanned, candidates: &[&Seen]) {
        for &pid in new {
            let mut seen = scanned.own.iter();
            let seen = match scanned.seen.binary_search_by_key(&pid, |it| it.pid) {
                Ok(place) => Some(&scanned.seen[place]),
                Err(_) => seen.find(|it| it.pid == pid),
            };
            let identity = seen.and_then(|_| stat::identity(pid));
            let before = self.place(pid).map(|place| self.known.remove(place)).ok();
            // A JVM that is not meant does not change.
            let is_other_jvm = |it: &Seen| {
                let is_candidate = candidates.iter().any(|one| one.pid == pid);
                it.jvm.is_some() && !is_unready(it) && !is_candidate
            };
            let left = match (seen, &before) {
                (Some(it), _) if is_other_jvm(it) => Duration::ZERO,
                (_, Some(before)) if before.identity == identity => before.left(),
                // It has executed another program.
                (_, Some(_)) => SETTLED,
                (Some(it), None) => SETTLED.saturating_sub(age(it.start_time)),
                (None, None) if self.begun => SETTLED,
                (None, None) => Duration::ZERO,
            };
            let known = Known {
                pid,
                identity,
                young: (!left.is_zero()).then(|| Instant::now() + left),
                matters: seen.is_some_and(|it| self.finding.matters(it)),
            };
            let place = self.known.partition_point(|known| known.pid < pid);
            self.known.insert(place, known);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// Looks until a look finds something, or until `enough`.
    fn look(looks: &mut Looks, enough: impl Fn(&Looks) -> bool) -> Option<Matches> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            assert!(Instant::now() < until);
            let found = looks.look();
            if found.is_some() || enough(looks) {
                return found;
            }
        }
    }

    fn looks_for(regex: &str) -> Looks {
        let request =
            format!(r#"{{"selector":{{"kind":"regex","regex":"^{regex}$"}},"native":true}}"#);
        let finding = Finding::new(serde_json::from_str(&request).unwrap()).unwrap();
        Looks::new(finding, HashSet::new())
    }

    fn is_found(found: Option<Matches>, child: &mut Child) {
        let pid = child.id() as i32;
        child.kill().unwrap();
        child.wait().unwrap();
        let found = found.unwrap().processes;
        assert!(found.iter().map(|it| it.pid).eq([pid]));
    }

    #[test]
    fn a_process_is_found_once_it_is_no_copy_of_its_parent() {
        let mut looks = looks_for("sleep 61[.]717");
        assert!(looks.look().is_none());
        let mut child = Command::new("sleep").arg("61.717").spawn().unwrap();
        let found = look(&mut looks, |_| false);
        assert!(found.as_ref().unwrap().searched < looks.known.len());
        assert!(looks.look().is_none(), "it is not young any more");
        is_found(found, &mut child);
        looks.look();
        assert!(looks.place(child.id() as i32).is_err());
    }

    #[test]
    fn a_process_that_executes_another_program_late_is_read_again() {
        let mut looks = looks_for("sleep 61[.]718");
        let mut script = Command::new("sh");
        script.args(["-c", "read line; exec sleep 61.718"]);
        let mut child = script.stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let is_settled = |looks: &Looks| looks.known[looks.place(pid).unwrap()].young.is_none();
        assert!(look(&mut looks, is_settled).is_none());
        drop(child.stdin.take());
        let found = look(&mut looks, |_| false);
        is_found(found, &mut child);
    }
}
