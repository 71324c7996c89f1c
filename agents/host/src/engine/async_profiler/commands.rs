//! What async-profiler is told beside what to record, and what it answers.

/// End the recording and write what is not yet written. The log is only for what goes wrong.
pub fn stop(log: &str) -> String {
    format!("stop,log={log}")
}

/// Write whether a recording is going on.
pub fn status(file: &str) -> String {
    format!("status,file={file}")
}

/// Whether a status tells of no recording.
pub fn is_idle(status: &str) -> bool {
    status.contains("not active")
}

/// The profiler's own words in a log, without those that only announce.
pub fn complaint(log: &str) -> String {
    let lines = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "Profiling started");
    let mut told: Vec<&str> = Vec::new();
    for line in lines {
        // One complaint a thread: the first says it all.
        let kind = line.split("TID").next().unwrap_or(line);
        if told.len() < 8 && !told.iter().any(|other| other.starts_with(kind)) {
            told.push(line);
        }
    }
    told.join(" ").chars().take(600).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_told_once() {
        let log = "[WARN] perf_event_open for TID 1 failed: No\n[WARN] perf_event_open for TID 2 failed: No\n[ERROR] Perf events unavailable\n";
        assert_eq!(
            complaint(log),
            "[WARN] perf_event_open for TID 1 failed: No [ERROR] Perf events unavailable"
        );
        assert_eq!(complaint("Profiling started\n"), "");
    }
}
