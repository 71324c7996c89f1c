//! Triggers that JVMs have not read yet: the JVM was sent SIGQUIT, and is stopped or slow.
//!
//! When it handles the signal it dumps its threads on the application's output, unless its trigger is there. So the
//! trigger stays until the socket is open or the process has ended. At its end a session reports it, and stays for one
//! more lease to delete it.

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
    /// The JVM's pid in its own namespace, which names its socket.
    number: i32,
    uid: u32,
    gid: u32,
    tmp: OwnedFd,
    trigger: Trigger,
    /// Whether it was reported.
    reported: bool,
}

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
            reported: false,
        })
    });
}

/// Whether a JVM has not handled its SIGQUIT yet. A second one would make it dump its threads.
pub fn has(target: &Target) -> bool {
    change(|all| all.iter().any(|one| one.is_of(target)))
}

/// Delete the trigger of a JVM whose socket is open. The calling thread has the JVM's user.
pub fn let_go(target: &Target) {
    change(|all| all.retain(|one| !one.is_of(target)));
}

/// Delete triggers that are not needed any more. Returns the others; each is reported once.
pub fn left() -> Vec<String> {
    see_off();
    change(|all| all.iter_mut().filter_map(Unread::report).collect())
}

/// Delete triggers that are not needed any more. True: none is left.
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

    fn report(&mut self) -> Option<String> {
        let path = self.trigger.path().filter(|_| !self.reported)?;
        self.reported = true;
        let pid = self.pid;
        Some(format!(
            "{path}: process {pid} has not read it yet and would dump its threads without it; the agent removes it as soon as the JVM has read it"
        ))
    }

    /// None: the JVM has read the trigger, which is deleted as the JVM's user. Without a thread for that it stays.
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

    /// Whether the JVM itself listens at its socket, which may be that of an earlier process.
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
