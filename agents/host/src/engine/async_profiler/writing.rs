//! Whether a JVM records for one of our sessions, by what it has open: known even where its library cannot be asked.

use std::fs;
use std::io;
use std::path::Path;

use super::jvm::RECORDING;
use crate::foothold::RUN_FOLDER;
use crate::proc::target::Target;

/// As many files of a process are looked at.
const MOST_FILES: usize = 1 << 16;
/// What the kernel puts behind the name of a file that is gone.
const DELETED: &str = " (deleted)";

/// async-profiler has its recording open for as long as it records. None: that cannot be seen. To be called before the
/// thread takes the process's user, and sees its files.
pub fn writes_recording(target: &Target) -> Option<bool> {
    let files = fs::read_dir(format!("/proc/{}/fd", target.pid)).ok()?;
    for file in files.take(MOST_FILES).flatten() {
        match fs::read_link(file.path()) {
            Ok(link) if is_recording(&link) => return Some(true),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return None,
            _ => {} // another file, or closed meanwhile
        }
    }
    Some(false)
}

fn is_recording(link: &Path) -> bool {
    let text = link.to_string_lossy();
    let path = Path::new(text.strip_suffix(DELETED).unwrap_or(&text));
    let folder = path.parent().and_then(Path::file_name);
    let of_session = folder.is_some_and(|name| name.to_string_lossy().starts_with(RUN_FOLDER));
    of_session && path.extension().is_some_and(|kind| kind == RECORDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_known_by_name_and_folder() {
        for (link, want) in [
            ("/tmp/.hprofiler-run-1-2-0/4026531836-7-9.jfr", true),
            (
                "/tmp/.hprofiler-run-1-2-0/4026531836-7-9.jfr (deleted)",
                true,
            ),
            ("/tmp/.hprofiler-run-1-2-0/4026531836-7-9.log", false),
            ("/tmp/mine/app.jfr", false),
            ("socket:[4711]", false),
        ] {
            assert_eq!(is_recording(Path::new(link)), want, "{link}");
        }
    }
}
