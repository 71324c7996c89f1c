//! Which of this host's processes a `find` means.

use std::collections::HashSet;

use rustix::process::geteuid;

use crate::discovery::containers::{helper, is_wrapper, Containers, Evidence, Membership};
use crate::discovery::own_group::OwnGroup;
use crate::discovery::rivals::{self, TrustedFacts};
use crate::discovery::scan::{Overlooked, Scanned, Seen};
use crate::discovery::selector::Selector;
use crate::wire::events::{split_off_excess, Event, Ignored, Process};
use crate::wire::outcome::{Code, Failure};
use crate::wire::requests::Find;
use crate::wire::requests::Query;

/// Commands are cut at this many bytes.
const COMMAND: usize = 4096;
/// The coordinator does not believe that a host has more.
const MOST: usize = 10_000;
/// What processes may take in a line of the protocol, in bytes of JSON.
const LONGEST: usize = 12 << 20;
/// Of more processes that are left out nobody reads.
const FEW: usize = 100;

/// A `find`, ready to be asked of processes.
pub struct Finding {
    selector: Option<Selector>,
    /// Processes that were asked for by number.
    asked: Vec<i32>,
    native: bool,
    containers: Option<Containers>,
    /// The id of the agent's own container, where that is meant.
    own: Option<(String, OwnGroup)>,
    trusted: TrustedFacts,
}

impl Finding {
    pub fn new(request: Find) -> Result<Self, Failure> {
        if request.selector.is_none() && request.containers.is_none() {
            return Err(
                Failure::plain("find names neither a selector nor containers")
                    .coded(Code::BadRequest),
            );
        }
        let named = request.containers.as_deref().unwrap_or_default();
        if request.own.as_ref().is_some_and(|own| !named.contains(own)) {
            return Err(
                Failure::plain("find does not name the agent's own container")
                    .coded(Code::BadRequest),
            );
        }
        let asked = match &request.selector {
            Some(Query::Pids { pids }) => pids.clone(),
            _ => Vec::new(),
        };
        Ok(Self {
            selector: request.selector.map(Selector::new).transpose()?,
            asked,
            native: request.native,
            containers: request.containers.map(Containers::new).transpose()?,
            own: request.own.map(|id| (id, OwnGroup::read())),
            trusted: TrustedFacts {
                owners: request.owners,
                manager_port: request.manager_port,
            },
        })
    }

    /// Ask it of all processes that were seen; `excluded` are this session's own.
    pub fn among(&self, scanned: Scanned, excluded: &HashSet<i32>) -> Event {
        let Scanned { seen, overlooked } = scanned;
        let searched = seen.len();
        let mut ignored = self.missing(&seen, &overlooked, excluded);
        ignored.extend(match self.asked.is_empty() {
            true => may_be_meant(overlooked),
            false => self.not_looked_at(overlooked),
        });
        let mut few = 0;
        let mut processes = Vec::new();
        let memberships = self.memberships(&seen);
        for (process, membership) in seen.into_iter().zip(memberships) {
            let (reason, doubtful) = match self.judge(&process, membership) {
                Verdict::Meant(container) => {
                    processes.push(self.tell(process, container));
                    continue;
                }
                Verdict::Ignored(reason) => (reason, false),
                Verdict::Other(Some(reason)) if few < FEW => {
                    few += 1;
                    (reason, false)
                }
                Verdict::Doubtful(reason) if few < FEW => {
                    few += 1;
                    (reason, true)
                }
                Verdict::Other(_) | Verdict::Doubtful(_) => continue,
            };
            ignored.push(Ignored {
                pid: process.pid,
                reason,
                doubtful,
            });
        }
        let (processes, left_out) = fit_into_line(processes, MOST);
        ignored.extend(left_out);
        Event::Found {
            searched,
            processes,
            ignored,
        }
    }

    /// The container of each process; Err where its own word for that is not believed.
    fn memberships(&self, seen: &[Seen]) -> Vec<Option<Result<String, String>>> {
        let Some(containers) = &self.containers else {
            return seen.iter().map(|_| None).collect();
        };
        let membership = |process: &Seen| self.own_of(process).or_else(|| containers.of(process));
        rivals::settle(seen, seen.iter().map(membership).collect(), &self.trusted)
    }

    /// Those that were asked for, of which nothing is known.
    fn not_looked_at(&self, overlooked: Vec<Overlooked>) -> Vec<Ignored> {
        let asked = |process: &Overlooked| self.asked.contains(&process.pid);
        let asked = overlooked.into_iter().filter(asked);
        asked
            .map(|process| Ignored {
                pid: process.pid,
                reason: process.why.to_string(),
                doubtful: true,
            })
            .collect()
    }

    fn missing(
        &self,
        seen: &[Seen],
        overlooked: &[Overlooked],
        excluded: &HashSet<i32>,
    ) -> Vec<Ignored> {
        let is_seen = |pid: &&i32| {
            let mut pids = seen.iter().map(|process| process.pid);
            pids.any(|it| it == **pid) || overlooked.iter().any(|process| process.pid == **pid)
        };
        let reason = |pid: &i32| match excluded.contains(pid) {
            true => "part of this hprofiler session",
            false => "there is no such process",
        };
        let missing = self.asked.iter().filter(|pid| !is_seen(pid));
        missing
            .map(|pid| Ignored {
                pid: *pid,
                reason: reason(pid).to_owned(),
                doubtful: false,
            })
            .collect()
    }

    fn judge(&self, process: &Seen, membership: Option<Result<String, String>>) -> Verdict {
        let container = match membership {
            None if self.containers.is_some() => return Verdict::Other(None),
            None => None,
            Some(Ok(id)) => Some(id),
            Some(Err(id)) => {
                return Verdict::Other(self.is_wanted(process).then(|| not_believed(&id)))
            }
        };
        if process.jvm.is_none() && !self.native && self.asked.contains(&process.pid) {
            return Verdict::Ignored(format!("not a JVM ({})", process.plain_label()));
        }
        match container {
            container if self.is_wanted(process) => Verdict::Meant(container),
            Some(id) if process.jvm.is_none() => Verdict::Other(helper(process, &id)),
            _ if process.jvm.is_some() || self.native => {
                not_known(process).map_or(Verdict::Other(None), Verdict::Doubtful)
            }
            _ => Verdict::Other(None),
        }
    }

    fn is_wanted(&self, process: &Seen) -> bool {
        let wanted = process.jvm.is_some() || self.native;
        match &self.selector {
            Some(selector) => selector.matches(process, wanted),
            None => process.jvm.is_some() || self.native && !is_wrapper(process),
        }
    }

    fn own_of(&self, process: &Seen) -> Option<Membership> {
        let (id, group) = self.own.as_ref()?;
        group.holds(process.pid).then(|| Membership {
            id: id.clone(),
            evidence: Evidence::Kernel,
        })
    }

    fn tell(&self, process: Seen, container: Option<String>) -> Process {
        let (label, mut labels) = match &self.selector {
            Some(selector) => selector.label(&process),
            None => (process.plain_label(), process.plain_labels()),
        };
        labels.extend(container.map(|id| ("container".to_owned(), id)));
        process.tell(label, labels, COMMAND)
    }
}

fn not_believed(container: &str) -> String {
    format!("it claims to be in container {container}, which has processes of another user")
}

/// Why a process that does not match may be meant. Of one whose user the agent cannot become nothing could be recorded.
fn not_known(process: &Seen) -> Option<String> {
    let missing = process.launch.missing?;
    is_within_reach(process.uid).then(|| format!("{missing}: it may match"))
}

/// The first processes, `most` at most and as many as fit into a line, and a note about the others.
pub fn fit_into_line(mut processes: Vec<Process>, most: usize) -> (Vec<Process>, Option<Ignored>) {
    let others = split_off_excess(&mut processes, most, LONGEST);
    let left_out = others.first().map(|first| Ignored {
        pid: first.pid,
        reason: format!("{} processes are more than can be listed", others.len()),
        doubtful: false,
    });
    (processes, left_out)
}

/// Processes of which nothing is known.
pub fn may_be_meant(overlooked: Vec<Overlooked>) -> Vec<Ignored> {
    let within_reach = overlooked.iter().filter(|it| is_within_reach(it.uid));
    within_reach
        .take(FEW)
        .map(|process| Ignored {
            pid: process.pid,
            reason: format!("{}: it may match", process.why),
            doubtful: true,
        })
        .collect()
}

fn is_within_reach(uid: u32) -> bool {
    let own = geteuid().as_raw();
    own == 0 || own == uid
}

/// What a process is to a `find`.
enum Verdict {
    /// Of this container, where containers were asked for.
    Meant(Option<String>),
    Ignored(String),
    /// Not meant, with a reason where it nearly was.
    Other(Option<String>),
    /// It may be one that is meant.
    Doubtful(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_processes_than_fit_into_a_line() {
        let process = |pid, command: &str| Process {
            pid,
            namespace_pid: pid,
            start_time: 1,
            uid: 7,
            user: "7".to_owned(),
            ppid: 1,
            main_class: String::new(),
            command: command.to_owned(),
            label: String::new(),
            labels: Default::default(),
            jvm: None,
        };
        let short = || (1..=9).map(|pid| process(pid, "")).collect();
        let (told, left_out) = fit_into_line(short(), 9);
        assert!(told.len() == 9 && left_out.is_none());
        let (told, left_out) = fit_into_line(short(), 6);
        assert_eq!((told.len(), left_out.unwrap().pid), (6, 7));
        let long = "\u{1}".repeat(4096);
        let long = (1..=2000).map(|pid| process(pid, &long)).collect();
        let (told, left_out) = fit_into_line(long, 10_000);
        assert!(serde_json::to_string(&told).unwrap().len() < 16 << 20);
        let words = format!(
            "{} processes are more than can be listed",
            2000 - told.len()
        );
        assert_eq!(left_out.unwrap().reason, words);
    }
}
