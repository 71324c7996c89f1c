//! Shows `clean` when the agent's lease ends. The time is in the name of the main thread, which every process of the
//! host can read and which ends with the agent.
//!
//! It uses the same clock as the agent's waits. That clock stops while the machine sleeps, so no lease is over when it
//! wakes.

use std::ffi::CString;
use std::time::{Duration, Instant};

use rustix::thread::set_name;
use rustix::time::{clock_gettime, ClockId};

use crate::os::proc::read_text;

const WORD: &str = "lease ";

/// To be called by the main thread.
pub fn show(until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    let name = format!("{WORD}{}", (now() + left).as_secs());
    // The kernel keeps 15 bytes: nine digits are 31 years.
    if let Ok(name) = CString::new(name) {
        // Without the name the lease is unknown.
        let _ = set_name(&name);
    }
}

/// Show no lease: this agent only waits for another one to end.
pub fn hide() {
    let _ = set_name(c"agent");
}

/// The seconds until a process's lease ends, negative if it is over. None: it shows no lease.
pub fn shown(pid: i32) -> Option<i64> {
    let end = parse(&read_text(format!("/proc/{pid}/comm"), 64)?)?;
    Some(end.saturating_sub_unsigned(now().as_secs()))
}

fn parse(name: &str) -> Option<i64> {
    let end = name.trim_end().strip_prefix(WORD)?.parse::<u32>();
    end.ok().map(i64::from)
}

/// The clock of `Instant`, and of perf's recordings.
pub fn now() -> Duration {
    clock(ClockId::Monotonic)
}

/// The clock of processes' start times.
pub fn since_boot() -> Duration {
    clock(ClockId::Boottime)
}

/// The wall clock.
pub fn since_1970() -> Duration {
    clock(ClockId::Realtime)
}

fn clock(id: ClockId) -> Duration {
    let now = clock_gettime(id);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_understood() {
        assert_eq!(parse("lease 123456789\n"), Some(123_456_789));
        assert_eq!(parse("agent-012345678\n"), None);
        assert_eq!(parse("lease -7\n"), None);
        assert!(format!("{WORD}123456789").len() <= 15);
    }

    #[test]
    fn a_thread_shows_its_lease_by_the_clock_it_waits_by() {
        let long = Duration::from_secs(100);
        let end = || i64::try_from((now() + long).as_secs()).unwrap();
        let earliest = end();
        let shown = std::thread::spawn(move || {
            show(Instant::now() + long);
            parse(&read_text("/proc/thread-self/comm", 64).unwrap()).unwrap()
        });
        let shown = shown.join().unwrap();
        assert!((earliest..=end()).contains(&shown));
        assert_eq!(super::shown(1), None);
    }
}
