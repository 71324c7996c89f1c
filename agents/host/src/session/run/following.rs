//! Processes that appear during a recording: each is named once, and may join.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Session;
use crate::discovery::find::{Finding, Matches};
use crate::discovery::follow::Follower;
use crate::recording::group::refuse_late;
use crate::session::inbox::Message;
use crate::wire::events::{Event, Ignored, Process};
use crate::wire::outcome::Failure;
use crate::wire::requests::{Chosen, Find};

/// The most processes that a session names, and the most that it names as ignored.
const MOST: usize = 100_000;
const MOST_IGNORED: usize = 1000;

#[derive(Default)]
pub(super) enum Follow {
    #[default]
    Nothing,
    /// From the start of the recording on.
    Asked(Box<Finding>),
    Looks {
        _until_dropped: Follower,
    },
}

/// What the session has named.
#[derive(Default)]
pub(super) struct Named {
    processes: HashSet<i32>,
    /// What those that are not JVMs have in common with their forks, by pid.
    programs: Vec<(i32, u64)>,
    ignored: HashSet<i32>,
}

impl Named {
    pub fn add(&mut self, processes: &[Process], ignored: &[Ignored]) {
        self.processes.extend(processes.iter().map(|it| it.pid));
        let programs = processes.iter();
        let programs = programs.filter_map(|it| Some((it.pid, program(it)?)));
        self.programs.extend(programs);
        self.ignored.extend(ignored.iter().map(|it| it.pid));
    }

    /// Keep only what is new. What was forked by a process is recorded with it.
    fn keep_new(&self, matches: &mut Matches) {
        let is_fork = |process: &Process| {
            let mut programs = self.programs.iter();
            let parent = programs.find(|(pid, _)| *pid == process.ppid);
            parent.is_some_and(|(_, parent)| Some(*parent) == program(process))
        };
        let named = &self.processes;
        matches
            .processes
            .retain(|it| !named.contains(&it.pid) && !is_fork(it));
        let room = MOST.saturating_sub(named.len());
        matches.processes.truncate(room);
        matches
            .ignored
            .retain(|it| !self.ignored.contains(&it.pid) && !named.contains(&it.pid));
        let room = MOST_IGNORED.saturating_sub(self.ignored.len());
        matches.ignored.truncate(room);
    }
}

/// None: it is a JVM, which does not fork.
fn program(process: &Process) -> Option<u64> {
    process.jvm.is_none().then(|| {
        let mut hasher = DefaultHasher::new();
        (process.uid, &process.command).hash(&mut hasher);
        hasher.finish()
    })
}

impl Session {
    pub(super) fn follow(&mut self, request: Find) -> Result<(), Failure> {
        let finding = Finding::new(request)?;
        // It may come when the recording is over.
        if let Some(recordings) = &mut self.recordings {
            recordings.follow();
            self.follow = Follow::Asked(Box::new(finding));
            self.advance();
        }
        Ok(())
    }

    /// Look as long as others may join.
    pub(super) fn follow_while_open(&mut self) {
        let open = self.recordings.as_ref().is_some_and(|it| it.is_open());
        self.follow = match std::mem::take(&mut self.follow) {
            Follow::Asked(finding) if open => {
                let inbox = self.inbox.sender.clone();
                let send = move |matches| {
                    let _ = inbox.send(Message::Appeared(matches));
                };
                let _until_dropped = Follower::begin(*finding, self.excluded.clone(), send);
                Follow::Looks { _until_dropped }
            }
            Follow::Looks { .. } if !open => Follow::Nothing,
            other => other,
        };
    }

    pub(super) fn appeared(&mut self, mut matches: Matches) {
        self.named.keep_new(&mut matches);
        let Matches {
            processes, ignored, ..
        } = matches;
        let nothing = processes.is_empty() && ignored.is_empty();
        if nothing || !matches!(self.follow, Follow::Looks { .. }) {
            return;
        }
        self.named.add(&processes, &ignored);
        self.output.send(&Event::Appeared { processes, ignored });
    }

    pub(super) fn join(&mut self, processes: Vec<Chosen>) -> Result<(), Failure> {
        match &mut self.recordings {
            Some(recordings) => recordings.join(processes, &mut self.output)?,
            None => refuse_late(&processes, &mut self.output),
        }
        self.advance();
        Ok(())
    }
}
