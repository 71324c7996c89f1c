//! Getting the library into a JVM: which folder, who else is profiling there, and whether it loads.

use std::collections::HashSet;

use rustix::fd::AsFd;

use super::commands;
use super::jvm::{status_file, ANSWER, MAX_LOG};
use crate::engine::api::Library;
use crate::jvm::attach::{Attach, Reply};
use crate::jvm::preflight::Findings;
use crate::os::files::read_regular;
use crate::os::identity::Shoes;
use crate::os::proc::target::Target;
use crate::staging::folders::{
    self, is_library_file, let_library_go, library_folder, stage_library, Held, ASYNC_PROFILER,
};
use crate::wire::outcome::{Code, Failure};

/// Where a library may be put, as the JVM sees it, best first: where it is loaded from already, then the usual places.
pub fn bases(shoes: &Shoes, findings: &Findings, library: &Library) -> Vec<String> {
    let folder = library_folder(&ASYNC_PROFILER, "", &library.sha256, shoes.uid);
    let loaded = findings
        .ours
        .iter()
        .filter_map(|path| path.rsplit_once('/')?.0.strip_suffix(&folder));
    let mut bases: Vec<String> = loaded.map(str::to_owned).collect();
    bases.extend(folders::bases(shoes));
    // A comma ends a file name in the profiler's arguments, and it fills in what follows a percent sign.
    bases.retain(|base| !base.contains([',', '%']));
    let mut seen = HashSet::new();
    bases.retain(|base| seen.insert(base.clone()));
    bases
}

/// Another async-profiler may be loaded and idle; while it records, ours must not. `folder` is the
/// name of that which the library to be loaded has: where its file is a new one, the JVM may load it beside the old one,
/// and then it tells nothing of that. `sampled` decides of those that cannot be asked.
pub fn refuse_others(
    target: &Target,
    shoes: &Shoes,
    findings: &Findings,
    sampled: bool,
    run: &Held,
    folder: &str,
) -> Result<(), Failure> {
    if findings.writes_recording == Some(true) {
        return Err(already_profiled(target.pid));
    }
    let others = findings.ours.iter().filter(|other| !other.contains(folder));
    let foreign = findings.foreign(&shoes.named);
    for (library, ours) in others
        .map(|path| (path, true))
        .chain(foreign.iter().map(|path| (path, false)))
    {
        if !findings.loaded.may_be_named(shoes, library) {
            // One of ours would have its recording open. Of timers of the process nothing is to be seen but their signals.
            let may_sample = sampled || target.status.catches_profilers_signals();
            match may_sample && !ours {
                true => return Err(out_of_reach(target.pid, library)),
                false => continue,
            }
        }
        match status(target, shoes, library, run) {
            Ok(text) if commands::is_idle(&text) => {}
            // Its file is gone: it, too, would have its recording open.
            Err(Load::Refused(_)) if ours => {}
            Ok(_) if ours => return Err(already_profiled(target.pid)),
            Ok(_) | Err(Load::Refused(_)) => return Err(others_profile(target.pid, library)),
            Err(Load::Failed(failure)) => return Err(failure),
        }
    }
    Ok(())
}

/// Put the library in the first folder from which the JVM loads it, and see that it is idle.
pub fn stage_and_load(
    target: &Target,
    shoes: &Shoes,
    findings: &Findings,
    bases: &[String],
    library: &Library,
    run: &Held,
) -> Result<Held, Failure> {
    let mut tried = Vec::new();
    for base in bases {
        let held = match stage_library(
            shoes,
            &ASYNC_PROFILER,
            base,
            &library.sha256,
            &library.bytes,
        ) {
            Ok(held) => held,
            Err(reason) => {
                tried.push(reason);
                continue;
            }
        };
        match status(
            target,
            shoes,
            &format!("{}/{}", held.path, ASYNC_PROFILER.file),
            run,
        ) {
            Ok(text) if commands::is_idle(&text) => return Ok(held),
            Ok(_) => {
                let _ = let_library_go(held, findings.loaded.musl);
                return Err(already_profiled(target.pid));
            }
            Err(Load::Failed(failure)) => {
                let _ = let_library_go(held, findings.loaded.musl);
                return Err(failure);
            }
            Err(Load::Refused(text)) => {
                tried.push(format!("{}: {text}", held.path));
                let _ = held.release(is_library_file);
            }
        }
    }
    Err(cannot_load(target.pid, &tried))
}

/// Why there is no folder to load the library from.
pub fn cannot_load(pid: i32, tried: &[String]) -> Failure {
    Failure::new(
        format!("process {pid} cannot load async-profiler: {}", tried.join("; ")),
        "the JVM's user needs a writable folder that is not mounted noexec, among /tmp, /var/tmp and /dev/shm",
    ).coded(Code::CannotLoad)
}

pub fn others_profile(pid: i32, library: &str) -> Failure {
    Failure::new(
        format!("another async-profiler ({library}) is active in process {pid}"),
        "stop it first (asprof stop), or wait for its end",
    )
    .coded(Code::OtherProfiler)
}

pub fn out_of_reach(pid: i32, library: &str) -> Failure {
    Failure::new(
        format!("process {pid} is sampled, or was, it seems by another async-profiler, which cannot be asked: {library} is gone, or another file by now"),
        "wait for its end, or restart the JVM",
    ).coded(Code::OtherProfiler)
}

pub fn already_profiled(pid: i32) -> Failure {
    Failure::new(
        format!("process {pid} is being profiled by another hprofiler session"),
        "wait for its end; if that session was killed, run `hprofiler cleanup`",
    )
    .coded(Code::OtherSession)
}

/// Why a library gave no status.
enum Load {
    /// This library, or the place it is in, will not do.
    Refused(String),
    /// Nothing would, in this JVM.
    Failed(Failure),
}

/// Load a library, which does no harm to one that is loaded, and ask it what it is doing.
fn status(target: &Target, shoes: &Shoes, library: &str, run: &Held) -> Result<String, Load> {
    let name = status_file(target);
    let command = commands::status(&format!("{}/{name}", run.path));
    let reply = Attach::new(target, shoes)
        .load(library, &command, ANSWER)
        .map_err(Load::Failed)?;
    match reply {
        Reply::Returned(0) => {}
        Reply::Returned(code) => {
            return Err(Load::Refused(format!("async-profiler returned {code}")))
        }
        Reply::Refused(text) if text.contains("not enabled") => {
            return Err(Load::Failed(Failure::plain(text)))
        }
        Reply::Refused(text) if text.is_empty() => {
            return Err(Load::Refused("the JVM cannot load it".into()))
        }
        Reply::Refused(text) => return Err(Load::Refused(text)),
    }
    let text = read_regular(run.dir.as_fd(), &name, Some(shoes.uid), MAX_LOG);
    let text = text.map_err(|error| Load::Refused(format!("no status was written: {error}")))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
