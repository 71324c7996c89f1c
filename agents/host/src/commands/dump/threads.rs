//! The threads of a process by the kernel's account: their CPU time, and what they wait for.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write;

use rustix::param::clock_ticks_per_second;

use crate::os::proc::stat;
use crate::os::proc::target::Target;
use crate::wire::outcome::Failure;

/// The longest stack that is read, in bytes.
const MOST_STACK: u64 = 16 << 10;
/// How many threads a sentence names.
const NAMED: usize = 3;
/// The calls that threads mostly wait in. Others are shown by their numbers.
const CALLS: [(libc::c_long, &str); 24] = [
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_close, "close"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
];
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: [(libc::c_long, &str); 4] = [
    (libc::SYS_poll, "poll"),
    (libc::SYS_select, "select"),
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_accept, "accept"),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: [(libc::c_long, &str); 0] = [];

pub struct Threads(Vec<Thread>);

struct Thread {
    tid: i32,
    /// Its number as the process itself sees it.
    number: i32,
    name: String,
    state: char,
    ticks: u64,
}

impl Threads {
    /// None if it has ended. Anybody may see these.
    pub fn of(target: &Target) -> Self {
        let in_container = target.status.namespace_pid != target.pid;
        let thread = |tid: i32| {
            let line = target.read(&format!("task/{tid}/stat"), 4096)?;
            let stat = stat::parse(&line)?;
            let number = || {
                let status = target.read(&format!("task/{tid}/status"), 1 << 16)?;
                let line = status
                    .lines()
                    .find_map(|line| line.strip_prefix("NSpid:"))?;
                line.split_ascii_whitespace().last()?.parse().ok()
            };
            Some(Thread {
                tid,
                number: if in_container { number()? } else { tid },
                name: line[line.find('(')? + 1..line.rfind(')')?].to_owned(),
                state: stat.state,
                ticks: stat.cpu_ticks,
            })
        };
        let mut threads: Vec<Thread> = target.threads().into_iter().filter_map(thread).collect();
        threads.sort_by_key(|thread| thread.tid);
        Self(threads)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// By the process's own numbers.
    pub fn cpu_seconds(&self) -> Vec<(i32, f64)> {
        let seconds = |thread: &Thread| (thread.number, seconds(thread.ticks));
        self.0.iter().map(seconds).collect()
    }

    /// What they wait for, as far as the agent may see it, in at most so many bytes; and whether it was cut.
    pub fn text(&self, target: &Target, most: usize) -> (String, bool) {
        let mut text = String::new();
        for thread in &self.0 {
            let before = text.len();
            let (name, number) = (thread.plain_name(), thread.number);
            let _ = writeln!(text, "\"{name}\" nid={number} {}", thread.state);
            for frame in frames(target, thread) {
                let _ = writeln!(text, "\tat {frame}");
            }
            text.push('\n');
            if text.len() > most {
                text.truncate(before);
                return (text, true);
            }
        }
        (text, false)
    }

    /// The failure of a JVM that did not answer, with what the kernel says of its threads since.
    pub fn explain(&self, failure: Failure, target: &Target) -> Failure {
        let before: HashMap<i32, u64> = self.0.iter().map(|one| (one.tid, one.ticks)).collect();
        let now = Self::of(target).0;
        let held = now.iter().filter(|one| matches!(one.state, 'T' | 't'));
        let held: Vec<String> = held.take(NAMED).map(Thread::shown).collect();
        let used = |thread: &Thread| {
            let earlier = before.get(&thread.tid).copied().unwrap_or(0);
            thread.ticks.saturating_sub(earlier)
        };
        let mut ran: Vec<&Thread> = now.iter().filter(|one| used(one) > 0).collect();
        ran.sort_by_key(|thread| Reverse(used(thread)));
        let ran = ran.into_iter().take(NAMED);
        let ran = ran.map(|thread| format!("{} for {} s", thread.shown(), seconds(used(thread))));
        let ran: Vec<String> = ran.collect();
        let what = match (held.is_empty(), ran.is_empty()) {
            (false, _) => format!("stopped by a debugger: {}", held.join(", ")),
            (true, true) => "none of its threads ran meanwhile".to_owned(),
            (true, false) => format!("meanwhile these threads ran: {}", ran.join(", ")),
        };
        Failure {
            reason: format!("{}; {what}", failure.reason),
            ..failure
        }
    }
}

impl Thread {
    fn shown(&self) -> String {
        let (name, tid, state) = (self.plain_name(), self.tid, self.state);
        format!("{name} ({tid}, state {state})")
    }

    /// In one line, and between quotes.
    fn plain_name(&self) -> String {
        self.name.replace(|c: char| c.is_control() || c == '"', " ")
    }
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / clock_ticks_per_second() as f64
}

/// Where a thread is in the kernel, the innermost function first, as far as the agent may see it.
fn frames(target: &Target, thread: &Thread) -> Vec<String> {
    let read = |name: &str| target.read(&format!("task/{}/{name}", thread.tid), MOST_STACK);
    let stack = read("stack").unwrap_or_default();
    let mut frames: Vec<String> = stack.lines().filter_map(function).collect();
    if frames.is_empty() {
        let place = read("wchan").filter(|place| !place.is_empty() && place != "0");
        frames.extend(place.map(|place| format!("{place}_[k]")));
    }
    frames.extend(read("syscall").as_deref().and_then(call));
    frames
}

/// From `[<0>] futex_wait_queue+0x6f/0x110`.
fn function(line: &str) -> Option<String> {
    let name = line.split_once("] ")?.1.split('+').next()?.trim();
    (!name.is_empty() && name != "0xffffffffffffffff").then(|| format!("{name}_[k]"))
}

/// From `202 0x7f… …`. None: it runs, or waits outside of a call.
fn call(line: &str) -> Option<String> {
    let number: libc::c_long = line.split_ascii_whitespace().next()?.parse().ok()?;
    let known = CALLS.iter().chain(&OLD_CALLS);
    let name = known.into_iter().find(|(known, _)| *known == number);
    (number >= 0).then(|| match name {
        Some((_, name)) => format!("syscall {name}"),
        None => format!("syscall {number}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_the_kernel() {
        assert_eq!(
            function("[<0>] futex_wait_queue+0x6f/0x110").as_deref(),
            Some("futex_wait_queue_[k]")
        );
        assert_eq!(function("[<ffffffff81>] 0xffffffffffffffff"), None);
        let futex = format!("{} 0x7f 0x80", libc::SYS_futex);
        assert_eq!(call(&futex).as_deref(), Some("syscall futex"));
        assert_eq!(call("9999 0x0").as_deref(), Some("syscall 9999"));
        assert_eq!((call("running"), call("-1 0x7f 0x7f")), (None, None));
    }

    #[test]
    fn this_process() {
        let target = Target::own();
        let threads = Threads::of(&target);
        let main = threads.0.iter().find(|thread| thread.tid == target.pid);
        assert_eq!(main.unwrap().number, target.status.namespace_pid);
        let (text, cut) = threads.text(&target, 1 << 20);
        assert!(text.contains(&format!("nid={} ", target.status.namespace_pid)) && !cut);
        let (none, cut) = threads.text(&target, 1);
        assert!(none.is_empty() && cut);
    }
}
