//! Profilers that broken-off sessions left running in JVMs.

use std::time::Duration;

use rustix::fs::stat;

use super::entry::Agent;
use super::locks::Locks;
use super::Cleaning;
use crate::engine::async_profiler::commands;
use crate::engine::async_profiler::jvm::status_file;
use crate::jvm::attach::{Attach, Reply};
use crate::jvm::loaded::Loaded;
use crate::os::files::read_regular;
use crate::os::identity::Shoes;
use crate::os::proc::target::Target;
use crate::staging::folders::{is_in_use, is_ours, run_folder, users_of, Held, RUN_FOLDER, USUAL};
use crate::wire::events::{Entry, Found, State};
use crate::wire::outcome::Failure;

const ANSWER: Duration = Duration::from_secs(10);
/// What the folders are called in which JVMs answer, before the numbers of this agent and of the JVM.
const PROBE: &str = "clean-";

/// Whether a folder is there for the moment in which this agent asks a JVM.
pub fn is_own_probe(name: &str) -> bool {
    let probe = name.strip_prefix(RUN_FOLDER);
    let number = probe.and_then(|name| name.strip_prefix(PROBE)?.split('-').next());
    number.is_some_and(|number| number == std::process::id().to_string())
}

/// Those of our libraries that a JVM has, and whether one of them has its recording open, as far as that can be seen.
pub struct Libraries {
    pub paths: Vec<String>,
    pub writing: Option<bool>,
    /// All that the JVM has.
    pub loaded: Loaded,
}

/// Those paths that our libraries have.
pub fn ours(loaded: &Loaded) -> Vec<String> {
    let paths = loaded.paths().into_iter();
    paths.filter(|path| is_ours(path)).collect()
}

/// What came of asking a JVM for one of our libraries.
enum Asked {
    Idle,
    /// A session that lives works on it.
    Used,
    /// That of an agent that is to end does.
    Ending(Agent),
    /// It records, for nobody; why that is known.
    Active(String),
}

/// Note which folders a JVM needs: from before it is asked, for whoever does not answer in time may record.
pub fn need(cleaning: &Cleaning, target: &Target, shoes: &Shoes, ours: &[String]) {
    let wanted = |library: &&String| {
        let entry = entry(cleaning, target, shoes, library);
        cleaning.order.wants(&entry)
    };
    let folders = ours.iter().filter(wanted);
    for folder in folders.filter_map(|library| folder_of(shoes, library)) {
        cleaning.needs.add(folder, target.pid);
    }
    cleaning.needs.are_known(target.pid);
}

fn entry(cleaning: &Cleaning, target: &Target, shoes: &Shoes, library: &str) -> Entry {
    let user = cleaning.users.name(shoes.uid);
    Entry::of_profiler(target.pid, target.start_time, library.to_owned(), user)
}

/// Meet the profilers of a JVM, each by its library, and stop those that are to be stopped.
pub fn look(
    cleaning: &Cleaning,
    target: &Target,
    shoes: &Shoes,
    libraries: Libraries,
    found: &mut Found,
) {
    // Those of one that was not read in time as well.
    need(cleaning, target, shoes, &libraries.paths);
    for library in &libraries.paths {
        let entry = entry(cleaning, target, shoes, library);
        // To ask a JVM is to attach to it.
        if !cleaning.order.wants(&entry) {
            continue;
        }
        let folder = folder_of(shoes, library);
        let settled = || {
            if let Some(folder) = folder {
                cleaning.needs.settle(folder, target.pid);
            }
        };
        let entry = match ask(cleaning, target, shoes, &libraries, library) {
            Ok(Asked::Idle) => {
                settled();
                continue;
            }
            Ok(Asked::Used) => entry.judged(State::Used, "a session is at work on it"),
            Ok(Asked::Ending(agent)) => {
                let what = agent.words();
                entry.of_agent(&agent, format!("{what}, is at work on it"))
            }
            Ok(Asked::Active(why)) => entry.judged(State::Left, why),
            Err(failure) => entry.judged(State::Unknown, failure.reason),
        };
        let known = entry.state != State::Unknown;
        if !found.meet(&cleaning.order, entry) {
            // What is only listed is to be stopped before its folder goes; that of a session is held.
            if known {
                settled();
            }
            continue;
        }
        match stop(target, shoes, &libraries, library) {
            Ok(()) => {
                settled();
                found.cleaned.stopped.push(target.pid);
            }
            Err(failure) => found.fail(format!("process {}", target.pid), failure.reason),
        }
    }
}

/// Sessions put the library beside a JVM as its user: another's folder it needs none of, whatever path leads there.
fn folder_of(shoes: &Shoes, library: &str) -> Option<(u64, u64)> {
    let (folder, _) = library.rsplit_once('/')?;
    let stat = stat(shoes.path(folder)).ok()?;
    (stat.st_uid == shoes.uid).then_some((stat.st_dev, stat.st_ino))
}

fn ask(
    cleaning: &Cleaning,
    target: &Target,
    shoes: &Shoes,
    libraries: &Libraries,
    library: &str,
) -> Result<Asked, Failure> {
    if target.stat().is_none() {
        return Ok(Asked::Idle);
    }
    let (users, unsure) = users_of(shoes, &status_file(target));
    let why = match (last_user(&cleaning.locks, &users), unsure) {
        (Some(User::Lives), _) => return Ok(Asked::Used),
        (Some(User::Ending(agent)), _) if agent.ends.is_some() => return Ok(Asked::Ending(agent)),
        (_, Some(unsure)) => Err(unsure),
        (Some(User::Ending(agent)), None) => Ok(format!(
            "the agent that started it ({}) is left over",
            agent.pid
        )),
        (None, None) => Ok("no session is at work on it".to_owned()),
    };
    let bases = USUAL.map(str::to_owned);
    // Each JVM has one of its own: several are asked at a time.
    let session = format!("{PROBE}{}-{}", std::process::id(), target.pid);
    let run = run_folder(shoes, &bases, &session).map_err(Failure::plain)?;
    let active = is_active(target, shoes, libraries, library, &run);
    let _ = run.release(|_| true);
    // One that records may only be called left over by who has seen all folders of sessions.
    match active? {
        true => why.map(Asked::Active).map_err(Failure::plain),
        false => Ok(Asked::Idle),
    }
}

/// Who is at work on a JVM.
#[derive(Debug, PartialEq, Eq)]
enum User {
    Lives,
    /// An agent that is left over, or soon is.
    Ending(Agent),
}

/// Who of the holders of these folders goes last: one that is left over may be at work on a JVM beside one that lives.
fn last_user(locks: &Locks, folders: &[u64]) -> Option<User> {
    let agents = folders.iter().map(|&folder| locks.held_by_ending(folder));
    match agents.collect::<Option<Vec<Agent>>>() {
        None => Some(User::Lives),
        Some(agents) => {
            let last = agents.into_iter().max_by_key(|agent| agent.ends);
            last.map(User::Ending)
        }
    }
}

/// Have the JVM run one of our libraries' commands; false where it has lost the library.
fn load(
    target: &Target,
    shoes: &Shoes,
    libraries: &Libraries,
    library: &str,
    options: &str,
) -> Result<bool, Failure> {
    if !libraries.loaded.may_be_named(shoes, library) {
        return Ok(false);
    }
    match Attach::new(target, shoes).load(library, options, ANSWER)? {
        Reply::Returned(0) => Ok(true),
        // Some JVMs do not find a library again whose file is gone.
        Reply::Refused(_) if std::fs::metadata(shoes.path(library)).is_err() => Ok(false),
        reply => Err(Failure::plain(format!(
            "{library} does not answer: {reply:?}"
        ))),
    }
}

fn is_active(
    target: &Target,
    shoes: &Shoes,
    libraries: &Libraries,
    library: &str,
    run: &Held,
) -> Result<bool, Failure> {
    let command = commands::status(&format!("{}/status", run.path));
    if !load(target, shoes, libraries, library, &command)? {
        return is_out_of_reach(library, libraries.writing);
    }
    let status = read_regular(&run.dir, "status", Some(shoes.uid), 64 << 10);
    Ok(!status.is_ok_and(|text| commands::is_idle(&String::from_utf8_lossy(&text))))
}

/// Of a library that is gone: Ok(false) where it does not record.
fn is_out_of_reach(library: &str, writing: Option<bool>) -> Result<bool, Failure> {
    let what = match writing {
        Some(false) => return Ok(false),
        Some(true) => "it records until its own time limit",
        None => "whether it records cannot be seen",
    };
    let reason = format!("{library} is gone and cannot be told to stop: {what}");
    Err(Failure::plain(reason))
}

fn stop(
    target: &Target,
    shoes: &Shoes,
    libraries: &Libraries,
    library: &str,
) -> Result<(), Failure> {
    if is_in_use(shoes, &status_file(target)).map_err(Failure::plain)? {
        return Err(Failure::plain("a session is at work on it by now"));
    }
    let load = |command: &str| load(target, shoes, libraries, library, command);
    load(&commands::stop("/dev/null"))?;
    match load(&commands::status("/dev/null"))? {
        true => Ok(()),
        false => Err(Failure::plain(format!("{library} is gone"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lives_goes_before_who_is_left_over() {
        let agent = |pid, ends| Agent { pid, ends };
        let (left, soon) = (agent(7, None), agent(9, Some(20)));
        let locks = Locks::of(&[(1, 7), (2, 8), (3, 9)], &[left.clone(), soon.clone()]);
        for (folders, want) in [
            (&[][..], None),
            (&[1], Some(User::Ending(left))),
            (&[1, 2], Some(User::Lives)),
            (&[2, 1], Some(User::Lives)),
            (&[3, 1], Some(User::Ending(soon))),
        ] {
            assert_eq!(last_user(&locks, folders), want, "{folders:?}");
        }
    }
}
