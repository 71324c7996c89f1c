//! Profilers that broken-off sessions left running in JVMs.

use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{fstat, openat, stat, statat, AtFlags, Dir, FileType, Mode, OFlags, CWD};
use rustix::io::Errno;

use super::entry::{Agent, Entry, Found, State};
use super::locks::Locks;
use super::Cleaning;
use crate::engine::async_profiler::commands;
use crate::engine::async_profiler::jvm::status_file;
use crate::jvm::attach::{Attach, Reply};
use crate::jvm::loaded::Loaded;
use crate::os::files::{could_make_files, open_private, read_regular};
use crate::os::identity::Shoes;
use crate::os::proc::target::Target;
use crate::recording::preflight;
use crate::staging::beside::{is_free, run_folder, Held, RUN_FOLDER, USUAL};
use crate::wire::outcome::Failure;

const ANSWER: Duration = Duration::from_secs(10);
/// More folders of one user's runs are not looked into: there is one a session.
const MOST_RUNS: usize = 10_000;
/// How long a folder that all may write to is read.
const TO_READ: Duration = Duration::from_secs(3);

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
    paths.filter(|path| preflight::is_ours(path)).collect()
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

/// Whether a session that lives holds a run folder with this file. Err says why that is not known.
pub fn is_in_use(shoes: &Shoes, file: &str) -> Result<bool, String> {
    match users_of(shoes, file) {
        (users, _) if !users.is_empty() => Ok(true),
        (_, unseen) => unseen.map_or(Ok(false), Err),
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

/// The inodes of the run folders with this file that somebody holds, and why there may be more that were not seen.
fn users_of(shoes: &Shoes, file: &str) -> (Vec<u64>, Option<String>) {
    let usual = USUAL.into_iter().map(str::to_owned);
    let (mut users, mut unseen) = (Vec::new(), None);
    for base in usual.chain(shoes.cwd_path.clone()) {
        let seen_as = shoes.path(&base);
        let names = runs_of(&seen_as, shoes.uid).unwrap_or_else(|why| {
            unseen.get_or_insert(format!(
                "whether a session is at work on it is not known: {base} {why}"
            ));
            Vec::new()
        });
        let folders = names.iter().map(|name| format!("{seen_as}/{name}"));
        users.extend(folders.filter_map(|folder| held(shoes, &folder, file)));
    }
    (users, unseen)
}

fn held(shoes: &Shoes, folder: &str, file: &str) -> Option<u64> {
    let dir = open_private(folder, shoes.uid).ok()?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&dir, file, flags, Mode::empty()).ok()?;
    (!is_free(&dir)).then(|| fstat(&dir).ok().map(|stat| stat.st_ino))?
}

/// The folders of this user's runs. Err says why they are not known.
pub fn runs_of(base: &str, owner: u32) -> Result<Vec<String>, String> {
    runs(base, owner, MOST_RUNS)
}

/// The folders of this user's runs, if there are no more than that. Others may make as many as they like that are called
/// so: those do not count.
fn runs(base: &str, owner: u32, most: usize) -> Result<Vec<String>, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let unread = |error: Errno| format!("cannot be read: {error}");
    let dir = match openat(CWD, base, flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
        // Where this user cannot make one there is none of this user's.
        Err(Errno::ACCESS) if could_make_files(base).is_err() => return Ok(Vec::new()),
        Err(error) => return Err(unread(error)),
    };
    let end = Instant::now() + TO_READ;
    let mut found = Vec::new();
    for entry in Dir::read_from(&dir).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name = entry.file_name().to_str().unwrap_or_default();
        if name.starts_with(RUN_FOLDER) && is_folder_of(&dir, name, owner) {
            found.push(name.to_owned());
        }
        if found.len() > most || Instant::now() > end {
            return Err("has too many files to look through".to_owned());
        }
    }
    Ok(found)
}

fn is_folder_of(dir: &OwnedFd, name: &str, owner: u32) -> bool {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_folder = |mode| FileType::from_raw_mode(mode) == FileType::Directory;
    stat.is_ok_and(|stat| stat.st_uid == owner && is_folder(stat.st_mode))
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
    use rustix::process::geteuid;

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

    #[test]
    fn who_is_at_work_is_known_or_it_is_said_that_it_is_not() {
        let base = std::env::temp_dir().join(format!("hprofiler-runs-{}", std::process::id()));
        let (path, me) = (base.to_str().unwrap(), geteuid().as_raw());
        for number in 0..2 {
            std::fs::create_dir_all(base.join(format!("{RUN_FOLDER}{number}-0"))).unwrap();
        }
        std::fs::write(base.join(format!("{RUN_FOLDER}file")), "").unwrap();
        assert_eq!(runs(path, me, 2).unwrap().len(), 2);
        assert!(runs(path, me, 1).unwrap_err().contains("too many"));
        assert_eq!(
            runs(path, me + 1, 1),
            Ok(Vec::new()),
            "others' do not count"
        );
        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!(runs(path, me, 1), Ok(Vec::new()));
    }
}
