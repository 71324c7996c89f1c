//! Facts about a host that matter before it is profiled.

use rustix::fs::{access, statvfs, Access, StatVfsMountFlags};
use rustix::process::geteuid;

use super::counters;
use crate::engine::api::{Note, Shared};
use crate::engine::kernel_events::may_sample_itself;
use crate::engine::{async_profiler, perf};
use crate::os::host::{self, kernel_setting};
use crate::os::proc::target::Target;
use crate::os::proc::users::Users;
use crate::wire::events::Severity::{Error, Info, Ok as Fine, Warning};
use crate::wire::events::{Finding, Severity};

/// Where engines and JVMs write, best first.
const FOLDERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// With less space a recording would end early, in bytes.
const LITTLE_DISK: u64 = 64 << 20;
const LITTLE_MEMORY: u64 = 256 << 20;
/// Runnable tasks per processor of a busy host.
const BUSY: f64 = 2.0;

/// `shared` has the host's perf and the agent's limits.
pub fn findings(shared: &Shared) -> Vec<Finding> {
    let sampling = &shared.sampling;
    let mut findings = vec![user(), agent(shared), paranoid()];
    findings.extend(less_than_root());
    findings.extend(capabilities());
    findings.extend(perf::notes::Rights::of_agent().note().map(kernel));
    findings.extend(filtered());
    if sampling.engine != async_profiler::NAME {
        findings.push(of_perf(shared));
    }
    findings.extend(counters::findings(shared));
    findings.extend(load());
    findings.extend(memory());
    findings.extend(FOLDERS.iter().map(|folder| place(folder)));
    findings
}

fn user() -> Finding {
    let uid = geteuid().as_raw();
    let name = Users::read().name(uid);
    match uid {
        0 => Finding::new(Fine, "user", "the agent runs as root"),
        _ => Finding::new(
            Info,
            "user",
            format!("the agent runs as user {name}: it can attach only to that user's processes"),
        )
        .remedy("use --become sudo for processes of other users"),
    }
}

fn less_than_root() -> Option<Finding> {
    let own = Target::own_status().filter(|own| own.uid == 0)?;
    let missing = own.missing_of_root();
    (!missing.is_empty()).then(|| {
        let text = format!(
            "the agent runs as root without {}: it may have no access to processes of other users or containers",
            missing.join(", ")
        );
        Finding::new(Info, "user", text)
            .remedy("add these capabilities to the container, or use SSH to its node (--via ssh)")
    })
}

fn capabilities() -> Option<Finding> {
    let held = Target::own_status()?.that_matter();
    let text = match held.is_empty() {
        true => "the agent has no capabilities".to_owned(),
        false => format!("the agent has the capabilities {}", held.join(", ")),
    };
    Some(Finding::new(Info, "user", text))
}

fn kernel(note: Note) -> Finding {
    let cause = note.cause.map_or_else(String::new, |cause| cause.reason);
    let text = format!("{}: {cause}", note.text);
    Finding::new(Info, "kernel", text).remedy(note.remedy)
}

fn agent(shared: &Shared) -> Finding {
    let (text, cpus) = (shared.limits.text(), host::processors());
    match shared.limits.cores > cpus as f64 {
        true => Finding::new(Warning, "agent", format!("{text}: the host has {cpus}"))
            .remedy("use a smaller --agent-cpu: this one has no effect"),
        false => Finding::new(Fine, "agent", text),
    }
}

fn paranoid() -> Finding {
    let level = kernel_setting("perf_event_paranoid");
    let restrict =
        kernel_setting("kptr_restrict").map_or("unknown".to_owned(), |it| it.to_string());
    let text = |level| {
        format!("kernel.perf_event_paranoid is {level}, kernel.kptr_restrict is {restrict}")
    };
    match level {
        Some(level @ ..=2) => Finding::new(Fine, "kernel", text(level)),
        Some(level) => Finding::new(Warning, "kernel", text(level)).remedy(
            "set kernel.perf_event_paranoid to 2 or less: above 2 users have no perf events",
        ),
        None => Finding::new(
            Warning,
            "kernel",
            "the kernel has no perf events, or hides them",
        )
        .remedy("use a kernel with perf events, or let the container see /proc/sys/kernel"),
    }
}

fn filtered() -> Option<Finding> {
    let filtered = Target::own_status().is_some_and(|own| own.filtered);
    (filtered && !may_sample_itself()).then(|| {
        Finding::new(
            Warning,
            "seccomp",
            "seccomp forbids perf_event_open to the agent",
        )
        .remedy("allow perf_event_open in the seccomp profile of the container")
    })
}

fn of_perf(shared: &Shared) -> Finding {
    let missing = match shared.sampling.engine.as_str() {
        perf::NAME => Error,
        _ => Info,
    };
    match shared.perf.perf() {
        Ok(perf) => Finding::new(
            Fine,
            "perf",
            format!("perf {} ({})", perf.version, perf.path.display()),
        ),
        Err(failure) => Finding::new(missing, "perf", failure.reason).remedy(failure.remedy),
    }
}

fn load() -> Option<Finding> {
    let load = host::load()?;
    let cpus = host::processors();
    let text = format!("load {load:.2} on {cpus} processors");
    Some(match load > BUSY * cpus as f64 {
        true => Finding::new(Warning, "load", text)
            .remedy("wait until the load falls, or use a lower frequency (-f)"),
        false => Finding::new(Fine, "load", text),
    })
}

fn memory() -> Option<Finding> {
    let free = host::memory_available()?;
    let text = format!("{} MiB of memory free", free >> 20);
    Some(match free < LITTLE_MEMORY {
        true => Finding::new(Warning, "memory", text)
            .remedy("free some memory: a recording ends early when memory runs out"),
        false => Finding::new(Fine, "memory", text),
    })
}

fn place(folder: &str) -> Finding {
    let about = |severity: Severity, text: String| Finding::new(severity, "folder", text);
    let disk = match statvfs(folder) {
        Ok(disk) => disk,
        Err(error) => return about(Info, format!("{folder}: {error}")),
    };
    if let Err(error) = access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        return about(Info, format!("{folder} cannot be written to: {error}"));
    }
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let text = format!("{folder} has {} MiB free", free >> 20);
    if disk.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return about(
            Info,
            format!("{text}, and is mounted noexec: no library can be loaded from it"),
        );
    }
    match free < LITTLE_DISK {
        true => about(Warning, text)
            .remedy("free some space: a recording ends early when the disk is full"),
        false => about(Fine, text),
    }
}
