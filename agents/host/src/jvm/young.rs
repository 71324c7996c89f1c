//! A JVM that has just started: it cannot be attached to yet, and SIGQUIT would end it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;

use crate::os::lease::since_boot;
use crate::os::proc::maps::file_name;
use crate::os::proc::target::Target;

/// A JVM handles SIGQUIT a few hundred milliseconds after its start, later on a busy host. One with `-Xrs` never does.
const YOUNG: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// How long ago a process started, by its `start_time`.
pub fn age(start_time: u64) -> Duration {
    let start = Duration::from_secs_f64(start_time as f64 / clock_ticks_per_second() as f64);
    since_boot().saturating_sub(start)
}

/// Wait until a JVM that has just started handles SIGQUIT. Others are not waited for.
pub fn await_start(target: &Target) {
    let left = YOUNG.saturating_sub(age(target.start_time));
    let until = Instant::now() + left;
    if left.is_zero() || !is_jvm(target) {
        return;
    }
    let is_deaf = || {
        let status = target.status_now();
        status.is_some_and(|status| !status.catches_quit())
    };
    while is_deaf() && target.stat().is_some() && Instant::now() < until {
        sleep(LOOK);
    }
}

fn is_jvm(target: &Target) -> bool {
    let library = target.mapped(|mapping| file_name(&mapping.file.path) == "libjvm.so");
    library.is_some_and(|files| !files.is_empty())
}
