//! Tracepoints, `group:name`: places in the kernel, which it shows in a file system of their own.

use std::path::Path;

use crate::outcome::Failure;

/// Where they are once that is mounted, to root alone. systemd does so as a host starts.
const SHOWN: [&str; 2] = [
    "/sys/kernel/tracing/events",
    "/sys/kernel/debug/tracing/events",
];
/// What a modifier (`cycles:u`) is made of.
const MODIFIER: &str = "ukhpPGHSDWe";

/// Refuse one where nothing shows them: perf as root would mount that, and leave it so.
pub fn refuse_unmounted(event: &str) -> Result<(), Failure> {
    // What may not be looked at is there.
    let mounted = || SHOWN.iter().any(|folder| !is_missing(folder));
    match is_tracepoint(event) && !mounted() {
        true => Err(Failure::new(
            format!("this host does not show {event}: nothing has mounted its tracepoints"),
            "mount them (mount -t tracefs tracefs /sys/kernel/tracing), or choose another event",
        )),
        false => Ok(()),
    }
}

fn is_missing(folder: &str) -> bool {
    matches!(Path::new(folder).try_exists(), Ok(false))
}

/// Whether it is the name of one, with a modifier or without: not another event with a modifier, an address (`mem:0x10:w`)
/// or a function (`a::b`).
pub fn is_tracepoint(event: &str) -> bool {
    let parts: Vec<&str> = event.split(':').collect();
    let is_modifier = |part: &str| part.chars().all(|c| MODIFIER.contains(c));
    let named = match parts[..] {
        [group, name] => group != "mem" && !is_modifier(name),
        [group, _, modifier] => group != "mem" && is_modifier(modifier),
        _ => false,
    };
    named && !event.contains('/') && parts.iter().all(|part| !part.is_empty())
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
