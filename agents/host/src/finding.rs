//! Which of this host's processes a `find` means.

use std::collections::HashSet;

use crate::containers::{helper, is_wrapper, Containers};
use crate::crowd;
use crate::outcome::Failure;
use crate::own_group::OwnGroup;
use crate::proc::scan::Seen;
use crate::protocol::{Event, Find, Ignored, Process};
use crate::selector::{Query, Selector};

/// Commands are cut at this many bytes.
const COMMAND: usize = 4096;
/// The coordinator does not believe that a host has more.
const MOST: usize = 10_000;
/// Of more processes that are left out nobody reads.
const HELPERS: usize = 100;

/// A `find`, ready to be asked of processes.
pub struct Finding {
    selector: Option<Selector>,
    /// Processes that were asked for by number.
    asked: Vec<i32>,
    native: bool,
    containers: Option<Containers>,
    /// The id of the agent's own container, where that is meant.
    own: Option<(String, OwnGroup)>,
}

impl Finding {
    pub fn new(request: Find) -> Result<Self, Failure> {
        if request.selector.is_none() && request.containers.is_none() {
            return Err(Failure::plain(
                "find names neither a selector nor containers",
            ));
        }
        let named = request.containers.as_deref().unwrap_or_default();
        if request.own.as_ref().is_some_and(|own| !named.contains(own)) {
            return Err(Failure::plain(
                "find does not name the agent's own container",
            ));
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
        })
    }

    /// Ask it of all processes that were seen; `excluded` are this session's own.
    pub fn among(&self, seen: Vec<Seen>, excluded: &HashSet<i32>) -> Event {
        let searched = seen.len();
        let mut ignored = self.missing(&seen, excluded);
        let mut helpers = 0;
        let mut processes = Vec::new();
        for process in seen {
            match self.judge(&process) {
                Verdict::Meant(container) => processes.push(self.tell(process, container)),
                Verdict::Ignored(reason) => {
                    ignored.push(Ignored {
                        pid: process.pid,
                        reason,
                    });
                }
                Verdict::Helper(reason) if helpers < HELPERS => {
                    helpers += 1;
                    ignored.push(Ignored {
                        pid: process.pid,
                        reason,
                    });
                }
                Verdict::Helper(_) | Verdict::Other => {}
            }
        }
        let (processes, left_out) = crowd::that_fit(processes, MOST);
        ignored.extend(left_out);
        Event::Found {
            searched,
            processes,
            ignored,
        }
    }

    fn missing(&self, seen: &[Seen], excluded: &HashSet<i32>) -> Vec<Ignored> {
        let is_seen = |pid: &&i32| seen.iter().any(|process| process.pid == **pid);
        let reason = |pid: &i32| match excluded.contains(pid) {
            true => "part of this hprofiler session",
            false => "there is no such process",
        };
        let missing = self.asked.iter().filter(|pid| !is_seen(pid));
        missing
            .map(|pid| Ignored {
                pid: *pid,
                reason: reason(pid).to_owned(),
            })
            .collect()
    }

    fn judge(&self, process: &Seen) -> Verdict {
        let container = match &self.containers {
            None => None,
            Some(containers) => match self.own_of(process).or_else(|| containers.of(process)) {
                None => return Verdict::Other,
                Some(id) => Some(id.to_owned()),
            },
        };
        let jvm = process.jvm.is_some();
        if !jvm && !self.native && self.asked.contains(&process.pid) {
            return Verdict::Ignored(format!("not a JVM ({})", process.plain_label()));
        }
        let wanted = jvm || self.native;
        let matches = match &self.selector {
            Some(selector) => selector.matches(process, wanted),
            None => jvm || self.native && !is_wrapper(process),
        };
        match container {
            container if matches => Verdict::Meant(container),
            Some(id) if !jvm => helper(process, &id).map_or(Verdict::Other, Verdict::Helper),
            _ => Verdict::Other,
        }
    }

    fn own_of(&self, process: &Seen) -> Option<&str> {
        let (id, group) = self.own.as_ref()?;
        group.holds(process.pid).then_some(id.as_str())
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

/// What a process is to a `find`.
enum Verdict {
    /// Of this container, where containers were asked for.
    Meant(Option<String>),
    Ignored(String),
    /// No JVM, but of a container that was asked for.
    Helper(String),
    Other,
}
