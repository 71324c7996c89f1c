//! Facts about this machine.

use std::fs;
use std::ops::RangeInclusive;

use rustix::process::geteuid;
use rustix::system::uname;

use crate::os::proc::users::Users;
use crate::os::proc::{number_after, read_text};
use crate::wire::events::HostFacts;

/// What is unknown is empty or 0.
pub fn facts() -> HostFacts {
    let system = uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let uid = geteuid().as_raw();
    HostFacts {
        name: text(system.nodename()),
        boot_id: read_text("/proc/sys/kernel/random/boot_id", 64)
            .unwrap_or_default()
            .trim()
            .to_owned(),
        pid_namespace: pid_namespace(),
        kernel: text(system.release()),
        arch: text(system.machine()),
        cpus: processors() as usize,
        load: load().unwrap_or(-1.0),
        memory_bytes: memory_bytes(),
        memory_available: memory_available(),
        uid,
        user: Users::read().name(uid),
    }
}

fn pid_namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// A number in `/proc/sys/kernel`. None: it cannot be read.
pub fn kernel_setting(name: &str) -> Option<i32> {
    let text = read_text(format!("/proc/sys/kernel/{name}"), 64)?;
    text.trim().parse().ok()
}

/// Runnable tasks, averaged over a minute.
pub fn load() -> Option<f64> {
    let text = read_text("/proc/loadavg", 256)?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// The host's processors, not only those that the agent may use. The load is that of all.
pub fn processors() -> u64 {
    let text = read_text("/sys/devices/system/cpu/online", 4096).unwrap_or_default();
    match text.trim().split(',').filter_map(range).flatten().count() {
        0 => std::thread::available_parallelism().map_or(1, |own| own.get() as u64),
        online => online as u64,
    }
}

/// `7` or `0-7`.
pub fn range(text: &str) -> Option<RangeInclusive<i32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// 0: unknown.
pub fn memory_bytes() -> u64 {
    memory("MemTotal:").unwrap_or(0)
}

/// Kernels before 3.14 do not report it.
pub fn memory_available() -> Option<u64> {
    memory("MemAvailable:")
}

fn memory(what: &str) -> Option<u64> {
    number_after(&read_text("/proc/meminfo", 64 << 10)?, what)?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_by_ranges() {
        assert_eq!((range("0-3"), range("7")), (Some(0..=3), Some(7..=7)));
        assert_eq!((range(""), range("-3"), range("x")), (None, None, None));
    }
}
