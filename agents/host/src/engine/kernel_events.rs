//! The kernel's events: their names, and whether this host has them.

use std::io::ErrorKind;
use std::path::Path;

use crate::os::perf_event::{try_sampling, Encoding, COUNTERS, RAW, SOFTWARE};
use crate::wire::outcome::{Code, Failure};

/// The devices that count (PMUs), each with a folder of named events.
const DEVICES: &str = "/sys/bus/event_source/devices";
/// Where only root can read tracepoints. systemd mounts the first at boot, the kernel the second in its debugfs.
const TRACEPOINTS: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing"];
/// Words before a colon that are not groups of tracepoints: addresses, and async-profiler's names for kernel functions.
const NO_GROUPS: [&str; 4] = ["mem", "kprobe", "kretprobe", "trace"];
pub const CHOICE: &str = "choose one of docs/events.md, a tracepoint, or an event of /sys/bus/event_source/devices (see perf list)";

/// Refuse an event that this host does not have. If the kernel does not tell, the event is accepted.
pub fn refuse_missing(event: &str) -> Result<(), Failure> {
    if is_tracepoint(event) {
        return refuse_missing_tracepoint(event);
    }
    let missing = match event.split_once('/') {
        Some((device, _)) => !device.is_empty() && !has_device(device),
        None => number(event).is_some_and(is_missing),
    };
    match missing {
        true => Err(no_counter(event)),
        false => Ok(()),
    }
}

fn has_device(name: &str) -> bool {
    !name.starts_with('.') && Path::new(DEVICES).join(name).exists()
}

/// Whether the kernel lists an event of a device, such as `cpu/mem-loads/`. Both must be plain words.
pub fn is_device_event(event: &str) -> bool {
    let parts: Vec<&str> = event.split('/').collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match parts[..] {
        [device, name, ""] if [device, name].iter().all(|word| word.chars().all(plain)) => {
            let events = Path::new(DEVICES).join(device).join("events");
            !device.is_empty() && !name.is_empty() && events.join(name).exists()
        }
        _ => false,
    }
}

/// `group:name`.
pub fn is_tracepoint(event: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    // The `u` of `cycles:u`.
    let is_modifier = |word: &str| word.chars().all(|c| "ukhIGHpPSDWeb".contains(c));
    event.split_once(':').is_some_and(|(group, name)| {
        word(group) && word(name) && !is_modifier(name) && !NO_GROUPS.contains(&group)
    })
}

/// perf as root would mount tracefs and leave it mounted, which is the administrator's decision.
fn refuse_missing_tracepoint(event: &str) -> Result<(), Failure> {
    // The path is not followed: that alone would have debugfs mount it. What the agent may not see is taken to be
    // there.
    let is_missing = |path: &str| {
        let looked = Path::new(path).symlink_metadata();
        looked.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    if TRACEPOINTS.iter().all(|folder| is_missing(folder)) {
        return Err(Failure::new(
            format!("{event} is not available on this host: tracefs is not mounted"),
            "mount it (mount -t tracefs tracefs /sys/kernel/tracing), or choose another event",
        )
        .coded(Code::TracefsNotMounted));
    }
    let path = format!("{}/{}", TRACEPOINTS[0], event.replace(':', "/"));
    match !is_missing(TRACEPOINTS[0]) && is_missing(&path) {
        true => Err(Failure::new(
            format!("the kernel has no event {event}"),
            "choose a tracepoint that perf list shows as root",
        )
        .coded(Code::EventUnknown)),
        false => Ok(()),
    }
}

pub fn is_counter(event: &str) -> bool {
    COUNTERS.iter().any(|(name, ..)| *name == event)
}

pub fn no_counter(event: &str) -> Failure {
    Failure::new(
        format!("this machine cannot count {event}: its processor or virtual machine has no such counter"),
        "choose a software event such as cpu or page-faults, or a machine with hardware counters",
    )
    .coded(Code::CounterMissing)
}

/// A counter by its name or as in `r1a8`.
fn number(event: &str) -> Option<Encoding> {
    let raw = || u64::from_str_radix(event.strip_prefix('r')?, 16).ok();
    Encoding::named(event).or_else(|| Some(Encoding::new(RAW, raw()?)))
}

/// Whether the kernel says that there is no such counter, or that it cannot be sampled.
fn is_missing(encoding: Encoding) -> bool {
    matches!(
        try_sampling(encoding),
        Err(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::ENXIO)
    )
}

/// Whether the calling thread may sample its own code. Its user and the agent's seccomp filter decide.
pub fn may_sample_itself() -> bool {
    const CPU_CLOCK: u64 = 0;
    try_sampling(Encoding::new(SOFTWARE, CPU_CLOCK)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::perf_event::{CACHE, HARDWARE};

    #[test]
    fn counters_have_numbers() {
        assert_eq!(number("cache-misses"), Some(Encoding::new(HARDWARE, 3)));
        assert_eq!(
            number("LLC-load-misses"),
            Some(Encoding::new(CACHE, 0x10002))
        );
        assert_eq!(number("r1A8"), Some(Encoding::new(RAW, 0x1a8)));
        for other in ["cpu", "page-faults", "ready", "java.util.HashMap.get"] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    #[test]
    fn names_of_tracepoints() {
        for name in ["sched:sched_switch", "no:such"] {
            assert!(is_tracepoint(name), "{name}");
        }
        for name in [
            "cpu",
            "cycles:u",
            "kprobe:do_sys_open",
            "cycles:",
            ":u",
            "mem:0x10",
            "cpu/r1/:u",
            "JavaThread::run",
            "a:b:c:d",
            "sched:*",
            "../x:y",
        ] {
            assert!(!is_tracepoint(name), "{name}");
        }
    }

    #[test]
    fn what_the_machine_lacks_is_refused() {
        let processor = ["cpu", "cpu_core", "armv8_pmuv3_0"].map(has_device);
        // A machine that shows no counters has none. One that shows them may still refuse to count.
        assert!(processor.contains(&true) || refuse_missing("cycles").is_err());
        let missing = refuse_missing("nosuch/cache-misses/").unwrap_err();
        assert!(missing.remedy.contains("page-faults"));
        assert!(refuse_missing("software/cpu-clock/").is_ok());
        assert!(refuse_missing("../cpu-clock/").is_err() && refuse_missing("./x/").is_err());
        assert!(refuse_missing("page-faults").is_ok() && refuse_missing("a.b.C.m").is_ok());
        assert!(refuse_missing("no:such").is_err());
        for name in [
            "software/../x/",
            "software//",
            "//",
            "cpu/no.such/",
            "cpu/x/u",
        ] {
            assert!(!is_device_event(name), "{name}");
        }
    }
}
