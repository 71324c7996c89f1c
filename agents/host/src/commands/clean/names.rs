//! Every name that any version has given to what it puts on a host.

use crate::os::files::{is_sha256, is_temporary};
use crate::staging::folders::{is_library_file, is_library_folder, RUN_FOLDER};

const PRIVATE: &str = ".hprofiler-";
const ONCE: &str = ".hprofiler-once-";
/// The last component of a user's own cache folder.
pub const CACHE: &str = "hprofiler";

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The folder of a session, beside a JVM.
    Run,
    /// That of a library, beside a JVM.
    Library,
    /// What is kept between runs: the agent and what it loads.
    Private,
    /// The agent where nothing may stay, or what deletes it.
    Once,
}

/// What an entry of a folder is by its name; None of what is not ours.
pub fn kind(name: &str) -> Option<Named> {
    let ends_in_number = name.rsplit('-').next().is_some_and(is_number);
    if name.starts_with(RUN_FOLDER) && ends_in_number {
        Some(Named::Run)
    } else if is_library_folder(name) && ends_in_number {
        Some(Named::Library)
    } else if name.strip_prefix(PRIVATE).is_some_and(is_number) {
        Some(Named::Private)
    } else if is_once(name) {
        Some(Named::Once)
    } else {
        None
    }
}

/// Whether a file of such a folder may be one of ours.
pub fn fits(folder: Named, name: &str) -> bool {
    match folder {
        Named::Run => is_of_run(name),
        Named::Library => is_library_file(name),
        Named::Private => is_kept(name),
        Named::Once => false,
    }
}

/// Whether an executable is called as an agent is; with the hash that its name has, if it has one.
pub fn agent(name: &str) -> Option<Option<&str>> {
    let hash = name.strip_prefix("agent-").filter(|hash| is_sha256(hash));
    match hash {
        Some(hash) => Some(Some(hash)),
        None => is_once(name).then_some(None),
    }
}

/// `.hprofiler-once-UID-TOKEN`, perhaps with the number of a process behind.
fn is_once(name: &str) -> bool {
    let Some((uid, rest)) = name
        .strip_prefix(ONCE)
        .and_then(|rest| rest.split_once('-'))
    else {
        return false;
    };
    let (token, number) = rest.split_once('.').unwrap_or((rest, "0"));
    let is_token = token.len() == 16 && token.bytes().all(|b| b.is_ascii_hexdigit());
    is_number(uid) && is_token && is_number(number)
}

/// What engines write: numbers of a process, then what it is.
fn is_of_run(name: &str) -> bool {
    let numbered = name.split_once('.').is_some_and(|(numbers, kind)| {
        let digit = |b: u8| b.is_ascii_digit() || b == b'-';
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'.';
        !numbers.is_empty() && numbers.bytes().all(digit) && kind.bytes().all(plain)
    });
    numbered || name == "status" || is_temporary(name)
}

/// What coordinators and agents keep, and what they make on the way to it.
fn is_kept(name: &str) -> bool {
    let (whole, number) = name.split_once('.').unwrap_or((name, "0"));
    let stored = whole.strip_prefix("agent-").unwrap_or(whole);
    let probe = name.strip_prefix("probe-").is_some_and(is_number);
    is_sha256(stored) && is_number(number) || probe || is_temporary(name)
}

/// Whether such a file has not yet the name that it is to have.
pub fn is_on_its_way(name: &str) -> bool {
    is_temporary(name)
        || name
            .split_once('.')
            .is_some_and(|(_, number)| is_number(number))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_version() {
        for (name, want) in [
            (".hprofiler-run-4242-99887-1000", Some(Named::Run)),
            (".hprofiler-run-clean-12-0", Some(Named::Run)),
            (".hprofiler-ap-0123456789abcdef-1000", Some(Named::Library)),
            (".hprofiler-map-0123456789abcdef-0", Some(Named::Library)),
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
    fn what_else_is_in_our_folders_is_not_ours() {
        let hash = "0123456789abcdef".repeat(4);
        for name in ["4026531836-7-12345.status", "7.jfr", "status", ".new-x-7"] {
            assert!(fits(Named::Run, name), "{name}");
        }
        for name in ["thesis.tex", "..", ".bashrc", "a\n7.jfr", "7.jf\x1br"] {
            assert!(!fits(Named::Run, name), "{name}");
        }
        for name in [
            hash.clone(),
            format!("agent-{hash}"),
            format!("agent-{hash}.77"),
            "probe-8".to_owned(),
        ] {
            assert!(fits(Named::Private, &name), "{name}");
        }
        for name in ["agent-x", "probe-", "id_rsa", "agent-.7"] {
            assert!(!fits(Named::Private, name), "{name}");
        }
        assert_eq!(agent(&format!("agent-{hash}")), Some(Some(hash.as_str())));
        assert_eq!(agent("agent-smith"), None);
    }
}
