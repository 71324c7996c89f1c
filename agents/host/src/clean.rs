//! Leftovers of sessions that were broken off: profilers that still run, folders that nobody holds any more.

use std::collections::{BTreeSet, HashSet};
use std::thread;
use std::time::Duration;

use rustix::fs::{openat, Dir, Mode, OFlags, CWD};
use rustix::process::geteuid;

use crate::attach::{Attach, Reply};
use crate::engine::async_profiler::commands;
use crate::engine::async_profiler::jvm::status_file;
use crate::files::read_regular;
use crate::foothold::{
    delete_unheld, is_folder, is_library_file, open_leftover, run_folder, Held, RUN_FOLDER,
};
use crate::identity::Shoes;
use crate::outcome::Failure;
use crate::preflight;
use crate::proc::scan::{self, Seen};
use crate::proc::target::Target;
use crate::protocol::{Cleaned, Undone};

const BASES: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
const ANSWER: Duration = Duration::from_secs(10);

/// Clean this host, as far as this user may.
pub fn clean(excluded: &HashSet<i32>) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let own = geteuid().as_raw();
    for process in scan::processes(excluded) {
        if process.jvm.is_some() && (own == 0 || own == process.uid) {
            merge(&mut cleaned, on_thread(move || clean_jvm(&process)));
        }
    }
    for (uid, gid) in owners_of_leftovers() {
        if own == 0 || own == uid {
            merge(&mut cleaned, on_thread(move || clean_as(uid, gid)));
        }
    }
    cleaned
}

/// A thread that takes another user's identity keeps it, and ends with the work.
fn on_thread(work: impl FnOnce() -> Cleaned + Send + 'static) -> Cleaned {
    match thread::Builder::new().spawn(work) {
        Ok(thread) => thread.join().unwrap_or_default(),
        Err(error) => Cleaned {
            failed: vec![Undone {
                what: "a thread".to_owned(),
                reason: error.to_string(),
            }],
            ..Cleaned::default()
        },
    }
}

fn merge(into: &mut Cleaned, more: Cleaned) {
    into.removed.extend(more.removed);
    into.stopped.extend(more.stopped);
    into.failed.extend(more.failed);
}

/// Stop a profiler that an earlier session left running, then remove its folders as that JVM sees them.
fn clean_jvm(process: &Seen) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let Ok(target) = Target::open(process.pid, process.start_time) else {
        return cleaned;
    };
    let libraries = target.libraries(preflight::is_ours).unwrap_or_default();
    let Ok(shoes) = Shoes::put_on(&target) else {
        return cleaned;
    };
    for library in libraries {
        match stop_abandoned(&target, &shoes, &library) {
            Ok(false) => {}
            Ok(true) => cleaned.stopped.push(target.pid),
            Err(failure) => {
                cleaned.failed.push(Undone {
                    what: format!("process {}", target.pid),
                    reason: failure.reason,
                });
            }
        }
    }
    let bases = BASES
        .into_iter()
        .map(str::to_owned)
        .chain(shoes.cwd_path.clone());
    for base in bases {
        clean_base(&shoes, &base, &mut cleaned);
    }
    cleaned
}

fn clean_as(uid: u32, gid: u32) -> Cleaned {
    let mut cleaned = Cleaned::default();
    if let Ok(shoes) = Shoes::of_user(uid, gid) {
        for base in BASES {
            clean_base(&shoes, base, &mut cleaned);
        }
    }
    cleaned
}

/// Whether a profiler was running and has been stopped. A process that a live session is at work on is left alone.
fn stop_abandoned(target: &Target, shoes: &Shoes, library: &str) -> Result<bool, Failure> {
    if target.stat().is_none() || is_in_use(shoes, &status_file(target)) {
        return Ok(false);
    }
    let bases: Vec<String> = BASES.into_iter().map(str::to_owned).collect();
    let run = run_folder(shoes, &bases, &format!("clean-{}", std::process::id()))
        .map_err(Failure::plain)?;
    let stopped = ask_and_stop(target, shoes, library, &run);
    let _ = run.release(|_| true);
    stopped
}

/// Whether a session that lives holds a run folder with this file.
pub fn is_in_use(shoes: &Shoes, file: &str) -> bool {
    let bases = BASES
        .into_iter()
        .map(str::to_owned)
        .chain(shoes.cwd_path.clone());
    bases.into_iter().any(|base| {
        let base = shoes.path(&base);
        let runs = leftovers(&base)
            .into_iter()
            .filter(|name| name.starts_with(RUN_FOLDER));
        runs.map(|name| format!("{base}/{name}")).any(|folder| {
            let ours = openat(CWD, format!("{folder}/{file}"), OFlags::PATH, Mode::empty()).is_ok();
            ours && open_leftover(&folder, shoes.uid).is_none()
        })
    })
}

fn ask_and_stop(
    target: &Target,
    shoes: &Shoes,
    library: &str,
    run: &Held,
) -> Result<bool, Failure> {
    let attach = Attach { target, shoes };
    let load = |options: &str| match attach.load(library, options, ANSWER)? {
        Reply::Returned(0) => Ok(true),
        // Some JVMs do not find a library again whose file is gone. Sessions delete it only after they stopped it.
        Reply::Refused(_) if std::fs::metadata(shoes.path(library)).is_err() => Ok(false),
        reply => Err(Failure::plain(format!(
            "{library} does not answer: {reply:?}"
        ))),
    };
    if !load(&commands::status(&format!("{}/status", run.path)))? {
        return Ok(false);
    }
    let status = read_regular(&run.dir, "status", Some(shoes.uid), 64 << 10);
    if status.is_ok_and(|text| commands::is_idle(&String::from_utf8_lossy(&text))) {
        return Ok(false);
    }
    load(&commands::stop("/dev/null"))?;
    load(&commands::status("/dev/null"))
}

fn clean_base(shoes: &Shoes, base: &str, cleaned: &mut Cleaned) {
    for name in leftovers(&shoes.path(base)) {
        let path = format!("{}/{name}", base.trim_end_matches('/'));
        let seen_as = shoes.path(&path);
        let Some(dir) = open_leftover(&seen_as, shoes.uid) else {
            continue;
        };
        let library = !name.starts_with(RUN_FOLDER);
        match delete_unheld(&dir, &seen_as, |file| !library || is_library_file(file)) {
            Ok(true) => cleaned.removed.push(path),
            Ok(false) => {}
            Err(error) => cleaned.failed.push(Undone {
                what: path,
                reason: error.to_string(),
            }),
        }
    }
}

fn leftovers(base: &str) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(entries) = openat(CWD, base, flags, Mode::empty()).and_then(Dir::read_from) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| is_folder(name)).collect()
}

/// Users that folders of ours belong to on this host's own file system.
fn owners_of_leftovers() -> BTreeSet<(u32, u32)> {
    let paths = BASES.iter().flat_map(|base| {
        leftovers(base)
            .into_iter()
            .map(move |name| format!("{base}/{name}"))
    });
    let stats = paths.filter_map(|path| rustix::fs::lstat(path).ok());
    stats.map(|stat| (stat.st_uid, stat.st_gid)).collect()
}
