//! Triggers that JVMs have not read yet: the JVM was sent SIGQUIT, and is stopped or slow.
//!
//! When it handles the signal it dumps its threads on the application's output, unless its trigger is there. So the
//! trigger stays until the socket is open or the process has ended. At its end a session reports it, and stays for one
//! more lease to delete it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fd::{AsRawFd, OwnedFd};

use super::connect;
use super::trigger::Trigger;
use crate::os::audit;
use crate::os::identity::Namespaces;
use crate::os::peer;
use crate::os::proc::target::Target;
use crate::os::worker_pool;

/// How long connecting to a socket with a full queue may take.
const MOMENT: Duration = Duration::from_secs(1);
/// How many are looked at at a time, and how long that may take: the folder may be on a file system that hangs.
const AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(2);
static UNREAD: Mutex<Vec<Arc<Unread>>> = Mutex::new(Vec::new());

struct Unread {
    pid: i32,
    start_time: u64,
    /// The JVM's pid in its own namespace, which names its socket.
    number: i32,
    uid: u32,
    gid: u32,
    tmp: OwnedFd,
    /// None: it is deleted.
    trigger: Mutex<Option<Trigger>>,
    reported: AtomicBool,
}

pub fn keep(target: &Target, tmp: OwnedFd, trigger: Trigger) {
    change(|all| {
        all.push(Arc::new(Unread {
            pid: target.pid,
            start_time: target.start_time,
            number: target.status.namespace_pid,
            uid: target.status.uid,
            gid: target.status.gid,
            tmp,
            trigger: Mutex::new(Some(trigger)),
            reported: AtomicBool::new(false),
        }))
    });
}

/// Whether a JVM has not handled its SIGQUIT yet. A second one would make it dump its threads.
pub fn has(target: &Target) -> bool {
    change(|all| all.iter().any(|one| one.is_of(target)))
}

/// Delete the trigger of a JVM whose socket is open. The calling thread has the JVM's user.
pub fn let_go(target: &Target) {
    for one in change(|all| all.clone()) {
        if one.is_of(target) {
            // Deleted here, whoever else holds it.
            let trigger = one.trigger().take();
            drop(trigger);
        }
    }
    change(|all| all.retain(|one| !one.is_of(target)));
}

/// Delete triggers that are not needed any more. Returns the others; each is reported once.
pub fn left() -> Vec<String> {
    see_off();
    change(|all| all.iter().filter_map(|one| one.report()).collect())
}

/// Delete triggers that are not needed any more. True: none is left.
pub fn see_off() -> bool {
    let all = change(|all| all.clone());
    let looked = worker_pool::run_all(all.clone(), AT_ONCE, PATIENCE, |one| one.delete_if_over());
    for (one, _) in all.iter().zip(looked).filter(|(_, over)| *over == Ok(true)) {
        change(|all| all.retain(|other| !Arc::ptr_eq(one, other)));
    }
    change(|all| all.is_empty())
}

fn change<T>(work: impl FnOnce(&mut Vec<Arc<Unread>>) -> T) -> T {
    work(&mut UNREAD.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Unread {
    fn is_of(&self, target: &Target) -> bool {
        (self.pid, self.start_time) == (target.pid, target.start_time)
    }

    fn trigger(&self) -> MutexGuard<'_, Option<Trigger>> {
        self.trigger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once.
    fn report(&self) -> Option<String> {
        let path = self.trigger().as_ref()?.path()?;
        if self.reported.swap(true, Ordering::Relaxed) {
            return None;
        }
        let pid = self.pid;
        Some(format!(
            "{path}: process {pid} has not read it yet and would dump its threads without it; the agent removes it as soon as the JVM has read it"
        ))
    }

    /// True: the JVM has read the trigger, which the calling thread deletes as the JVM's user.
    fn delete_if_over(&self) -> bool {
        audit::about(self.pid);
        let over = Namespaces::of_user(self.uid, self.gid).is_ok() && self.is_over();
        if over {
            let trigger = self.trigger().take();
            drop(trigger);
        }
        over
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
