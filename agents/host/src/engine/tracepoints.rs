//! Tracepoints, `group:name`: places in the kernel, which it shows in a file system of their own.

use std::io::ErrorKind;
use std::path::Path;

use crate::wire::outcome::{Code, Failure};

/// Where they are once that is mounted, to root alone: systemd does so as a host starts, the kernel in its debugfs.
const SHOWN: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing"];
/// What has a colon behind it and is no group of theirs: addresses, and async-profiler's names for places in the kernel.
const NO_GROUPS: [&str; 4] = ["mem", "kprobe", "kretprobe", "trace"];

/// Refuse one where nothing shows them: perf as root would mount that, and leave it so.
pub fn refuse_unmounted(event: &str) -> Result<(), Failure> {
    // What may not be looked at is there.
    let mounted = || SHOWN.iter().any(|folder| !is_missing(folder));
    match is_tracepoint(event) && !mounted() {
        true => Err(Failure::new(
            format!("{event} is not available on this host: tracefs is not mounted"),
            "mount it (mount -t tracefs tracefs /sys/kernel/tracing), or choose another event",
        )
        .coded(Code::TracefsNotMounted)),
        false => Ok(()),
    }
}

/// What is looked at is not followed: that alone would have debugfs mount them.
fn is_missing(folder: &str) -> bool {
    let looked = Path::new(folder).symlink_metadata();
    looked.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Whether it is the name of one, with a modifier or without: not another event with a modifier, nor a function (`a::b`).
pub fn is_tracepoint(event: &str) -> bool {
    let parts: Vec<&str> = event.split(':').collect();
    let named = match parts[..] {
        [group, name] => !group.is_empty() && !name.is_empty() && !is_modifier(name),
        [group, name, last] => !group.is_empty() && !name.is_empty() && is_modifier(last),
        _ => false,
    };
    named && !event.contains('/') && !NO_GROUPS.contains(&parts[0])
}

/// The `u` of `cycles:u`, and its like.
pub fn is_modifier(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| "ukhIGHpPSDWeb".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn their_names() {
        for name in ["sched:sched_switch", "syscalls:sys_enter_read:u", "no:such"] {
            assert!(is_tracepoint(name), "{name}");
        }
        for name in [
            "cpu",
            "cycles:u",
            "cycles:I",
            "kprobe:do_sys_open",
            "cycles:",
            ":u",
            "mem:0x10",
            "mem:0x10:w",
            "mem:0x10/8:w",
            "cpu/r1/:u",
            "JavaThread::run",
            "a:b:c:d",
        ] {
            assert!(
                !is_tracepoint(name) && refuse_unmounted(name).is_ok(),
                "{name}"
            );
        }
    }
}
