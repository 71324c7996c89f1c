//! What a thread waited for, by the names in its stack.

/// Kinds of waits, from the least to be known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wait {
    Other,
    Lock,
    /// For a condition: somebody else is to do something.
    Condition,
    Sleep,
    Network,
    Disk,
}

impl Wait {
    /// The frame that says so.
    pub(super) fn frame(self) -> &'static str {
        match self {
            Wait::Other => "[other]",
            Wait::Lock => "[lock]",
            Wait::Condition => "[wait]",
            Wait::Sleep => "[sleep]",
            Wait::Network => "[network]",
            Wait::Disk => "[disk]",
        }
    }

    /// What a call of this function, in a stack that waits as `caller` says, waits for: the inner one knows better,
    /// but a condition is told by the program alone, while the kernel sees a futex.
    pub(super) fn of(name: &str, in_kernel: bool, caller: Wait) -> Wait {
        let table = if in_kernel { IN_KERNEL } else { IN_PROGRAM };
        let known = |start: &&str| name.starts_with(*start);
        let found = table.iter().find(|(_, starts)| starts.iter().any(known));
        match found {
            Some((Wait::Lock, _)) if caller == Wait::Condition => caller,
            Some(&(wait, _)) => wait,
            None => caller,
        }
    }
}

type Table = &'static [(Wait, &'static [&'static str])];

/// Functions of the kernel, by the beginning of their names.
const IN_KERNEL: Table = &[
    (Wait::Lock, &["futex_", "do_futex", "__futex_"]),
    (Wait::Sleep, &["do_nanosleep", "hrtimer_nanosleep"]),
    (
        Wait::Network,
        &[
            "sock_",
            "__sys_accept",
            "__sys_connect",
            "__sys_recv",
            "__sys_send",
            "inet_",
            "tcp_",
            "udp_",
            "unix_stream_",
            "unix_dgram_",
            "sk_wait",
            "sk_stream_wait",
            "do_epoll_wait",
            "ep_poll",
            "do_poll",
            "do_sys_poll",
            "do_select",
            "core_sys_select",
            "io_cqring_wait",
        ],
    ),
    (
        Wait::Disk,
        &[
            "io_schedule",
            "folio_wait",
            "wait_on_page",
            "wait_on_buffer",
            "__wait_on_buffer",
            "submit_bio",
            "blk_",
            "filemap_",
            "jbd2_",
            "ext4_",
            "xfs_",
            "btrfs_",
            "nfs_",
            "do_fsync",
            "vfs_fsync",
            "sync_file",
            "balance_dirty_pages",
        ],
    ),
];

/// Functions of programs and libraries, for when the kernel's have no names.
const IN_PROGRAM: Table = &[
    (
        Wait::Condition,
        &[
            "pthread_cond_",
            "__pthread_cond_",
            "std::condition_variable",
            "std::sys::sync::condvar",
        ],
    ),
    (
        Wait::Lock,
        &[
            "pthread_mutex_",
            "__pthread_mutex_",
            "___pthread_mutex_",
            "pthread_rwlock_",
            "__lll_lock",
            "__futex_",
            "futex_",
        ],
    ),
    (
        Wait::Sleep,
        &[
            "nanosleep",
            "clock_nanosleep",
            "__nanosleep",
            "__clock_nanosleep",
            "usleep",
            "sleep",
        ],
    ),
    (
        Wait::Network,
        &[
            "recv",
            "__libc_recv",
            "accept",
            "__libc_accept",
            "connect",
            "__libc_connect",
            "poll",
            "__poll",
            "epoll_",
            "select",
            "__select",
        ],
    ),
    (
        Wait::Disk,
        &["fsync", "fdatasync", "pread", "pwrite", "msync"],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(stack: &[(&str, bool)]) -> &'static str {
        let inner = |caller, &(name, in_kernel): &(&str, bool)| Wait::of(name, in_kernel, caller);
        stack.iter().fold(Wait::Other, inner).frame()
    }

    #[test]
    fn the_innermost_that_is_known_decides() {
        let cases: [(&[(&str, bool)], &str); 7] = [
            (
                &[("main", false), ("do_syscall_64", true), ("schedule", true)],
                "[other]",
            ),
            (
                &[
                    ("main", false),
                    ("__x64_sys_futex", true),
                    ("futex_wait", true),
                    ("schedule", true),
                ],
                "[lock]",
            ),
            (
                &[
                    ("pthread_cond_wait@@GLIBC_2.3.2", false),
                    ("futex_wait", true),
                ],
                "[wait]",
            ),
            (&[("main", false), ("hrtimer_nanosleep", true)], "[sleep]"),
            (
                &[
                    ("read", false),
                    ("sock_read_iter", true),
                    ("schedule_timeout", true),
                ],
                "[network]",
            ),
            (
                &[
                    ("futex_wait", true),
                    ("handle_mm_fault", true),
                    ("io_schedule", true),
                ],
                "[disk]",
            ),
            (
                &[
                    ("clock_nanosleep@GLIBC_2.2.5", false),
                    ("[kernel.kallsyms]", true),
                ],
                "[sleep]",
            ),
        ];
        for (stack, expected) in cases {
            assert_eq!(wait(stack), expected, "{stack:?}");
        }
    }
}
