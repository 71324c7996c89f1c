//! Whether a profiler samples a process, seen from outside.

use crate::os::proc::target::Target;

const OF_PERF_EVENTS: &str = "anon_inode:[perf_event]";
/// How a timer reads that signals one thread, by the CPU time of one: the profiler's way where perf events cannot be
/// had. Applications' own timers go by the time of day.
const OF_THREAD: &str = "notify: signal/tid.";
const BY_CPU_TIME: &str = "ClockID: -";

/// Whether a profiler samples the process: by perf events of its own, or by timers of its threads. To be called before
/// the thread takes the process's user: some of this is only root's to see.
pub fn is_sampled(target: &Target) -> bool {
    let timers = target.read("timers", 1 << 20).unwrap_or_default();
    has_profilers_timer(&timers) || holds_perf_events(target)
}

/// In `/proc/PID/timers`, where each timer begins with its number.
pub fn has_profilers_timer(timers: &str) -> bool {
    let mut signals_thread = false;
    timers.lines().any(|line| {
        match line {
            line if line.starts_with("ID:") => signals_thread = false,
            line if line.starts_with(OF_THREAD) => signals_thread = true,
            _ => {}
        }
        signals_thread && line.starts_with(BY_CPU_TIME)
    })
}

fn holds_perf_events(target: &Target) -> bool {
    let mut files = target.open_files().into_iter().flatten().flatten();
    files.any(|file| file == OF_PERF_EVENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_applications_own_timers_are_no_profilers() {
        let timer = |notify: &str, clock: i32| {
            format!("ID: 0\nsignal: 27/0000000000000000\nnotify: {notify}\nClockID: {clock}\n")
        };
        let own = timer("signal/tid.12", 1) + &timer("signal/pid.12", -102);
        assert!(!has_profilers_timer(&own) && !has_profilers_timer(""));
        assert!(has_profilers_timer(&(own + &timer("signal/tid.12", -98))));
    }
}
