//! Triggers that JVMs have yet to look at: such a JVM was sent SIGQUIT, and stands still or is slow.
//!
//! Whenever it gets to the signal it dumps its threads on the application's output, unless its trigger is there. So
//! that stays until the socket is seen to be open, or the process to have ended. Whoever ends a session tells of it, and
//! stays for another while to see it off.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use rustix::fd::{AsRawFd, OwnedFd};

use super::connect;
use super::trigger::Trigger;
use crate::os::audit;
use crate::os::identity::Namespaces;
use crate::os::peer;
use crate::os::proc::target::Target;

/// How long connecting to a socket with a full queue may take.
const MOMENT: Duration = Duration::from_secs(1);
static UNREAD: Mutex<Vec<Unread>> = Mutex::new(Vec::new());

struct Unread {
    pid: i32,
    start_time: u64,
    /// The JVM's number for itself, which its socket is called by.
    number: i32,
    uid: u32,
    gid: u32,
    /// The JVM's `/tmp`, in which it opens its socket.
    tmp: OwnedFd,
    trigger: Trigger,
    /// Whether somebody was told that it is left.
    told: bool,
}

/// Keep the trigger of a JVM that was sent SIGQUIT.
pub fn keep(target: &Target, tmp: OwnedFd, trigger: Trigger) {
    change(|all| {
        all.push(Unread {
            pid: target.pid,
            start_time: target.start_time,
            number: target.status.namespace_pid,
            uid: target.status.uid,
            gid: target.status.gid,
            tmp,
            trigger,
            told: false,
        })
    });
}

/// Whether a JVM has a SIGQUIT to get to yet. At a second one it would dump its threads.
pub fn has(target: &Target) -> bool {
    change(|all| all.iter().any(|one| one.is_of(target)))
}

/// Delete that of a JVM whose socket is open. To be called by a thread that has the JVM's user.
pub fn let_go(target: &Target) {
    change(|all| all.retain(|one| !one.is_of(target)));
}

/// Delete those that are needed no more. What is left, and why; each is told once.
pub fn left() -> Vec<String> {
    see_off();
    change(|all| all.iter_mut().filter_map(Unread::tell).collect())
}

/// Delete those that are needed no more. Whether that was all of them.
pub fn see_off() -> bool {
    change(|all| {
        let unread = std::mem::take(all).into_iter();
        all.extend(unread.filter_map(Unread::unless_over));
        all.is_empty()
    })
}

fn change<T>(work: impl FnOnce(&mut Vec<Unread>) -> T) -> T {
    work(&mut UNREAD.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Unread {
    fn is_of(&self, target: &Target) -> bool {
        (self.pid, self.start_time) == (target.pid, target.start_time)
    }

    /// What is left and why, unless somebody was told before.
    fn tell(&mut self) -> Option<String> {
        let path = self.trigger.path().filter(|_| !self.told)?;
        self.told = true;
        let pid = self.pid;
        Some(format!(
            "{path}: process {pid} has not read it yet and would dump its threads without it; the agent removes it as soon as the JVM has read it"
        ))
    }

    /// Itself, unless the JVM needs it no more: then it is deleted, as the JVM's user. Where there is no thread for that
    /// it stays.
    fn unless_over(self) -> Option<Self> {
        let mut kept = Some(self);
        let run = || {
            kept = kept.take().filter(|one| {
                audit::about(one.pid);
                Namespaces::of_user(one.uid, one.gid).is_err() || !one.is_over()
            });
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().spawn_scoped(scope, run);
            let _ = thread.map(ScopedJoinHandle::join);
        });
        kept
    }

    fn is_over(&self) -> bool {
        Target::has_ended(self.pid, self.start_time) || self.listens()
    }

    /// Whether the JVM itself listens at its socket: that of an earlier process may lie there.
    fn listens(&self) -> bool {
        let path = format!(
            "/proc/self/fd/{}/.java_pid{}",
            self.tmp.as_raw_fd(),
            self.number
        );
        let socket = connect(&path, self.uid, MOMENT);
        socket.is_ok_and(|socket| peer::listener(socket) == Ok(Some(self.pid)))
    }
}
