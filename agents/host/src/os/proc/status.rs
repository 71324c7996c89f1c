//! `/proc/PID/status`: ids, groups, namespace pid, caught signals, capabilities.

const CAP_SYS_PTRACE: u64 = 1 << 19;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_SYSLOG: u64 = 1 << 34;
const CAP_PERFMON: u64 = 1 << 38;
/// Root needs these to become other users, to see and signal their processes, and to enter their containers.
const OF_ROOT: [(u64, &str); 6] = [
    (1 << 1, "CAP_DAC_OVERRIDE"),
    (1 << 5, "CAP_KILL"),
    (1 << 6, "CAP_SETGID"),
    (1 << 7, "CAP_SETUID"),
    (CAP_SYS_PTRACE, "CAP_SYS_PTRACE"),
    (CAP_SYS_ADMIN, "CAP_SYS_ADMIN"),
];
/// These let users other than root read the kernel's symbols, and sample the kernel and other users' processes.
const OF_SAMPLING: [(u64, &str); 2] = [(CAP_SYSLOG, "CAP_SYSLOG"), (CAP_PERFMON, "CAP_PERFMON")];
const SIGQUIT: u64 = 1 << (3 - 1);
const SIGVTALRM: u64 = 1 << (26 - 1);
const SIGPROF: u64 = 1 << (27 - 1);
const FILTER: &str = "2";

/// The ids are the effective ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    pub namespace_pid: i32,
    /// Whether it has only the rights of the user who started it, unlike a set-user-ID program.
    pub one_user: bool,
    pub threads: u64,
    /// Whether seccomp filters its system calls.
    pub filtered: bool,
    caught: u64,
    capabilities: u64,
}

impl Status {
    /// Whether SIGQUIT has a handler. Otherwise it would kill the process.
    pub fn catches_quit(&self) -> bool {
        self.caught & SIGQUIT != 0
    }

    /// Whether it catches a signal that profilers use for sampling. The handler stays after a recording.
    pub fn catches_profilers_signals(&self) -> bool {
        self.caught & (SIGPROF | SIGVTALRM) != 0
    }

    /// The capabilities that an agent of root needs and does not have.
    pub fn missing_of_root(&self) -> Vec<&'static str> {
        let missing = OF_ROOT
            .iter()
            .filter(|(bit, _)| self.capabilities & bit == 0);
        missing.map(|(_, name)| *name).collect()
    }

    /// The capabilities that it has, of those that matter to an agent.
    pub fn that_matter(&self) -> Vec<&'static str> {
        let all = OF_ROOT.iter().chain(&OF_SAMPLING);
        let held = all.filter(|(bit, _)| self.capabilities & bit != 0);
        held.map(|(_, name)| *name).collect()
    }

    pub fn may_see_kernel_symbols(&self) -> bool {
        self.capabilities & CAP_SYSLOG != 0
    }

    /// Whether it may profile the kernel whatever `perf_event_paranoid` says.
    pub fn may_profile_kernel(&self) -> bool {
        self.capabilities & (CAP_SYS_ADMIN | CAP_PERFMON) != 0
    }
}

pub fn parse(pid: i32, text: &str) -> Option<Status> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::split_ascii_whitespace)
    };
    let mask = |name| {
        field(name)?
            .next()
            .and_then(|hex| u64::from_str_radix(hex, 16).ok())
    };
    let one_user = ["Uid", "Gid"].into_iter().all(|name| {
        let mut ids = field(name).into_iter().flatten();
        ids.next().is_some_and(|first| ids.all(|id| id == first))
    });
    Some(Status {
        one_user,
        uid: field("Uid")?.nth(1)?.parse().ok()?,
        gid: field("Gid")?.nth(1)?.parse().ok()?,
        groups: field("Groups")?
            .filter_map(|group| group.parse().ok())
            .collect(),
        // The innermost pid is the JVM's own. Kernels before 4.1 do not show it.
        namespace_pid: field("NStgid")
            .and_then(Iterator::last)
            .and_then(|last| last.parse().ok())
            .unwrap_or(pid),
        threads: field("Threads")?.next()?.parse().ok()?,
        filtered: field("Seccomp").and_then(|mut mode| mode.next()) == Some(FILTER),
        caught: mask("SigCgt")?,
        capabilities: mask("CapEff")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Name:\tUid: 9\nState:\tS (sleeping)\nNStgid:\t900\t7\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n\
                        Groups:\t10 20 \nThreads:\t31\nSigCgt:\t2000000181005ccf\nCapEff:\t0000004000000000\n";

    #[test]
    fn effective_ids_and_innermost_pid() {
        let status = parse(900, TEXT).unwrap();
        assert_eq!((status.uid, status.gid, status.namespace_pid), (2, 6, 7));
        assert_eq!(status.groups, [10, 20]);
        assert_eq!(status.threads, 31);
        assert!(!status.one_user && !status.filtered);
        assert!(status.catches_quit());
        assert!(status.may_profile_kernel());
        assert_eq!(status.that_matter(), ["CAP_PERFMON"]);
    }

    #[test]
    fn what_capabilities_are_good_for() {
        for (capability, kernel, symbols) in [
            (CAP_PERFMON, true, false),
            (CAP_SYS_ADMIN, true, false),
            (CAP_SYS_PTRACE, false, false),
            (CAP_SYSLOG, false, true),
            (1 << 6, false, false),
        ] {
            let text = TEXT.replace("0000004000000000", &format!("{capability:016x}"));
            let status = parse(900, &text).unwrap();
            assert_eq!(status.may_profile_kernel(), kernel, "{capability:x}");
            assert_eq!(status.may_see_kernel_symbols(), symbols, "{capability:x}");
            assert_eq!(status.that_matter().len(), 1, "{capability:x}");
        }
    }

    #[test]
    fn a_signal_that_is_not_caught() {
        let text = TEXT
            .replace("2000000181005ccf", "0000000000000002")
            .replace("0000004000000000", "0");
        let status = parse(900, &text.replace("NStgid", "Other")).unwrap();
        assert!(!status.catches_quit() && !status.may_profile_kernel());
        assert_eq!(status.missing_of_root().len(), OF_ROOT.len());
        let usual = text.replace("CapEff:\t0", "CapEff:\t00000000a80425fb");
        let usual = parse(900, &usual).unwrap();
        assert_eq!(usual.missing_of_root(), ["CAP_SYS_PTRACE", "CAP_SYS_ADMIN"]);
        assert_eq!(status.namespace_pid, 900);
        assert!(
            parse(900, &format!("{TEXT}Seccomp:\t2\n"))
                .unwrap()
                .filtered
        );
        let same = TEXT
            .replace("1\t2\t3\t4", "1\t1\t1\t1")
            .replace("5\t6\t7\t8", "5\t5\t5\t5");
        assert!(parse(900, &same).unwrap().one_user);
    }
}
