//! The host's own `perf`.

use crate::engine::Engine;
use crate::outcome::Failure;
use crate::preflight::Findings;
use crate::proc::target::Target;
use crate::recording::Job;

/// The engine's name in a sampling.
pub const NAME: &str = "perf";

/// Make a process ready to be recorded by perf.
pub fn prepare(
    _job: &Job,
    target: Target,
    _findings: &Findings,
) -> Result<Box<dyn Engine>, Failure> {
    Err(Failure::plain(format!(
        "process {} cannot be recorded by perf: this agent was built without it",
        target.pid
    )))
}
