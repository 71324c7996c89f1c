//! Loads the library into a JVM: the folder, other profilers of the JVM, and whether it loads.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fd::AsFd;

use super::jvm::{recording_file, status_file, until_file, ANSWER, MAX_LOG};
use super::plan;
use super::Looked;
use crate::engine::api::{Library, Shared};
use crate::jvm::attach::{Attach, Reply};
use crate::jvm::preflight::Findings;
use crate::os::files::{enter_folder, open_private, read_regular};
use crate::os::free_space::Memory;
use crate::os::identity::Namespaces;
use crate::os::lease::since_1970;
use crate::os::proc::target::Target;
use crate::resources::disk::DiskCap;
use crate::staging::folders::{
    self, agent_of, is_in_use, is_usual, let_library_go, library_folder, refuse_staging,
    refuse_unwritable, run_folder_in, users_of, Held, ASYNC_PROFILER,
};
use crate::wire::outcome::{Code, Failure};

/// A folder where a recording may grow to this size is as good as any, in bytes.
const PLENTY: u64 = 256 << 20;
/// The longest text of a time in seconds.
const MAX_UNTIL: u64 = 20;

/// Where the library may be put, as the JVM sees it, best first: where it is loaded from already, then the usual
/// places.
fn bases(namespaces: &Namespaces, findings: &Findings, library: &Library) -> Vec<String> {
    let folder = library_folder(&ASYNC_PROFILER, "", &library.sha256, namespaces.uid);
    let loaded = findings
        .ours
        .iter()
        .filter_map(|path| path.rsplit_once('/')?.0.strip_suffix(&folder));
    let mut bases: Vec<String> = loaded.map(str::to_owned).collect();
    bases.extend(folders::bases(namespaces));
    // In the profiler's arguments a comma ends a file name, and a percent sign begins a placeholder.
    bases.retain(|base| !base.contains([',', '%']));
    let mut seen = HashSet::new();
    bases.retain(|base| seen.insert(base.clone()));
    bases
}

/// Folders that could hold the recording, best first. Err says why there is none.
///
/// Usual folders with plenty of room come first, then by room. Other folders come last: `clean` does not find leftovers
/// there after the JVM's end.
fn places(
    namespaces: &Namespaces,
    bases: &[String],
    memory: &Arc<Memory>,
    recordings: usize,
) -> Result<Vec<(String, DiskCap)>, String> {
    let mut places = Vec::new();
    let mut tried = Vec::new();
    for base in bases {
        let cap = refuse_unwritable(namespaces, base).and_then(|()| {
            let folder = enter_folder(&namespaces.path(base));
            let folder = folder.map_err(|error| format!("{base}: {error}"))?;
            DiskCap::new(folder, memory, recordings).map_err(|reason| format!("{base} {reason}"))
        });
        match cap {
            Ok(cap) => places.push((base.clone(), cap)),
            Err(reason) => tried.push(reason),
        }
    }
    places.sort_by_key(|(base, cap)| (!is_usual(base), Reverse(cap.share.min(PLENTY) >> 20)));
    match places.is_empty() {
        true => Err(tried.join("; ")),
        false => Ok(places),
    }
}

pub struct Entered {
    /// The folder for the recording, and how much of the disk it may use.
    pub run: Held,
    pub cap: DiskCap,
    pub library: Held,
    /// How long loading took, without the wait for a turn.
    pub attached: Duration,
}

/// Put the library beside a JVM, load it, and check that nobody else profiles the JVM. A dry run makes the same
/// decisions as far as possible from outside, touches nothing and returns None.
pub fn enter(
    shared: &Shared,
    target: &Target,
    looked: &Looked,
    findings: &Findings,
) -> Result<Option<Entered>, Failure> {
    let _turn = match shared.dry_run {
        true => None,
        false => Some(shared.attach_turn()?),
    };
    let began = Instant::now();
    let (namespaces, library) = (&looked.namespaces, looked.library);
    let bases = bases(namespaces, findings, library);
    let recordings = shared.count();
    let no_folder =
        |tried: String| {
            Failure::new(
            format!("no folder that process {} can write to: {tried}", target.pid),
            "give the JVM's user a writable /tmp, /var/tmp or /dev/shm with room for a recording",
        )
        .coded(Code::NoWritableFolder)
        };
    let places = places(namespaces, &bases, &findings.memory, recordings);
    let places = places.map_err(no_folder)?;
    let made = match shared.dry_run {
        true => None,
        false => {
            let mut tried = Vec::new();
            let made = places.into_iter().find_map(|(base, cap)| {
                let run = run_folder_in(namespaces, &base, &shared.session);
                let run = run.map_err(|reason| tried.push(reason)).ok()?;
                Some((run, cap))
            });
            Some(made.ok_or_else(|| no_folder(tried.join("; ")))?)
        }
    };
    let entry = Entry {
        target,
        looked,
        findings,
        run: made.as_ref().map(|(run, _)| run),
    };
    let staged = entry
        .refuse_others()
        .and_then(|()| entry.stage_and_load(&bases));
    match (staged, made) {
        (Ok(Some(library)), Some((run, cap))) => Ok(Some(Entered {
            run,
            cap,
            library,
            attached: began.elapsed(),
        })),
        (staged, made) => {
            // `clean` will find what cannot be deleted now.
            let _ = made.map(|(run, _)| run.release(|_| true));
            staged.map(|_| None)
        }
    }
}

/// A JVM that is being entered. A dry run has no folder for the recording, and asks the JVM nothing.
struct Entry<'a> {
    target: &'a Target,
    looked: &'a Looked<'a>,
    findings: &'a Findings,
    run: Option<&'a Held>,
}

impl Entry<'_> {
    /// Another async-profiler may be loaded if it is idle. An older library of ours may be loaded too, and only it
    /// knows whether it records.
    fn refuse_others(&self) -> Result<(), Failure> {
        let (pid, findings) = (self.target.pid, self.findings);
        let (namespaces, sampled) = (&self.looked.namespaces, findings.sampled);
        if findings.writes_recording == Some(true) {
            return Err(self.already_profiled());
        }
        let folder = library_folder(
            &ASYNC_PROFILER,
            "",
            &self.looked.library.sha256,
            namespaces.uid,
        );
        let ours = findings.ours.iter();
        let ours = ours.filter(|path| self.run.is_none() || !path.contains(&folder));
        if sampled && findings.ours.is_empty() && findings.foreign.is_empty() {
            return Err(others_profile(
                pid,
                "it holds perf events, or timers of CPU time",
            ));
        }
        let foreign = findings.foreign.iter().map(|path| (path, false));
        for (library, ours) in ours.map(|path| (path, true)).chain(foreign) {
            let busy = match self.run {
                _ if !findings.loaded.may_be_named(namespaces, library) => {
                    // It cannot be asked. One of ours would have its recording open. Timers show only by their signals.
                    if !ours && (sampled || self.target.status.catches_profilers_signals()) {
                        return Err(out_of_reach(pid, library));
                    }
                    false
                }
                None => sampled,
                Some(run) => match self.status(library, run)? {
                    Reply::Returned(status) => !plan::is_idle(&status),
                    // Its file is gone: one of ours would have its recording open.
                    Reply::Refused(_) => !ours,
                },
            };
            match (busy, ours) {
                (true, true) => return Err(self.already_profiled()),
                (true, false) => return Err(others_profile(pid, library)),
                (false, _) => {}
            }
        }
        match self.run {
            None if is_in_use(namespaces, &recording_file(self.target)).unwrap_or(false) => {
                Err(self.already_profiled())
            }
            _ => Ok(()),
        }
    }

    /// Put the library into the first folder from which the JVM loads it, and check that it is idle.
    fn stage_and_load(&self, bases: &[String]) -> Result<Option<Held>, Failure> {
        let (pid, namespaces) = (self.target.pid, &self.looked.namespaces);
        let cannot_load = |tried: String| {
            Failure::new(
                format!("process {pid} cannot load async-profiler: {tried}"),
                "the JVM's user needs a writable folder that is not mounted noexec, among /tmp, /var/tmp and /dev/shm",
            )
            .coded(Code::CannotLoad)
        };
        let Some(run) = self.run else {
            let refused = bases
                .iter()
                .map(|base| refuse_staging(namespaces, base).err());
            if let Some(tried) = refused.collect::<Option<Vec<String>>>() {
                return Err(cannot_load(tried.join("; ")));
            }
            return Attach::new(self.target, namespaces)
                .foresee()
                .map(|()| None);
        };
        let (library, load) = (self.looked.library, |path: &str| self.status(path, run));
        let loaded = library.load_from_first(&ASYNC_PROFILER, namespaces, bases, load);
        let (held, status) = loaded.map_err(cannot_load)?;
        let failure = match status {
            Ok(status) if plan::is_idle(&status) => return Ok(Some(held)),
            Ok(_) => self.already_profiled(),
            Err(failure) => failure,
        };
        let _ = let_library_go(held, self.findings.loaded.musl);
        Err(failure)
    }

    /// Says which session records the JVM, and until when, as far as its run folder shows that.
    fn already_profiled(&self) -> Failure {
        let (pid, namespaces) = (self.target.pid, &self.looked.namespaces);
        let name = until_file(self.target);
        let (folders, _) = users_of(namespaces, &name);
        let until = folders.first().and_then(|folder| {
            let dir = open_private(folder, namespaces.uid).ok()?;
            let text = read_regular(&dir, &name, Some(namespaces.uid), MAX_UNTIL).ok()?;
            let until: u64 = String::from_utf8(text).ok()?.parse().ok()?;
            Some((agent_of(folder)?, until))
        });
        let which = match &until {
            Some((agent, until)) => {
                let left = until.saturating_sub(since_1970().as_secs());
                format!(" (agent {agent}), for about {left} s more")
            }
            None => String::new(),
        };
        let failure = Failure::new(
            format!("process {pid} is being recorded by another hprofiler session{which}"),
            "wait for its end; if that session was killed, run `hprofiler cleanup`",
        )
        .coded(Code::OtherSession)
        .with("frame_pointers", u8::from(self.looked.frame_pointers));
        match until {
            Some((agent, until)) => failure.with("agent", agent).with("until", until),
            None => failure,
        }
    }

    /// Load a library and ask for its status. Loading it again does no harm.
    fn status(&self, library: &str, run: &Held) -> Result<Reply<String>, Failure> {
        let name = status_file(self.target);
        let command = plan::status(&format!("{}/{name}", run.path));
        let namespaces = &self.looked.namespaces;
        let reply = Attach::new(self.target, namespaces).load(library, &command, ANSWER)?;
        Ok(match reply {
            Reply::Returned(0) => {
                match read_regular(run.dir.as_fd(), &name, Some(namespaces.uid), MAX_LOG) {
                    Ok(text) => Reply::Returned(String::from_utf8_lossy(&text).into_owned()),
                    Err(error) => Reply::Refused(format!("no status was written: {error}")),
                }
            }
            Reply::Returned(code) => Reply::Refused(format!("async-profiler returned {code}")),
            Reply::Refused(text) if text.contains("not enabled") => {
                return Err(Failure::plain(text))
            }
            Reply::Refused(text) => Reply::Refused(text),
        })
    }
}

/// `sign`: what shows that.
fn others_profile(pid: i32, sign: &str) -> Failure {
    Failure::new(
        format!("another profiler ({sign}) is active in process {pid}"),
        "stop it first (asprof stop), or wait for its end",
    )
    .coded(Code::OtherProfiler)
}

fn out_of_reach(pid: i32, library: &str) -> Failure {
    Failure::new(
        format!("process {pid} seems to be or to have been sampled by another async-profiler, which cannot be asked: {library} was deleted or replaced"),
        "wait for its end, or restart the JVM",
    ).coded(Code::OtherProfiler)
}
