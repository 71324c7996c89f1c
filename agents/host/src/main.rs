//! The agent: finds processes on one host, profiles them for one session, and leaves nothing behind.
//!
//! It speaks `agents/PROTOCOL.md` on stdin and stdout. Each folder is a room, and a room uses only rooms to its right:
//! `session → commands → recording → {engine, metrics} → {discovery, resources} → jvm → staging → os → wire`.

#![cfg_attr(feature = "fuzz", allow(dead_code))]

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;

mod commands;
mod discovery;
mod engine;
mod jvm;
mod metrics;
mod os;
mod recording;
mod resources;
mod session;
mod staging;
mod wire;

use std::ffi::OsStr;
use std::process::ExitCode;

#[cfg(not(panic = "unwind"))]
compile_error!("the agent cleans up as it unwinds");

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let wanted = arguments.next();
    if wanted.as_deref() == Some("--version".as_ref()) {
        println!("hprofiler-agent {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    if wanted.as_deref() == Some(engine::pyspy::reader::WORD.as_ref()) {
        return engine::pyspy::child::run();
    }
    os::proc::own();
    resources::limits::set_low_priority();
    resources::limits::Limits::set(1.0, 0);
    os::audit::begin();
    let once = wanted.as_deref() == Some("--once".as_ref());
    if once {
        staging::folders::leave_nothing();
        arguments.next().as_deref().map(remove_own);
    }
    if once || wanted.as_deref() == Some("--any-library".as_ref()) {
        staging::shipped::take_any();
    }
    // Whatever the agent makes is for one user alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    allow_many_files();
    ExitCode::from(session::run::run(once))
}

/// The agent runs without its file. If it stays, the coordinator deletes it.
fn remove_own(binary: &OsStr) {
    if std::fs::remove_file(binary).is_ok() {
        os::audit::note("removed", || binary.to_string_lossy().into_owned());
    }
}

/// Each JVM needs half a dozen descriptors, and the usual limit is that of a shell.
fn allow_many_files() {
    use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
    let limit = getrlimit(Resource::Nofile);
    // If this fails, the last JVMs of a large host are refused with the reason.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}
