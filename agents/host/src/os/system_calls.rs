//! A process that only reads others has the kernel refuse whatever else the right to do so allows (`fence`):
//! `CAP_SYS_PTRACE` lets a process read any other one, and also change it, take its files and become it.

use libc::{c_long, sock_filter, sock_fprog};
use rustix::io::Errno;

/// What cannot be needed to read a process: to change one, to start one, to talk to one, to get rights in a namespace.
const REFUSED: [c_long; 13] = [
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_unshare,
    libc::SYS_setns,
];
/// The kernel's number for this kind of machine (`AUDIT_ARCH_…`), and system calls that only this kind has.
#[cfg(target_arch = "x86_64")]
const MACHINE: (u32, &[c_long]) = (0xc000_003e, &[libc::SYS_fork, libc::SYS_vfork]);
#[cfg(target_arch = "aarch64")]
const MACHINE: (u32, &[c_long]) = (0xc000_00b7, &[]);
/// The others are those of x32, which have numbers of their own.
const HIGHEST: u32 = 0x3fff_ffff;

/// Where the filter finds a system call's number, its kind of machine, and its arguments (`seccomp_data`).
const NUMBER: u32 = 0;
const KIND: u32 = 4;
const ARGUMENTS: [u32; 4] = [16, 24, 32, 40];

const ALLOW: sock_filter = end(libc::SECCOMP_RET_ALLOW);
const REFUSE: sock_filter = end(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
const UNKNOWN: sock_filter = end(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);

/// For the calling thread, which has given up new rights, and for all that it starts.
pub fn only_read() -> Result<(), Errno> {
    let mut filter = filter();
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    let (set, filter) = (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER);
    // SAFETY: the kernel copies the program, which is there until the call returns.
    if unsafe { libc::prctl(set, filter, &raw const program) } == 0 {
        return Ok(());
    }
    match Errno::from_io_error(&std::io::Error::last_os_error()) {
        // A kernel without such filters.
        None | Some(Errno::INVAL) => Ok(()),
        Some(error) => Err(error),
    }
}

/// The C libraries have different types for ptrace's requests.
#[allow(clippy::unnecessary_cast)]
fn filter() -> Vec<sock_filter> {
    use libc::{BPF_JEQ as IS, BPF_JGT as ABOVE, BPF_JSET as HAS};
    let (machine, more) = MACHINE;
    let mut all = vec![load(KIND), jump(IS, machine, 1, 0), REFUSE];
    all.extend([load(NUMBER), jump(ABOVE, HIGHEST, 0, 1), REFUSE]);
    for &call in REFUSED.iter().chain(more) {
        all.extend([jump(IS, call as u32, 0, 1), REFUSE]);
    }
    // A thread may be started, a process not. C libraries that do not find `clone3` use `clone`, which shows its flags.
    all.extend([jump(IS, libc::SYS_clone3 as u32, 0, 1), UNKNOWN]);
    all.extend([jump(IS, libc::SYS_clone as u32, 0, 4), load(ARGUMENTS[0])]);
    all.extend([jump(HAS, libc::CLONE_THREAD as u32, 0, 1), ALLOW, REFUSE]);
    // A thread may be stopped and its registers read. Another last argument would be a signal, or end the process.
    all.extend([jump(IS, libc::SYS_ptrace as u32, 1, 0), ALLOW]);
    all.push(load(ARGUMENTS[0]));
    for request in [libc::PTRACE_GETREGS, libc::PTRACE_GETREGSET] {
        all.extend([jump(IS, request as u32, 0, 1), ALLOW]);
    }
    all.extend([
        jump(IS, libc::PTRACE_SEIZE as u32, 2, 0),
        jump(IS, libc::PTRACE_INTERRUPT as u32, 1, 0),
        jump(IS, libc::PTRACE_DETACH as u32, 0, 2),
        load(ARGUMENTS[3]),
        jump(IS, 0, 1, 0),
        REFUSE,
        ALLOW,
    ]);
    all
}

const fn load(place: u32) -> sock_filter {
    line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, place, 0, 0)
}

/// Skip so many lines if it is so, and so many if not.
const fn jump(if_it: u32, number: u32, so: u8, not: u8) -> sock_filter {
    line(libc::BPF_JMP | if_it | libc::BPF_K, number, so, not)
}

const fn end(what: u32) -> sock_filter {
    line(libc::BPF_RET | libc::BPF_K, what, 0, 0)
}

const fn line(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    let code = code as u16;
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, ErrorKind::PermissionDenied};
    use std::process::Command;
    use std::thread;

    /// What a thread may do beyond the filter: 0, or an error's number.
    fn call(number: c_long, arguments: [c_long; 4]) -> i32 {
        let ([a, b, c, d], none) = (arguments, 0 as c_long);
        // SAFETY: none of the calls below changes memory: they are refused, or have nothing to do.
        match unsafe { libc::syscall(number, a, b, c, d, none, none) } {
            -1 => io::Error::last_os_error().raw_os_error().unwrap(),
            _ => 0,
        }
    }

    #[test]
    fn a_reader_changes_starts_and_calls_nobody() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = c_long::from(child.id() as i32);
        let filtered = move || {
            rustix::thread::set_no_new_privs(true).unwrap();
            only_read().unwrap();
            let ptrace = |request, last| call(libc::SYS_ptrace, [request, pid, 0, last]);
            let [seize, interrupt, detach] = [
                libc::PTRACE_SEIZE,
                libc::PTRACE_INTERRUPT,
                libc::PTRACE_DETACH,
            ];
            assert_eq!(
                ptrace(seize as c_long, libc::PTRACE_O_EXITKILL.into()),
                libc::EPERM
            );
            assert_eq!(ptrace(seize as c_long, 0), 0);
            assert_eq!(ptrace(interrupt as c_long, 0), 0);
            assert_eq!(ptrace(detach as c_long, libc::SIGKILL.into()), libc::EPERM);
            assert_eq!(ptrace(libc::PTRACE_POKEDATA as c_long, 0), libc::EPERM);
            for number in [libc::SYS_process_vm_writev, libc::SYS_pidfd_getfd] {
                assert_eq!(call(number, [pid, 0, 0, 0]), libc::EPERM);
            }
            assert_eq!(call(libc::SYS_process_vm_readv, [pid, 0, 0, 0]), 0);
            let started = Command::new("true").spawn();
            assert_eq!(started.unwrap_err().kind(), PermissionDenied);
            let socket = std::net::TcpListener::bind("127.0.0.1:0");
            assert_eq!(socket.unwrap_err().kind(), PermissionDenied);
            assert_eq!(thread::spawn(|| 7).join().unwrap(), 7);
        };
        let done = thread::spawn(filtered).join();
        child.kill().unwrap();
        child.wait().unwrap();
        done.unwrap();
    }
}
