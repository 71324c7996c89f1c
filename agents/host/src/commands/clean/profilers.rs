//! Profilers that interrupted sessions left running in JVMs.

use std::time::Duration;

use super::Sweep;
use crate::engine::async_profiler::jvm::status_file;
use crate::engine::async_profiler::plan;
use crate::jvm::attach::{Attach, Reply};
use crate::jvm::loaded::Loaded;
use crate::jvm::preflight::writes_recording;
use crate::os::files::read_regular;
use crate::os::identity::Namespaces;
use crate::os::proc::target::Target;
use crate::staging::folders::{is_in_use, is_ours, run_folder, users_of, USUAL};
use crate::wire::leftovers::{Done, Kind, Leftover, State};
use crate::wire::outcome::Failure;

const ANSWER: Duration = Duration::from_secs(10);

/// A JVM that has libraries of ours.
struct Jvm<'a> {
    target: &'a Target,
    namespaces: Namespaces,
    loaded: Loaded,
    /// Whether it has a recording of ours open, as far as that can be seen.
    writing: Option<bool>,
}

/// Find the profilers of a JVM, each by its library, and stop those that record for no session. Changes the thread's
/// identity.
pub fn sweep(sweep: &Sweep, pid: i32, start_time: u64) -> Vec<Leftover> {
    let mut entries = Vec::new();
    let Ok(target) = Target::open(pid, start_time) else {
        return entries;
    };
    let loaded = Loaded::of(&target).unwrap_or_default();
    let paths = loaded.paths().into_iter();
    let libraries: Vec<String> = paths.filter(|path| is_ours(path)).collect();
    if libraries.is_empty() {
        return entries;
    }
    let writing = writes_recording(&target);
    let Ok(namespaces) = Namespaces::enter(&target) else {
        return entries;
    };
    let jvm = Jvm {
        namespaces,
        target: &target,
        loaded,
        writing,
    };
    for library in libraries {
        let user = sweep.users.name(jvm.namespaces.uid);
        let entry = Leftover {
            pid: Some(pid),
            ..Leftover::new(Kind::Profiler, library.clone(), user)
        };
        let mut entry = match jvm.ask(sweep, &library) {
            Ok(None) => continue,
            Ok(Some((state, reason))) => entry.judged(state, reason),
            Err(failure) => entry.judged(State::Unknown, failure.reason),
        };
        if entry.state == State::Left && !sweep.order.dry {
            let stopped = jvm.stop(&library).map(|()| Done::Stopped);
            entry.record(stopped.map_err(|failure| failure.reason));
        }
        entries.push(entry);
    }
    entries
}

impl Jvm<'_> {
    /// The state of a profiler. None: it does not record.
    fn ask(&self, sweep: &Sweep, library: &str) -> Result<Option<(State, String)>, Failure> {
        if self.target.stat().is_none() {
            return Ok(None);
        }
        let (runs, unseen) = users_of(&self.namespaces, &status_file(self.target));
        let is_left = |run: &String| sweep.ended.iter().any(|it| run.contains(it.as_str()));
        if runs.iter().any(|run| !is_left(run)) {
            let reason = "a session uses it".to_owned();
            return Ok(Some((State::Used, reason)));
        }
        if !self.is_active(library)? {
            return Ok(None);
        }
        // It is left over only if all folders of sessions could be read.
        match unseen {
            Some(unseen) => Err(Failure::plain(unseen)),
            None => Ok(Some((
                State::Left,
                "no hprofiler session uses it".to_owned(),
            ))),
        }
    }

    fn is_active(&self, library: &str) -> Result<bool, Failure> {
        let bases = USUAL.map(str::to_owned);
        // Several JVMs are queried at a time, each with its own folder.
        let session = format!("clean-{}-{}", std::process::id(), self.target.pid);
        let run = run_folder(&self.namespaces, &bases, &session).map_err(Failure::plain)?;
        let command = plan::status(&format!("{}/status", run.path));
        let active = self.load(library, &command).and_then(|found| {
            if found {
                let status = read_regular(&run.dir, "status", Some(self.namespaces.uid), 64 << 10);
                let is_idle = |text: Vec<u8>| plan::is_idle(&String::from_utf8_lossy(&text));
                return Ok(!status.is_ok_and(is_idle));
            }
            // Its library is gone.
            let what = match self.writing {
                Some(false) => return Ok(false),
                Some(true) => "it records until its own time limit",
                None => "it is not known whether it records",
            };
            let reason = format!("{library} is gone, so the profiler cannot be stopped: {what}");
            Err(Failure::plain(reason))
        });
        let _ = run.release(|_| true);
        active
    }

    fn stop(&self, library: &str) -> Result<(), Failure> {
        if is_in_use(&self.namespaces, &status_file(self.target)).map_err(Failure::plain)? {
            return Err(Failure::plain("a session has started to use it"));
        }
        self.load(library, &plan::stop("/dev/null"))?;
        match self.load(library, &plan::status("/dev/null"))? {
            true => Ok(()),
            false => Err(Failure::plain(format!("{library} is gone"))),
        }
    }

    /// Have the JVM run a command of one of our libraries. False: its file is gone.
    fn load(&self, library: &str, options: &str) -> Result<bool, Failure> {
        if !self.loaded.may_be_named(&self.namespaces, library) {
            return Ok(false);
        }
        match Attach::new(self.target, &self.namespaces).load(library, options, ANSWER)? {
            Reply::Returned(0) => Ok(true),
            // Some JVMs do not find a library again if its file is gone.
            Reply::Refused(_) if std::fs::metadata(self.namespaces.path(library)).is_err() => {
                Ok(false)
            }
            reply => Err(Failure::plain(format!(
                "{library} does not answer: {reply:?}"
            ))),
        }
    }
}
