//! What async-profiler is told beside what to record, and what it answers.

/// End the recording and write what is not yet written. The log is only for what goes wrong.
pub fn stop(log: &str) -> String {
    format!("stop,log={log}")
}

/// Write whether a recording is going on.
pub fn status(file: &str) -> String {
    format!("status,file={file}")
}

/// Whether a status, or what is said of a `stop`, tells of no recording.
pub fn is_idle(status: &str) -> bool {
    status.contains("not active")
}

/// The profiler's own words in a log, without those that only announce, and what they say of single threads and
/// of options that are not ours.
pub fn complaint(log: &str) -> String {
    let lines = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "Profiling started");
    let mut told: Vec<String> = Vec::new();
    for line in lines.map(plain) {
        if told.len() < 8 && !told.contains(&line) {
            told.push(line);
        }
    }
    told.join("; ").chars().take(600).collect()
}

fn plain(line: &str) -> String {
    let words = ["[WARN] ", "[ERROR] "]
        .iter()
        .find_map(|level| line.strip_prefix(level))
        .unwrap_or(line);
    let words = words.split(". Try ").next().unwrap_or(words);
    let Some((before, after)) = words.split_once(" for TID ") else {
        return words.into();
    };
    format!(
        "{before}{}",
        after.trim_start_matches(|c: char| c.is_ascii_digit())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_told_once() {
        let log = "[WARN] perf_event_open for TID 1 failed: No\n[WARN] perf_event_open for TID 2 failed: No\n[ERROR] Perf events unavailable. Try --all-user\n";
        assert_eq!(
            complaint(log),
            "perf_event_open failed: No; Perf events unavailable"
        );
        assert_eq!(complaint("Profiling started\n"), "");
    }
}
