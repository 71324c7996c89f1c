//! The libraries of the agent's own package.
//!
//! A user whom sudo allows to run only this agent can send it any request, and a library acts as the user of the JVM
//! that loads it. So the agent loads only the libraries of its package. The argument `--any-library` lifts this. sudo
//! refuses arguments (docs/sudo.md), so a user who can pass it has root's rights anyway.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::wire::outcome::{Code, Failure};
use crate::wire::requests::Blobs;

/// SHA-256 of the libraries for all architectures, separated by spaces. setup.py sets it at compile time; an agent
/// without a package has none.
const SHIPPED: Option<&str> = option_env!("HPROFILER_SHIPPED_LIBRARIES");

static ANY: AtomicBool = AtomicBool::new(false);

pub fn take_any() {
    ANY.store(true, Ordering::Relaxed);
}

/// Refuse libraries that no process may load.
pub fn check(blobs: &Blobs) -> Result<(), Failure> {
    if ANY.load(Ordering::Relaxed) {
        return Ok(());
    }
    refuse_others("async-profiler", &blobs.async_profiler, SHIPPED)?;
    refuse_others("perfmap", &blobs.perfmap, SHIPPED)?;
    refuse_others("threadnames", &blobs.threadnames, SHIPPED)
}

fn refuse_others(name: &str, asked: &Option<String>, shipped: Option<&str>) -> Result<(), Failure> {
    let Some(asked) = asked else { return Ok(()) };
    if shipped
        .unwrap_or_default()
        .split(' ')
        .any(|hash| hash == asked)
    {
        return Ok(());
    }
    Err(Failure::new(
        format!("this library of {name} is not the one of the package; an agent that runs with sudo loads no other"),
        "leave --async-profiler out, or connect as root",
    ).coded(Code::LibraryRefused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shipped_libraries_are_accepted() {
        let refused =
            |asked: &str, shipped| refuse_others("x", &Some(asked.to_owned()), shipped).is_err();
        assert!(!refused("ab", Some("ab")) && !refused("cd", Some("ab cd")));
        assert!(
            refused("ab", Some("cd")) && refused("ab cd", Some("ab cd")) && refused("ab", None)
        );
        assert!(refuse_others("x", &None, None).is_ok());
    }
}
