//! One JVM with our library in it: start, stop, results, and leaving it as it was.
//!
//! All time limits together stay below the half minute that a coordinator gives a host for a step, so that one JVM
//! that hangs does not lose the others' results.

use std::time::Duration;

use rustix::fd::AsFd;

use crate::attach::{Attach, Reply};
use crate::engine::async_profiler::{self as profiler, Choice, Plan};
use crate::files::read_regular;
use crate::foothold::{library_folder, run_folder, Held, LIBRARY};
use crate::hsperf;
use crate::identity::Shoes;
use crate::loading::{bases, let_library_go, refuse_others, stage_and_load};
use crate::outcome::Failure;
use crate::preflight::{refuse_disabled, Findings};
use crate::proc::target::Target;
use crate::recording::{Library, Started};

/// How long a JVM may take to answer.
pub const ANSWER: Duration = Duration::from_secs(10);
/// How long for writing what was recorded.
const WRITE: Duration = Duration::from_secs(15);
/// How long when nobody waits for the result any more.
const FAREWELL: Duration = Duration::from_secs(5);
/// The attach protocol of JDK 8 takes no longer argument.
const MAX_OPTIONS: usize = 1000;
/// The largest output of the profiler that is read, in bytes.
const MAX_OUTPUT: u64 = 256 << 20;
/// The largest log or status that is read, in bytes.
pub const MAX_LOG: u64 = 64 << 10;

/// A JVM in which the library is loaded. The thread that made it sees the JVM's files as the JVM's user.
pub struct Jvm {
    pub target: Target,
    shoes: Shoes,
    library: Held,
    run: Held,
    musl: bool,
    /// Whether a recording of ours may be going on in it.
    running: bool,
}

/// How a recording was over.
#[derive(Clone, Copy)]
pub enum Stopped {
    AsTold,
    /// By the JVM's end.
    WithTheJvm,
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
        refuse_disabled(target.pid, &findings.launched.options(&shoes.named))?;
        refuse_disabled(
            target.pid,
            &hsperf::options(&shoes.named, &findings.performance_data),
        )?;
        let bases = bases(&shoes, findings, library);
        let run =
            run_folder(&shoes, &bases, session).map_err(|tried| no_folder(target.pid, &tried))?;
        let folder = library_folder("", &library.sha256, shoes.uid);
        let staged = refuse_others(&target, &shoes, findings, &run, &folder)
            .and_then(|()| stage_and_load(&target, &shoes, findings, &bases, library, &run));
        match staged {
            Ok(library) => Ok(Self {
                target,
                shoes,
                library,
                run,
                musl: findings.musl,
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

    /// End the recording and have the JVM write what it yielded.
    pub fn stop(&mut self, plan: &Plan, choice: &Choice) -> Result<Stopped, Failure> {
        match self.write() {
            Ok(()) => Ok(Stopped::AsTold),
            Err(_) if self.target.stat().is_none() => {
                self.running = false;
                Ok(Stopped::WithTheJvm)
            }
            Err(failure) => Err(self.let_go_later(plan, choice, failure)),
        }
    }

    fn write(&mut self) -> Result<(), Failure> {
        let failed = |jvm: &Self, what: &str, reply: &Reply| {
            Err(Failure::plain(format!(
                "async-profiler could not {what}: {}",
                jvm.explain(reply)
            )))
        };
        match self.command(
            &profiler::stop(&self.file("total"), &self.file("log")),
            WRITE,
        )? {
            Reply::Returned(0) => self.running = false,
            reply => return failed(self, "stop", &reply),
        }
        match self.command(&profiler::dump(&self.file("samples")), WRITE)? {
            Reply::Returned(0) => Ok(()),
            reply => failed(self, "write its samples", &reply),
        }
    }

    /// Read what a recording yielded: up to half a gibibyte.
    pub fn recorded(&self, stopped: Stopped) -> Result<Recorded, Failure> {
        let read = |kind| {
            self.read(kind, MAX_OUTPUT).map_err(|error| {
                Failure::new(
                    format!("the profiler's output is missing: {error}"),
                    "see whether the folder's disk is full",
                )
            })
        };
        match stopped {
            Stopped::AsTold => Ok(Recorded::Whole {
                samples: read("samples")?,
                total: read("total")?,
            }),
            Stopped::WithTheJvm => self.ended(),
        }
    }

    fn ended(&self) -> Result<Recorded, Failure> {
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
            let_library_go(self.library, self.musl),
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

/// Its being there in a folder that is held means that a session is at work on the process.
pub fn status_file(target: &Target) -> String {
    format!("{}.status", target.file_stem())
}
