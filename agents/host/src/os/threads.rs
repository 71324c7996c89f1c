//! Runs work on separate threads, and turns panics and missing answers into failures.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::thread;

use crate::wire::outcome::{Code, Failure};

/// The stack of a thread that works for one process.
pub const STACK: usize = 512 << 10;

/// Run work for a process on a thread that it may change as it likes.
pub fn on_thread<T: Send>(
    pid: i32,
    engine: &str,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    thread::scope(|scope| {
        let spawned = thread::Builder::new()
            .name(format!("{engine} {pid}"))
            .stack_size(STACK)
            .spawn_scoped(scope, work);
        let thread = spawned.map_err(|error| no_thread(pid, &error))?;
        thread.join().map_err(|_| broken())?
    })
}

/// Run work, and turn a panic into a failure.
pub fn unbroken<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| broken())
}

pub fn broken() -> Failure {
    Failure::plain("a thread of the agent failed: a bug in hprofiler").coded(Code::InternalError)
}

pub fn hangs(pid: i32) -> Failure {
    Failure::new(
        format!("process {pid} takes too long: it or its file system does not answer"),
        "check whether the process and its folders answer",
    )
    .coded(Code::ProcessHangs)
}

pub fn no_thread(pid: i32, error: &std::io::Error) -> Failure {
    Failure::new(
        format!("no thread for process {pid}: {error}"),
        "raise the limit of processes (ulimit -u)",
    )
    .coded(Code::TooManyThreads)
}
