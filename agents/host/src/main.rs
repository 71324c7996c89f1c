//! The agent: finds JVMs on one host, profiles them for one session, and leaves nothing behind.
//!
//! It speaks `agents/PROTOCOL.md` on stdin and stdout. The story: `main` → `session` (the event loop) →
//! `recording` (one process, one thread) → `jvm` (attach, start, stop, results).

mod attach;
mod clean;
mod engine;
mod files;
mod foothold;
mod host;
mod hsperf;
mod identity;
mod inbox;
mod jvm;
mod outcome;
mod output;
mod preflight;
mod proc;
mod protocol;
mod recording;
mod recordings;
mod selector;
mod session;
mod store;

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("--version") {
        println!("hprofiler-agent {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    // Whatever is made here is for one user alone, whatever the session's habits are.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    ExitCode::from(session::run())
}
