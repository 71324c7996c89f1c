//! A JVM in which our library is loaded: start, stop, and leave it as it was.
//!
//! All time limits together stay below the half minute that a coordinator gives a host for a step, so that a JVM that
//! hangs does not cost the results of others.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flamegraph::SliceOf;
use rustix::fd::AsFd;
use rustix::fs::Mode;

use super::events::{counted, SYMBOLS};
use super::loading::Entered;
use super::plan::{self, Choice, Plan};
use super::thread_names::ThreadNames;
use crate::engine::api::{Note, Shared, Stopped};
use crate::engine::kernel_events::is_tracepoint;
use crate::jvm::attach::{Attach, Reply};
use crate::os::files::{open_regular, punch, read_regular, regular, write_whole};
use crate::os::identity::Namespaces;
use crate::os::lease::since_1970;
use crate::os::proc::target::Target;
use crate::resources::disk::DiskCap;
use crate::staging::folders::{let_library_go, Held, ASYNC_PROFILER, RECORDING};
use crate::wire::outcome::{Code, Failure};

/// How long a JVM may take to answer.
pub const ANSWER: Duration = Duration::from_secs(10);
const WRITE: Duration = Duration::from_secs(15);
/// How long an answer may take when nobody waits for the result.
const FAREWELL: Duration = Duration::from_secs(5);
/// The longest argument of JDK 8's attach protocol.
const MAX_OPTIONS: usize = 1000;
/// The largest log or status that is read, in bytes.
pub const MAX_LOG: u64 = 64 << 10;

/// A JVM in which the library is loaded. Its thread has the JVM's user and namespaces.
pub struct Jvm {
    pub target: Target,
    namespaces: Namespaces,
    library: Held,
    run: Held,
    cap: DiskCap,
    musl: bool,
    pub shared: Arc<Shared>,
    /// Whether a recording of ours may be running.
    running: bool,
    /// Whether the JVM may have a log of ours open.
    logs: bool,
    /// How long loading and starting it took, without the wait for a turn.
    attached: Duration,
    /// The recording, once it is over.
    recorded: Option<File>,
    /// So many bytes at its begin are no longer on the disk.
    forgotten: u64,
    /// The names of its threads, if they are wanted, and why they are not followed.
    names: Option<ThreadNames>,
    pub names_failure: Option<Failure>,
}

impl Jvm {
    pub fn new(
        target: Target,
        namespaces: Namespaces,
        entered: Entered,
        musl: bool,
        shared: Arc<Shared>,
        names: Option<ThreadNames>,
    ) -> Self {
        Self {
            target,
            namespaces,
            library: entered.library,
            run: entered.run,
            cap: entered.cap,
            musl,
            shared,
            running: false,
            logs: false,
            attached: entered.attached,
            recorded: None,
            forgotten: 0,
            names,
            names_failure: None,
        }
    }

    pub fn attached(&self) -> Duration {
        self.attached
    }

    fn attach(&self) -> Attach<'_> {
        Attach::new(&self.target, &self.namespaces)
    }

    fn command(&self, options: &str, timeout: Duration) -> Result<Reply, Failure> {
        if options.len() > MAX_OPTIONS {
            return Err(Failure::plain(format!(
                "a path is too long for the attach protocol: {}",
                self.run.path
            ))
            .coded(Code::PathTooLong));
        }
        // If the file is gone, somebody may have replaced it, and musl would load that as a second library.
        if self.musl && !self.library.is_there() {
            let why = format!("{} is gone, so it cannot be called", self.library.path);
            return Err(Failure::plain(why));
        }
        self.attach().load(
            &format!("{}/{}", self.library.path, ASYNC_PROFILER.file),
            options,
            timeout,
        )
    }

    /// The JVM's name for a file of this recording.
    fn file(&self, kind: &str) -> String {
        format!("{}/{}.{kind}", self.run.path, self.target.file_stem())
    }

    fn read(&self, kind: &str, limit: u64) -> io::Result<Vec<u8>> {
        let name = format!("{}.{kind}", self.target.file_stem());
        read_regular(
            self.run.dir.as_fd(),
            &name,
            Some(self.namespaces.uid),
            limit,
        )
    }

    fn log(&self) -> String {
        plan::complaint(&String::from_utf8_lossy(
            &self.read("log", MAX_LOG).unwrap_or_default(),
        ))
    }

    /// Start with the first choice that works. Also returns why the one before did not.
    pub fn start(&mut self, plan: &Plan) -> Result<(Choice, String), Failure> {
        let shared = self.shared.clone();
        let _turn = shared.attach_turn()?;
        let began = Instant::now();
        let started = self.start_one_of(plan);
        if started.is_ok() {
            self.start_names(plan.time_limit());
        }
        self.attached += began.elapsed();
        started
    }

    fn start_names(&mut self, limit: u64) {
        if let Some(names) = &mut self.names {
            let started = names.start(&self.target, &self.namespaces, &self.run, limit);
            self.names_failure = started.err();
        }
    }

    /// The names end by themselves, too.
    pub fn stop_names(&mut self) {
        if let Some(names) = &mut self.names {
            names.stop(&self.target, &self.namespaces, &self.run);
        }
    }

    /// The slices that the names of threads say, and what should be known of them.
    pub fn slices(&mut self) -> (Option<Arc<dyn SliceOf>>, Option<Note>) {
        self.names
            .as_mut()
            .map_or((None, None), ThreadNames::slices)
    }

    /// Those of the names until now.
    pub fn slices_so_far(&mut self, since: i64) -> Option<Arc<dyn SliceOf>> {
        let names = self.names.as_mut()?;
        names.slices_so_far(&self.target, &self.namespaces, &self.run, since)
    }

    fn start_one_of(&mut self, plan: &Plan) -> Result<(Choice, String), Failure> {
        let until = since_1970().as_secs() + plan.seconds;
        let (name, until) = (until_file(&self.target), until.to_string());
        // Without it, another session does not learn when this one ends.
        let _ = write_whole(None, &self.run.dir, &name, until.as_bytes(), Mode::RUSR);
        let mut refused = String::new();
        for choice in &plan.choices {
            let options = plan.start(choice, &self.file(RECORDING), &self.file("log"));
            // Without an answer the JVM may have started it, or may still start it.
            self.running = true;
            self.logs = true;
            match self.command(&options, ANSWER)? {
                Reply::Returned(0) => return Ok((choice.clone(), refused)),
                reply => refused = self.explain(&reply),
            }
            self.running = false;
            if refused.contains("already started") {
                break;
            }
        }
        Err(start_failure(self.target.pid, &plan.events, &refused))
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

    /// End the recording; the JVM writes the rest of it. After `limit` seconds it ends by itself.
    pub fn stop(&mut self, limit: u64) -> Result<Stopped, Failure> {
        self.attach().await_motion();
        let stopped = match self.command(&plan::stop(&self.file("log")), WRITE) {
            Ok(Reply::Returned(0)) => Stopped::OnRequest,
            Ok(reply) => match self.explain(&reply) {
                why if plan::is_idle(&why) => Stopped::Early,
                why => {
                    let reason = format!("async-profiler could not stop: {why}");
                    return Err(Failure::plain(reason).coded(Code::StopFailed));
                }
            },
            Err(_) if self.target.stat().is_none() => Stopped::WithTheProcess,
            Err(failure) => {
                let reason = format!("{}; the profiler stops by itself", failure.reason);
                let remedy = format!("{} (within {limit} s)", failure.remedy);
                return Err(Failure::new(reason, remedy.trim()).coded(Code::StopFailed));
            }
        };
        self.running = false;
        if stopped != Stopped::WithTheProcess {
            self.close_log();
        }
        Ok(stopped)
    }

    /// The JVM keeps the log open until it gets a command without a log.
    fn close_log(&mut self) {
        let _ = self.command(&plan::status("/dev/null"), FAREWELL);
        self.logs = false;
    }

    pub fn too_much(&self) -> Option<Failure> {
        let recording = self.recording(u64::MAX);
        let size = recording.map_or(0, |(_, size)| size);
        let size = size.saturating_sub(self.forgotten);
        let refused = self.cap.refuse(size, &self.run.dir, &self.run.path);
        refused.err()
    }

    /// Give back the disk space of what was recorded until this place in the file.
    pub fn forget(&mut self, file: &File, to: u64) {
        // Where that cannot be done the file grows, up to its limit.
        if punch(file, to).is_ok() {
            self.forgotten = to;
        }
    }

    /// Keep the recording open. It may wait long to be folded, and a container that ends takes its files with it.
    pub fn hold_recording(&mut self) {
        self.recorded = self.recording(u64::MAX).ok().map(|(file, _)| file);
    }

    pub fn recording(&self, limit: u64) -> io::Result<(File, u64)> {
        let (name, owner) = (recording_file(&self.target), Some(self.namespaces.uid));
        match &self.recorded {
            Some(file) => regular(file.try_clone()?, &name, owner, limit),
            None => open_regular(self.run.dir.as_fd(), &name, owner, limit),
        }
    }

    /// Stop what may still run and delete our files. Returns the paths that could not be deleted.
    pub fn leave(mut self) -> Vec<String> {
        // NFS keeps the name of an open file, and with it the folder.
        self.recorded = None;
        self.end();
        // On musl a profiler whose library is deleted cannot be stopped, and the next run would load a second one.
        let library = match self.running && self.musl {
            true => Err(format!(
                "{}: the profiler could not be stopped",
                self.library.path
            )),
            false => let_library_go(self.library, self.musl),
        };
        let names = self.names.map_or(Ok(()), |names| names.leave(self.musl));
        let left = [library, names, self.run.release(|_| true)];
        left.into_iter().filter_map(Result::err).collect()
    }

    fn end(&mut self) {
        self.running &= self.target.stat().is_some();
        if self.running {
            self.running = self.command(&plan::stop("/dev/null"), FAREWELL).is_err();
        }
        self.running &= self.target.stat().is_some();
        // A profiler that did not start has opened its log too. A JVM that does not answer is not asked twice.
        if self.logs && !self.running && self.target.stat().is_some() {
            self.close_log();
        }
    }
}

pub fn start_failure(pid: i32, events: &[String], reason: &str) -> Failure {
    let event = counted(events).unwrap_or_default();
    let as_root = match is_tracepoint(event) {
        true => "; or, if it is a tracepoint, which the kernel shows to nobody but root, record it by perf as root (--become sudo --engine perf)",
        false => "",
    };
    let unknown = format!("{event} is neither an event of async-profiler nor a function in the process: choose another event{as_root}");
    // JDK 8 needs its debug symbols for allocations.
    let code = match reason.contains("AllocTracer") {
        true => Code::NoDebugSymbols,
        false => Code::StartFailed,
    };
    let remedy = match reason {
        text if text.contains("already started") => {
            "another profiling session started just before; wait for its end, or run `hprofiler cleanup` if it was killed"
        }
        _ if code == Code::NoDebugSymbols => SYMBOLS,
        text if text.contains("ulimit") => "raise the JVM's limit of open files",
        text if text.contains("Unsupported event type") && !event.is_empty() => &unknown,
        _ => "choose another event, or read the message of async-profiler",
    };
    Failure::new(
        format!(
            "async-profiler does not start in process {pid} for {}: {reason}",
            events.join(", ")
        ),
        remedy,
    )
    .coded(code)
}

/// A locked folder with this file: a session records the process.
pub fn recording_file(target: &Target) -> String {
    format!("{}.{RECORDING}", target.file_stem())
}

/// When the session that records the process intends to end, in seconds since 1970.
pub fn until_file(target: &Target) -> String {
    format!("{}.until", target.file_stem())
}

/// A locked folder with this file: a session works on the process.
pub fn status_file(target: &Target) -> String {
    format!("{}.status", target.file_stem())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_debug_symbols_have_a_code() {
        let code = |reason| start_failure(1, &["alloc".to_owned()], reason).code;
        assert_eq!(code("No AllocTracer symbols found"), Code::NoDebugSymbols);
        assert_eq!(code("No such event"), Code::StartFailed);
    }
}
