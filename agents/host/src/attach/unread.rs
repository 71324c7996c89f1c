//! Triggers that JVMs have yet to look at: such a JVM was sent SIGQUIT, and stands still or is slow.
//!
//! Whenever it gets to the signal it dumps its threads on the application's output, unless its trigger is there. So
//! that stays until the socket is open or the process has ended; at the latest the end of the session tells of it.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fd::{AsRawFd, OwnedFd};

use super::socket;
use super::trigger::Trigger;
use crate::audit;
use crate::identity::Shoes;
use crate::peer;
use crate::proc::target::Target;

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
        })
    });
}

/// Whether a JVM has a SIGQUIT to get to yet. At a second one it would dump its threads.
pub fn has(target: &Target) -> bool {
    let its = |one: &Unread| (one.pid, one.start_time) == (target.pid, target.start_time);
    change(|all| all.iter().any(its))
}

/// Delete those that are needed no more. What is left, and why.
pub fn left() -> Vec<String> {
    change(|all| {
        let unread = std::mem::take(all).into_iter();
        all.extend(unread.filter_map(Unread::unless_over));
        let own = all
            .iter()
            .filter_map(|one| Some((one.trigger.path()?, one.pid)));
        own.map(|(path, pid)| {
            format!("{path}: process {pid} has yet to look at it, and would dump its threads without it")
        })
        .collect()
    })
}

fn change<T>(work: impl FnOnce(&mut Vec<Unread>) -> T) -> T {
    work(&mut UNREAD.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Unread {
    /// Itself, unless the JVM needs it no more: then it is deleted, as the JVM's user.
    fn unless_over(self) -> Option<Self> {
        let run = move || {
            audit::about(self.pid);
            let over = Shoes::of_user(self.uid, self.gid).is_ok() && self.is_over();
            (!over).then_some(self)
        };
        thread::spawn(run).join().ok().flatten()
    }

    fn is_over(&self) -> bool {
        Target::open(self.pid, self.start_time).is_err() || self.listens()
    }

    /// Whether the JVM itself listens at its socket: that of an earlier process may lie there.
    fn listens(&self) -> bool {
        let path = format!(
            "/proc/self/fd/{}/.java_pid{}",
            self.tmp.as_raw_fd(),
            self.number
        );
        let socket = socket::connect(&path, self.uid, MOMENT);
        socket.is_ok_and(|socket| peer::listener(socket) == Ok(Some(self.pid)))
    }
}
