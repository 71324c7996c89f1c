//! Whether this machine's processor has a counter: asked of the kernel, before anybody waits for its samples.

use std::path::Path;

use crate::wire::outcome::{Code, Failure};

/// The kernel's kinds of events: the processor's usual ones, its own, those of caches, and those by the processor's numbers.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;
/// Names that both engines know, with the kernel's kind and number. Numbers of caches: which one, with what is done
/// to it in the second byte (loads are 0), and what comes of that in the third (misses are 1).
const NAMES: [(&str, u32, u64); 11] = [
    ("cycles", HARDWARE, 0),
    ("instructions", HARDWARE, 1),
    ("cache-references", HARDWARE, 2),
    ("cache-misses", HARDWARE, 3),
    ("branch-instructions", HARDWARE, 4),
    ("branch-misses", HARDWARE, 5),
    ("bus-cycles", HARDWARE, 6),
    ("ref-cycles", HARDWARE, 9),
    ("L1-dcache-load-misses", CACHE, 1 << 16),
    ("LLC-load-misses", CACHE, 1 << 16 | 2),
    ("dTLB-load-misses", CACHE, 1 << 16 | 3),
];
const SOURCES: &str = "/sys/bus/event_source/devices";

/// Refuse an event whose counter is not there. What the kernel does not tell is taken to be there.
pub fn refuse_missing(event: &str) -> Result<(), Failure> {
    let missing = match event.split_once('/') {
        Some((source, _)) => !source.is_empty() && !is_source(source),
        None => number(event).is_some_and(|(kind, config)| is_missing(kind, config)),
    };
    match missing {
        true => Err(none(event)),
        false => Ok(()),
    }
}

/// Whether the kernel shows counters of this name, which is not a path.
fn is_source(name: &str) -> bool {
    !name.starts_with('.') && Path::new(SOURCES).join(name).exists()
}

/// Whether it is the name of a counter that both engines know.
pub fn is_hardware(event: &str) -> bool {
    NAMES.iter().any(|(name, ..)| *name == event)
}

/// Why an event without a counter is refused.
pub fn none(event: &str) -> Failure {
    Failure::new(
        format!("this machine cannot count {event}: its processor or virtual machine has no such counter"),
        "choose a software event such as cpu or page-faults, or a machine with hardware counters",
    ).coded(Code::CounterMissing)
}

/// The kernel's kind and number of a hardware event: by its name, or as in `r1a8`.
fn number(event: &str) -> Option<(u32, u64)> {
    let named = NAMES.iter().find(|(name, ..)| *name == event);
    let raw = || u64::from_str_radix(event.strip_prefix('r')?, 16).ok();
    named
        .map(|&(_, kind, config)| (kind, config))
        .or_else(|| Some((RAW, raw()?)))
}

/// What the kernel calls `struct perf_event_attr`, in its first version.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

/// Not to count at once, nor in the kernel or a hypervisor: that takes no rights on most hosts.
const DISABLED_USER_ONLY: u64 = 1 | 1 << 5 | 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Whether the kernel says that there is no such counter, or none that can be sampled by.
fn is_missing(kind: u32, config: u64) -> bool {
    matches!(
        open(kind, config),
        Err(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::ENXIO)
    )
}

/// Whether the calling thread may sample its own code: its user, and what filters the agent's system calls, decide.
pub fn may_sample_itself() -> bool {
    const CPU_CLOCK: u64 = 0;
    open(SOFTWARE, CPU_CLOCK).is_ok()
}

/// Open a counter of the calling thread for a moment. Err has the kernel's number of the reason.
fn open(kind: u32, config: u64) -> Result<(), i32> {
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        period: 1_000_000,
        sample: 1,
        read: 0,
        flags: DISABLED_USER_ONLY,
        wakeup: 0,
        breakpoint: 0,
        address: 0,
    };
    let (this_thread, any_cpu, no_group) = (0, -1, -1);
    // SAFETY: the kernel reads as many bytes of the attributes as their size says, and they outlive the call.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    if opened >= 0 {
        // SAFETY: this descriptor was opened just above and is nobody else's.
        drop(unsafe {
            <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(opened as i32)
        });
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(error.raw_os_error().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_events_have_numbers() {
        assert_eq!(number("cache-misses"), Some((HARDWARE, 3)));
        assert_eq!(number("LLC-load-misses"), Some((CACHE, 0x10002)));
        assert_eq!(number("r1A8"), Some((RAW, 0x1a8)));
        for other in [
            "cpu",
            "page-faults",
            "ready",
            "java.util.HashMap.get",
            "sched:sched_switch",
        ] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    #[test]
    fn what_the_machine_lacks_is_what_it_does_not_show() {
        let shown = |name: &str| Path::new(SOURCES).join(name).exists();
        let processor = shown("cpu") || shown("cpu_core") || shown("armv8_pmuv3_0");
        // A machine that shows no counters has none; one that shows them may still keep them from us.
        assert!(processor || refuse_missing("cycles").is_err());
        assert!(refuse_missing("nosuch/cache-misses/")
            .unwrap_err()
            .remedy
            .contains("page-faults"));
        assert!(refuse_missing("software/cpu-clock/").is_ok());
        assert!(refuse_missing("../cpu-clock/").is_err() && refuse_missing("./x/").is_err());
        assert!(refuse_missing("page-faults").is_ok() && refuse_missing("a.b.C.m").is_ok());
    }
}
