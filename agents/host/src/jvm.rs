//! One JVM with our library in it: start, stop, results, and leaving it as it was.

use std::time::Duration;

use rustix::fd::AsFd;

use crate::attach::{Attach, Reply};
use crate::engine::async_profiler::{self as profiler, Choice, Plan};
use crate::files::{is_at, read_regular};
use crate::foothold::{is_library_file, library_folder, run_folder, stage_library, Held, LIBRARY};
use crate::hsperf;
use crate::identity::Shoes;
use crate::outcome::Failure;
use crate::preflight::{refuse_disabled, Findings};
use crate::proc::target::Target;
use crate::recording::{Library, Started};

/// How long a JVM may take to answer.
const ANSWER: Duration = Duration::from_secs(15);
/// How long for writing what was recorded.
const WRITE: Duration = Duration::from_secs(60);
/// How long when nobody waits for the result any more.
const FAREWELL: Duration = Duration::from_secs(5);
/// The attach protocol of JDK 8 takes no longer argument.
const MAX_OPTIONS: usize = 1000;
/// The largest output of the profiler that is read, in bytes.
const MAX_OUTPUT: u64 = 256 << 20;
const MAX_LOG: u64 = 64 << 10;

/// A JVM in which the library is loaded. The thread that made it sees the JVM's files as the JVM's user.
pub struct Jvm {
    pub target: Target,
    shoes: Shoes,
    library: Held,
    run: Held,
    /// Whether a recording of ours may be going on in it.
    running: bool,
}

/// What the profiler wrote, as folded text.
pub enum Recorded {
    Whole {
        samples: Vec<u8>,
        total: Vec<u8>,
    },
    /// The JVM ended, and wrote this as it did.
    Ended {
        samples: Vec<u8>,
    },
}

impl Jvm {
    /// Take the JVM's user and files, put the library there, load it and see that nobody is profiling.
    pub fn enter(
        target: Target,
        findings: &Findings,
        library: &Library,
        session: &str,
    ) -> Result<Self, Failure> {
        let shoes = Shoes::put_on(&target)?;
        refuse_disabled(target.pid, &findings.options)?;
        refuse_disabled(
            target.pid,
            &hsperf::options(&shoes, target.status.namespace_pid),
        )?;
        let bases = bases(&shoes, findings, library);
        let run =
            run_folder(&shoes, &bases, session).map_err(|tried| no_folder(target.pid, &tried))?;
        let folder = library_folder("", &library.sha256, shoes.uid);
        let staged = refuse_others(&target, &shoes, findings, &run, &folder)
            .and_then(|()| stage_and_load(&target, &shoes, &bases, library, &run));
        match staged {
            Ok(library) => Ok(Self {
                target,
                shoes,
                library,
                run,
                running: false,
            }),
            Err(failure) => {
                // What cannot be deleted now is found by `clean`.
                let _ = run.release(|_| true);
                Err(failure)
            }
        }
    }

    fn attach(&self) -> Attach<'_> {
        Attach {
            target: &self.target,
            shoes: &self.shoes,
        }
    }

    fn command(&self, options: &str, timeout: Duration) -> Result<Reply, Failure> {
        if options.len() > MAX_OPTIONS {
            return Err(Failure::plain(format!(
                "a path is too long for the attach protocol: {}",
                self.run.path
            )));
        }
        self.attach().load(
            &format!("{}/{LIBRARY}", self.library.path),
            options,
            timeout,
        )
    }

    /// The JVM's name for a file of this recording.
    fn file(&self, kind: &str) -> String {
        format!("{}/{}.{kind}", self.run.path, self.target.file_stem())
    }

    fn read(&self, kind: &str, limit: u64) -> std::io::Result<Vec<u8>> {
        let name = format!("{}.{kind}", self.target.file_stem());
        read_regular(self.run.dir.as_fd(), &name, Some(self.shoes.uid), limit)
    }

    fn log(&self) -> String {
        profiler::complaint(&String::from_utf8_lossy(
            &self.read("log", MAX_LOG).unwrap_or_default(),
        ))
    }

    /// Start the first of the plan's ways that works.
    pub fn start(&mut self, plan: &Plan) -> Result<Started, Failure> {
        let mut refused = String::new();
        for choice in &plan.choices {
            let options = plan.start(choice, &self.file("end"), &self.file("log"));
            // Until the answer is known the JVM may have started it, or yet start it.
            self.running = true;
            match self.command(&options, ANSWER)? {
                Reply::Returned(0) => {
                    return Ok(Started {
                        choice: choice.clone(),
                        refused,
                    })
                }
                reply => refused = self.explain(&reply),
            }
            self.running = false;
            if refused.contains("already started") {
                break;
            }
        }
        Err(start_failure(self.target.pid, &refused))
    }

    fn explain(&self, reply: &Reply) -> String {
        match reply {
            Reply::Refused(text) => text.clone(),
            Reply::Returned(code) => match self.log() {
                log if log.is_empty() => format!("async-profiler returned {code}"),
                log => log,
            },
        }
    }

    /// End the recording and read what it yielded.
    pub fn stop(&mut self, plan: &Plan, choice: &Choice) -> Result<Recorded, Failure> {
        match self.fetch() {
            Ok(recorded) => Ok(recorded),
            Err(_) if self.target.stat().is_none() => self.ended(),
            Err(failure) => Err(self.let_go_later(plan, choice, failure)),
        }
    }

    fn fetch(&mut self) -> Result<Recorded, Failure> {
        let failed = |jvm: &Self, what: &str, reply: &Reply| {
            Failure::plain(format!(
                "async-profiler could not {what}: {}",
                jvm.explain(reply)
            ))
        };
        match self.command(
            &profiler::stop(&self.file("total"), &self.file("log")),
            WRITE,
        )? {
            Reply::Returned(0) => self.running = false,
            reply => return Err(failed(self, "stop", &reply)),
        }
        match self.command(&profiler::dump(&self.file("samples")), WRITE)? {
            Reply::Returned(0) => {}
            reply => return Err(failed(self, "write its samples", &reply)),
        }
        let read = |kind| {
            self.read(kind, MAX_OUTPUT).map_err(|error| {
                Failure::new(
                    format!("the profiler's output is missing: {error}"),
                    "see whether the folder's disk is full",
                )
            })
        };
        Ok(Recorded::Whole {
            samples: read("samples")?,
            total: read("total")?,
        })
    }

    fn ended(&mut self) -> Result<Recorded, Failure> {
        self.running = false;
        match self.read("end", MAX_OUTPUT) {
            Ok(samples) => Ok(Recorded::Ended { samples }),
            Err(_) => Err(Failure::new(
                "the JVM ended during the recording and wrote nothing: it was killed (SIGKILL, out of memory) or crashed",
                "look at the system's log and at hs_err files",
            )),
        }
    }

    fn let_go_later(&self, plan: &Plan, choice: &Choice, failure: Failure) -> Failure {
        match self.running {
            true => Failure::new(
                format!(
                    "{}; the profiler ({}) stops by itself",
                    failure.reason, choice.event
                ),
                format!("{} (within {} s)", failure.remedy, plan.time_limit())
                    .trim()
                    .to_owned(),
            ),
            false => failure,
        }
    }

    /// Stop what may still run and delete what was put here. The paths that could not be deleted.
    pub fn leave(mut self) -> Vec<String> {
        if self.running && self.target.stat().is_some() {
            // The second command has the JVM close the first one's log.
            let _ = self
                .command(&profiler::stop("/dev/null", "/dev/null"), FAREWELL)
                .and_then(|_| self.command(&profiler::status("/dev/null"), FAREWELL));
            self.running = false;
        }
        let left = [
            self.library.release(is_library_file),
            self.run.release(|_| true),
        ];
        left.into_iter().filter_map(Result::err).collect()
    }
}

fn start_failure(pid: i32, reason: &str) -> Failure {
    let remedy = match reason {
        text if text.contains("already started") => {
            "another profiling session began just before; wait for its end, or run hprofiler cleanup if it was broken off"
        }
        text if text.contains("ulimit") => "raise the JVM's limit of open files",
        _ => "choose another event, or see what async-profiler says",
    };
    Failure::new(
        format!("async-profiler does not start in process {pid}: {reason}"),
        remedy,
    )
}

fn no_folder(pid: i32, tried: &str) -> Failure {
    Failure::new(
        format!("no folder that process {pid} can write to: {tried}"),
        "give the JVM's user a writable /tmp, /var/tmp or /dev/shm",
    )
}

/// Where a library may be put, as the JVM sees it, best first: where it is loaded from already, then the usual places.
fn bases(shoes: &Shoes, findings: &Findings, library: &Library) -> Vec<String> {
    let folder = library_folder("", &library.sha256, shoes.uid);
    let loaded = findings
        .ours
        .iter()
        .filter_map(|path| path.rsplit_once('/')?.0.strip_suffix(&folder));
    let usual = ["/tmp", "/var/tmp", "/dev/shm"].into_iter();
    let mut bases: Vec<String> = loaded.chain(usual).map(str::to_owned).collect();
    bases.extend(shoes.cwd_path.clone().filter(|path| is_at_cwd(shoes, path)));
    // A comma ends a file name in the profiler's arguments, and it fills in what follows a percent sign.
    bases.retain(|base| !base.contains([',', '%']));
    let mut seen = std::collections::HashSet::new();
    bases.retain(|base| seen.insert(base.clone()));
    bases
}

fn is_at_cwd(shoes: &Shoes, path: &str) -> bool {
    shoes
        .cwd
        .as_ref()
        .is_some_and(|cwd| is_at(cwd, &shoes.path(path)))
}

/// Another async-profiler may be loaded and idle; while it records, ours must not. `folder` is the
/// name of that which the library to be loaded has.
fn refuse_others(
    target: &Target,
    shoes: &Shoes,
    findings: &Findings,
    run: &Held,
    folder: &str,
) -> Result<(), Failure> {
    let others = findings.ours.iter().filter(|other| !other.contains(folder));
    for (library, ours) in others
        .map(|path| (path, true))
        .chain(findings.foreign.iter().map(|path| (path, false)))
    {
        match status(target, shoes, library, run) {
            Ok(text) if profiler::is_idle(&text) => {}
            // Sessions delete their library only after they stopped it, so one that is gone is idle.
            Err(Load::Refused(_)) if ours => {}
            Ok(_) if ours => return Err(already_profiled(target.pid)),
            Ok(_) | Err(Load::Refused(_)) => {
                return Err(Failure::new(
                    format!(
                        "another async-profiler ({library}) is at work in process {}",
                        target.pid
                    ),
                    "stop it first (asprof stop), or wait for its end",
                ))
            }
            Err(Load::Failed(failure)) => return Err(failure),
        }
    }
    Ok(())
}

fn stage_and_load(
    target: &Target,
    shoes: &Shoes,
    bases: &[String],
    library: &Library,
    run: &Held,
) -> Result<Held, Failure> {
    let mut tried = Vec::new();
    for base in bases {
        let held = match stage_library(shoes, base, &library.sha256, &library.bytes) {
            Ok(held) => held,
            Err(reason) => {
                tried.push(reason);
                continue;
            }
        };
        match status(target, shoes, &format!("{}/{LIBRARY}", held.path), run) {
            Ok(text) if profiler::is_idle(&text) => return Ok(held),
            Ok(_) => {
                let _ = held.release(is_library_file);
                return Err(already_profiled(target.pid));
            }
            Err(Load::Failed(failure)) => {
                let _ = held.release(is_library_file);
                return Err(failure);
            }
            Err(Load::Refused(text)) => {
                tried.push(format!("{}: {text}", held.path));
                let _ = held.release(is_library_file);
            }
        }
    }
    Err(Failure::new(
        format!("process {} cannot load async-profiler: {}", target.pid, tried.join("; ")),
        "the JVM's user needs a writable folder that is not mounted noexec, among /tmp, /var/tmp and /dev/shm",
    ))
}

fn already_profiled(pid: i32) -> Failure {
    Failure::new(
        format!("process {pid} is being profiled by another hprofiler session"),
        "wait for its end; if that session was broken off, run hprofiler cleanup",
    )
}

/// Why a library gave no status.
enum Load {
    /// This library, or the place it is in, will not do.
    Refused(String),
    /// Nothing would, in this JVM.
    Failed(Failure),
}

/// Its being there in a folder that is held means that a session is at work on the process.
pub fn status_file(target: &Target) -> String {
    format!("{}.status", target.file_stem())
}

/// Load a library, which does no harm to one that is loaded, and ask it what it is doing.
fn status(target: &Target, shoes: &Shoes, library: &str, run: &Held) -> Result<String, Load> {
    let name = status_file(target);
    let command = profiler::status(&format!("{}/{name}", run.path));
    let reply = Attach { target, shoes }
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
