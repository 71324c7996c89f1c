//! Until when an agent lives if it hears nothing more, shown to those who clean up: as the name of its main thread,
//! which every process of the host may read and which ends with the agent.

use std::ffi::CString;
use std::time::{Duration, Instant};

use rustix::thread::set_name;
use rustix::time::{clock_gettime, ClockId};

use crate::proc::read_text;

const WORD: &str = "lease ";
/// How long an agent may take to stop and delete what it made, in seconds.
pub const TO_CLEAN: u64 = 120;

/// Show it; to be called by the main thread.
pub fn show(until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    let name = format!("{WORD}{}", (since_boot() + left).as_secs());
    // The kernel keeps 15 bytes: nine digits are 31 years.
    if let Ok(name) = CString::new(name) {
        // A name that cannot be given is one that is not understood.
        let _ = set_name(&name);
    }
}

/// Show none any more: whoever lends its place to another agent lives as long as that one needs.
pub fn hide() {
    let _ = set_name(c"agent");
}

/// What a process shows, in seconds since the boot; None of one that shows nothing.
pub fn shown(pid: i32) -> Option<u64> {
    parse(&read_text(format!("/proc/{pid}/comm"), 64)?)
}

fn parse(name: &str) -> Option<u64> {
    name.trim_end().strip_prefix(WORD)?.parse().ok()
}

/// The clock that processes' start times are of.
pub fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_understood() {
        assert_eq!(parse("lease 123456789\n"), Some(123_456_789));
        assert_eq!(parse("agent-012345678\n"), None);
        assert!(format!("{WORD}123456789").len() <= 15);
    }
}
