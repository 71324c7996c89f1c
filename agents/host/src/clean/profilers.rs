//! Profilers that broken-off sessions left running in JVMs.

use std::time::Duration;

use rustix::fs::{fstat, openat, Dir, Mode, OFlags, CWD};

use super::entry::{Agent, Entry, Found, State};
use super::Cleaning;
use crate::attach::{Attach, Reply};
use crate::engine::async_profiler::commands;
use crate::engine::async_profiler::jvm::status_file;
use crate::files::{open_private, read_regular};
use crate::foothold::{is_free, run_folder, Held, RUN_FOLDER, USUAL};
use crate::identity::Shoes;
use crate::outcome::Failure;
use crate::proc::target::Target;

const ANSWER: Duration = Duration::from_secs(10);
/// More folders of runs are not looked into: there is one a session.
const MOST_RUNS: usize = 10_000;

/// What the folders are called in which JVMs answer, before the numbers of this agent and of the JVM.
const PROBE: &str = "clean-";

/// Whether a folder is there for the moment in which this agent asks a JVM.
pub fn is_own_probe(name: &str) -> bool {
    let probe = name.strip_prefix(RUN_FOLDER);
    let number = probe.and_then(|name| name.strip_prefix(PROBE)?.split('-').next());
    number.is_some_and(|number| number == std::process::id().to_string())
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

/// Meet the profilers of a JVM, each by its library, and stop those that are to be stopped.
pub fn look(
    cleaning: &Cleaning,
    target: &Target,
    shoes: &Shoes,
    libraries: Vec<String>,
    found: &mut Found,
) {
    for library in libraries {
        let user = cleaning.users.name(shoes.uid);
        let entry = Entry::of_profiler(target.pid, target.start_time, library.clone(), user);
        // To ask a JVM is to attach to it.
        if !cleaning.order.wants(&entry) {
            continue;
        }
        let entry = match ask(cleaning, target, shoes, &library) {
            Ok(Asked::Idle) => continue,
            Ok(Asked::Used) => entry.judged(State::Used, "a session is at work on it"),
            Ok(Asked::Ending(agent)) => {
                let what = agent.words();
                entry.of_agent(&agent, format!("{what}, is at work on it"))
            }
            Ok(Asked::Active(why)) => entry.judged(State::Left, why),
            Err(failure) => entry.judged(State::Unknown, failure.reason),
        };
        if !found.meet(&cleaning.order, entry) {
            continue;
        }
        match stop(target, shoes, &library) {
            Ok(()) => found.cleaned.stopped.push(target.pid),
            Err(failure) => found.fail(format!("process {}", target.pid), failure.reason),
        }
    }
}

fn ask(
    cleaning: &Cleaning,
    target: &Target,
    shoes: &Shoes,
    library: &str,
) -> Result<Asked, Failure> {
    if target.stat().is_none() {
        return Ok(Asked::Idle);
    }
    let mut why = "no session is at work on it".to_owned();
    if let Some(folder) = user_of(shoes, &status_file(target)) {
        match cleaning.locks.held_by_ending(folder) {
            Some(agent) if agent.ends.is_some() => return Ok(Asked::Ending(agent)),
            Some(agent) => why = format!("the agent that started it ({}) is left over", agent.pid),
            None => return Ok(Asked::Used),
        }
    }
    let bases = USUAL.map(str::to_owned);
    // Each JVM has one of its own: several are asked at a time.
    let session = format!("{PROBE}{}-{}", std::process::id(), target.pid);
    let run = run_folder(shoes, &bases, &session).map_err(Failure::plain)?;
    let active = is_active(target, shoes, library, &run);
    let _ = run.release(|_| true);
    Ok(match active? {
        true => Asked::Active(why),
        false => Asked::Idle,
    })
}

/// Whether a session that lives holds a run folder with this file.
pub fn is_in_use(shoes: &Shoes, file: &str) -> bool {
    user_of(shoes, file).is_some()
}

/// The inode of a run folder with this file that somebody holds.
fn user_of(shoes: &Shoes, file: &str) -> Option<u64> {
    let usual = USUAL.into_iter().map(str::to_owned);
    let bases = usual.chain(shoes.cwd_path.clone());
    bases.into_iter().find_map(|base| {
        let base = shoes.path(&base);
        let folders = runs(&base).into_iter().map(|name| format!("{base}/{name}"));
        folders
            .filter_map(|folder| held(shoes, &folder, file))
            .next()
    })
}

fn held(shoes: &Shoes, folder: &str, file: &str) -> Option<u64> {
    let dir = open_private(folder, shoes.uid).ok()?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&dir, file, flags, Mode::empty()).ok()?;
    (!is_free(&dir)).then(|| fstat(&dir).ok().map(|stat| stat.st_ino))?
}

fn runs(base: &str) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(entries) = openat(CWD, base, flags, Mode::empty()).and_then(Dir::read_from) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names
        .filter(|name| name.starts_with(RUN_FOLDER))
        .take(MOST_RUNS)
        .collect()
}

/// Have the JVM run one of our libraries' commands; false where it has lost the library.
fn load(target: &Target, shoes: &Shoes, library: &str, options: &str) -> Result<bool, Failure> {
    match Attach::new(target, shoes).load(library, options, ANSWER)? {
        Reply::Returned(0) => Ok(true),
        // Some JVMs do not find a library again whose file is gone. Sessions delete it only after they stopped it.
        Reply::Refused(_) if std::fs::metadata(shoes.path(library)).is_err() => Ok(false),
        reply => Err(Failure::plain(format!(
            "{library} does not answer: {reply:?}"
        ))),
    }
}

fn is_active(target: &Target, shoes: &Shoes, library: &str, run: &Held) -> Result<bool, Failure> {
    let command = commands::status(&format!("{}/status", run.path));
    if !load(target, shoes, library, &command)? {
        return Ok(false);
    }
    let status = read_regular(&run.dir, "status", Some(shoes.uid), 64 << 10);
    Ok(!status.is_ok_and(|text| commands::is_idle(&String::from_utf8_lossy(&text))))
}

fn stop(target: &Target, shoes: &Shoes, library: &str) -> Result<(), Failure> {
    if is_in_use(shoes, &status_file(target)) {
        return Err(Failure::plain("a session is at work on it by now"));
    }
    load(target, shoes, library, &commands::stop("/dev/null"))?;
    match load(target, shoes, library, &commands::status("/dev/null"))? {
        true => Ok(()),
        false => Err(Failure::plain(format!("{library} is gone"))),
    }
}
