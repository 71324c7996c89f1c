//! A process that reads what a hostile user may have made gives up all rights and files that it does not need.
//!
//! It is a child of the agent that works for one process. It calls these functions before it reads anything of that
//! process and before it has other threads. Whatever happens to it then, the agent sees only its end.

use rustix::fs::{chown, mkdir, open, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{mount, mount_bind, mount_change, MountFlags, MountPropagationFlags};
use rustix::process::{
    chdir, chroot, fchdir, getegid, geteuid, getppid, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit, DumpableBehavior, Pid, Resource, Rlimit, Signal,
};
use rustix::thread::{
    capabilities, set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid, unshare_unsafe, CapabilitySet, CapabilitySets,
    UnshareFlags,
};

use crate::os::proc;

/// Bytes of a file that it may write, and files that it may have open.
const MOST_FILE: u64 = 16 << 20;
const MOST_FILES: u64 = 1024;
/// Bytes of files that it may map, beside its memory.
const MOST_MAPPED: u64 = 4 << 30;
/// Where the kernel's `/proc` is among its own files.
const KERNEL: &str = "/kernel";
/// The first descriptor after the usual three.
const OTHERS: libc::c_long = 3;

/// Have no files but the usual three, and take no more than this memory, in bytes.
pub fn limit(memory: u64) -> Result<(), Errno> {
    // SAFETY: nothing has opened a file yet; these are of whoever started the agent. Kernels before 5.9 do not know it.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            OTHERS,
            libc::c_long::from(u32::MAX),
            0,
        )
    };
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Fsize, MOST_FILE),
        (Resource::Nofile, MOST_FILES),
        (Resource::Data, memory),
        (Resource::As, memory.saturating_add(MOST_MAPPED)),
    ] {
        let most = Some(most);
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        match setrlimit(resource, limit) {
            // It has a lower one already.
            Err(Errno::PERM) => {}
            set => set?,
        }
    }
    Ok(())
}

/// See an empty folder as `/`, in which only `/proc` is, empty and this user's. No name leads to another file then. The
/// kernel's own is elsewhere (`proc::path`). False: the agent may not do this, and has no rights beyond its user's.
pub fn have_own_files(uid: u32, gid: u32) -> Result<bool, Errno> {
    // SAFETY: a mount namespace has no descriptors.
    match unsafe { unshare_unsafe(UnshareFlags::NEWNS) } {
        Err(Errno::PERM) => return Ok(false),
        unshared => unshared?,
    }
    // What is mounted here is not seen outside.
    mount_change("/proc", MountPropagationFlags::DOWNSTREAM)?;
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let kernel = open("/proc", folder, Mode::empty())?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("none", "/proc", "tmpfs", flags, c"size=16m,mode=755")?;
    let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
    mkdir("/proc/proc", mode)?;
    mkdir(format!("/proc{KERNEL}"), mode)?;
    fchdir(&kernel)?;
    mount_bind(".", format!("/proc{KERNEL}"))?;
    chown(
        "/proc/proc",
        Some(Uid::from_raw(uid)),
        Some(Gid::from_raw(gid)),
    )?;
    chroot("/proc")?;
    chdir("/")?;
    proc::move_to(KERNEL);
    Ok(true)
}

/// Become this user for good. Of all rights only those can still be taken (`may_trace`) that tracing a process needs which
/// has these capabilities: the right to trace any, or the same capabilities where the agent lacks that, as in a container.
pub fn become_user(uid: u32, gid: u32, groups: &[u32], target: CapabilitySet) -> Result<(), Errno> {
    if geteuid().as_raw() == 0 {
        let (user, group) = (Uid::from_raw(uid), Gid::from_raw(gid));
        let groups: Vec<Gid> = groups.iter().map(|&group| Gid::from_raw(group)).collect();
        set_keep_capabilities(true)?;
        match set_thread_groups(&groups) {
            // Root in a container may not be allowed to change ids, and need not.
            Err(Errno::PERM) if (geteuid().as_raw(), getegid().as_raw()) == (uid, gid) => {}
            set => {
                set?;
                set_thread_res_gid(group, group, group)?;
                set_thread_res_uid(user, user, user)?;
            }
        }
    }
    set_no_new_privs(true)?;
    // Nobody may trace it, not even that user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let permitted = capabilities(None)?.permitted;
    let held = match permitted.contains(CapabilitySet::SYS_PTRACE) {
        true => CapabilitySet::SYS_PTRACE,
        false => permitted & target,
    };
    set(CapabilitySet::empty(), held)
}

/// The capabilities of a process, as its `status` has them; none where that cannot be read.
pub fn capabilities_of(pid: i32) -> CapabilitySet {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    let bits = permitted.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    CapabilitySet::from_bits_truncate(bits.unwrap_or(0))
}

/// Take the right to trace other users' processes, or give it up for good.
pub fn may_trace(others: bool) -> Result<(), Errno> {
    let held = match others {
        true => capabilities(None)?.permitted,
        false => CapabilitySet::empty(),
    };
    set(held, held)
}

fn set(effective: CapabilitySet, permitted: CapabilitySet) -> Result<(), Errno> {
    let inheritable = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective,
            permitted,
            inheritable,
        },
    )
}

/// The kernel ends this process with the thread that started it, in the process `agent`. To be called after
/// `become_user`, which ends that.
pub fn end_with(agent: i32) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match getppid() == Pid::from_raw(agent) {
        true => Ok(()),
        false => Err(Errno::SRCH),
    }
}
