//! What this machine says of itself.

use std::fs;

use rustix::process::geteuid;
use rustix::system::uname;

use crate::proc::read_text;
use crate::proc::users::Users;
use crate::protocol::HostFacts;

/// Facts of this machine; what cannot be told is empty or 0.
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
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        load: load().unwrap_or(-1.0),
        memory_bytes: memory_bytes(),
        memory_available_bytes: memory_available(),
        uid,
        user: Users::read().name(uid),
    }
}

/// The number of the agent's pid namespace, as `pid:[4026531836]` holds it.
fn pid_namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// How many tasks wanted to run, on average of the last minute.
pub fn load() -> Option<f64> {
    let text = read_text("/proc/loadavg", 256)?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// 0 where the kernel does not tell.
pub fn memory_bytes() -> u64 {
    memory("MemTotal:").unwrap_or(0)
}

/// What could be taken without swapping, in bytes; kernels before 3.14 do not tell.
pub fn memory_available() -> Option<u64> {
    memory("MemAvailable:")
}

fn memory(what: &str) -> Option<u64> {
    let text = read_text("/proc/meminfo", 64 << 10)?;
    let line = text.lines().find_map(|line| line.strip_prefix(what))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}
