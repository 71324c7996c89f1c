//! The libraries that this agent was built with: those of its own package.
//!
//! Who may have sudo run this agent, and nothing else, can talk to it as he likes; and what a JVM loads acts as the JVM's
//! user. So the agent has JVMs load these alone. An argument lets it take any: whoever may give it one has all its rights
//! by other ways, for sudo is to refuse arguments (docs/sudo.md).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::wire::outcome::Failure;
use crate::wire::requests::Blobs;

/// Their SHA-256, which setup.py tells the compiler. What the package lacks, and an agent that was built without a
/// package, has none.
const ASYNC_PROFILER: Option<&str> = option_env!("HPROFILER_SHIPPED_ASYNC_PROFILER");
const PERFMAP: Option<&str> = option_env!("HPROFILER_SHIPPED_PERFMAP");

static ANY: AtomicBool = AtomicBool::new(false);

/// From now on whatever library is sent will do.
pub fn take_any() {
    ANY.store(true, Ordering::Relaxed);
}

/// Refuse libraries that are not to be loaded into any process.
pub fn check(blobs: &Blobs) -> Result<(), Failure> {
    if ANY.load(Ordering::Relaxed) {
        return Ok(());
    }
    refuse_others("async-profiler", &blobs.async_profiler, ASYNC_PROFILER)?;
    refuse_others("perfmap", &blobs.perfmap, PERFMAP)
}

fn refuse_others(name: &str, asked: &Option<String>, own: Option<&str>) -> Result<(), Failure> {
    if asked.is_none() || asked.as_deref() == own {
        return Ok(());
    }
    Err(Failure::new(
        format!("this library of {name} is not the one that the agent was built with, and an agent that sudo runs has processes load no other"),
        "leave --async-profiler out, or connect as root",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_library_is_taken() {
        let refused = |asked: &str, own| refuse_others("x", &Some(asked.to_owned()), own).is_err();
        assert!(!refused("ab", Some("ab")));
        assert!(refused("ab", Some("cd")) && refused("ab", None));
        assert!(refuse_others("x", &None, None).is_ok());
    }
}
