//! What the kernel sees to where the agent does not keep its own limits: by a fault of ours, or before it could look.
//!
//! Of the processor there is a signal, which ends the session with the usual cleaning. Beyond the bound of memory the
//! agent is broken off, as if it were killed: better so than that a host has none left.

use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

use super::pace::used;

/// What follows a recording, at most until the next result.
const AFTER: Duration = Duration::from_secs(120);
/// What a process's threads reserve for their stacks, and what the agent's own do, in bytes.
const STACKS: u64 = 6 << 20;
const OWN_STACKS: u64 = 64 << 20;

/// The limits that programs on this host have, which the agent was started with.
#[derive(Clone, Copy)]
pub struct Usual {
    processor: Rlimit,
    memory: Rlimit,
}

static USUAL: OnceLock<Usual> = OnceLock::new();

/// What the agent was started with; the first call is before any limit is set.
pub fn usual_for_programs() -> &'static Usual {
    USUAL.get_or_init(|| Usual {
        processor: getrlimit(Resource::Cpu),
        memory: getrlimit(Resource::Data),
    })
}

/// Give a program that the agent runs the limits that the agent had. Only system calls: to be called between fork and exec.
pub fn raise_for_programs(usual: &Usual) {
    // Where that cannot be, it keeps the agent's.
    let _ = setrlimit(Resource::Cpu, usual.processor);
    let _ = setrlimit(Resource::Data, usual.memory);
}

/// From now on so many processors for so long, and what follows.
pub fn set_processor(cores: f64, duration: Duration) {
    let more = (duration + AFTER).as_secs_f64() * cores.max(1.0);
    let seconds = used().as_secs_f64() + more;
    set(
        Resource::Cpu,
        seconds.ceil() as u64,
        usual_for_programs().processor,
    );
}

/// Twice the bound, and what is reserved and never used.
pub fn set_memory(bound: u64, processes: usize) {
    let stacks = STACKS.saturating_mul(processes as u64) + OWN_STACKS;
    let most = bound.saturating_mul(2).saturating_add(stacks);
    set(Resource::Data, most, usual_for_programs().memory);
}

/// The limit that may be raised again; a lower one of the host's own holds.
fn set(resource: Resource, most: u64, usual: Rlimit) {
    let lower = |limit: Option<u64>| limit.map_or(most, |limit| limit.min(most));
    let limit = Rlimit {
        current: Some(lower(usual.current).min(lower(usual.maximum))),
        maximum: usual.maximum,
    };
    // Where the kernel has no such limit the agent's own have to do.
    let _ = setrlimit(resource, limit);
}
