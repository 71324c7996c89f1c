//! Whether a JVM records for one of our sessions, by what it has open: known even where its library cannot be asked.

use std::path::Path;

use super::jvm::RECORDING;
use crate::os::proc::target::Target;
use crate::staging::beside::RUN_FOLDER;

/// What the kernel puts behind the name of a file that is gone.
const DELETED: &str = " (deleted)";

/// async-profiler has its recording open for as long as it records. None: that cannot be seen. To be called before the
/// thread takes the process's user, and sees its files.
pub fn writes_recording(target: &Target) -> Option<bool> {
    for file in target.open_files()? {
        if is_recording(&file.ok()?) {
            return Some(true);
        }
    }
    Some(false)
}

fn is_recording(link: &str) -> bool {
    let path = Path::new(link.strip_suffix(DELETED).unwrap_or(link));
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
            assert_eq!(is_recording(link), want, "{link}");
        }
    }
}
