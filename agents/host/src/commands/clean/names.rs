//! The names of the files and folders that hprofiler makes on a host.

use crate::os::files::{is_sha256, is_temporary};
use crate::staging::folders::{is_library_file, is_library_folder, RUN_FOLDER};

const PRIVATE: &str = ".hprofiler-";
const ONCE: &str = ".hprofiler-once-";
/// The last component of a user's own cache folder.
pub const CACHE: &str = "hprofiler";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The folder of a session, or of a library, beside a JVM.
    BesideJvm,
    /// The folder that is kept between runs, with the agent and its libraries.
    Private,
    /// The agent's file, if nothing may stay.
    Once,
}

/// The meaning of a name in one of the usual folders. None: it is not ours.
pub fn kind(name: &str) -> Option<Named> {
    let ends_in_number = name.rsplit('-').next().is_some_and(is_number);
    if (name.starts_with(RUN_FOLDER) || is_library_folder(name)) && ends_in_number {
        Some(Named::BesideJvm)
    } else if name.strip_prefix(PRIVATE).is_some_and(is_number) {
        Some(Named::Private)
    } else if is_once(name) {
        Some(Named::Once)
    } else {
        None
    }
}

/// Whether a file in one of our folders may be ours.
pub fn is_file(name: &str) -> bool {
    // A file of an engine: numbers of a process, then its kind.
    let of_run = name.split_once('.').is_some_and(|(numbers, kind)| {
        let digit = |b: u8| b.is_ascii_digit() || b == b'-';
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'.';
        !numbers.is_empty() && numbers.bytes().all(digit) && kind.bytes().all(plain)
    });
    // A file of the cache, or one that is being sent there.
    let (whole, number) = name.split_once('.').unwrap_or((name, "0"));
    let kept = is_sha256(whole.strip_prefix("agent-").unwrap_or(whole)) && is_number(number);
    let probe = name.strip_prefix("probe-").is_some_and(is_number);
    of_run || kept || probe || name == "status" || is_temporary(name) || is_library_file(name)
}

/// Whether an executable is named like an agent.
pub fn is_agent(name: &str) -> bool {
    name.strip_prefix("agent-").is_some_and(is_sha256) || is_once(name)
}

/// `.hprofiler-once-UID-TOKEN`, possibly followed by the number of a process.
fn is_once(name: &str) -> bool {
    let parts = name.strip_prefix(ONCE).and_then(|it| it.split_once('-'));
    parts.is_some_and(|(uid, rest)| {
        let (token, number) = rest.split_once('.').unwrap_or((rest, "0"));
        let is_token = token.len() == 16 && token.bytes().all(|b| b.is_ascii_hexdigit());
        is_number(uid) && is_token && is_number(number)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders() {
        for (name, want) in [
            (".hprofiler-run-4242-99887-1000", Some(Named::BesideJvm)),
            (
                ".hprofiler-ap-0123456789abcdef-1000",
                Some(Named::BesideJvm),
            ),
            (".hprofiler-map-0123456789abcdef-0", Some(Named::BesideJvm)),
            (".hprofiler-1000", Some(Named::Private)),
            (".hprofiler-once-0-0123456789abcdef", Some(Named::Once)),
            (".hprofiler-once-0-0123456789abcdef.4711", Some(Named::Once)),
            (".hprofiler-once-0-precious", None),
            (".hprofiler-", None),
            (".hprofiler-1000-old", None),
            (".hprofiler-run-mine", None),
            ("hprofiler-1000", None),
        ] {
            assert_eq!(kind(name), want, "{name}");
        }
    }

    #[test]
    fn names_of_files() {
        let hash = "0123456789abcdef".repeat(4);
        let (agent, sent) = (format!("agent-{hash}"), format!("agent-{hash}.77"));
        for name in [
            "4026531836-7-12345.status",
            ".new-x-7",
            &hash,
            &agent,
            &sent,
        ] {
            assert!(is_file(name), "{name}");
        }
        for name in [
            "thesis.tex",
            "..",
            "a\n7.jfr",
            "7.jf\x1br",
            "agent-x",
            "agent-.7",
        ] {
            assert!(!is_file(name), "{name}");
        }
        assert!(is_agent(&agent) && !is_agent("agent-smith"));
    }
}
