//! Actions of the agent on the host. Each is an event, which the coordinator writes to its audit file.
//!
//! Any thread queues actions. The session sends them before the answer that follows from them.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::os::lease::since_1970;
use crate::wire::events::Action;

/// The most actions that wait to be sent, and the longest text of one, in characters.
const MAX_QUEUED: usize = 10_000;
const LONGEST: usize = 500;
const SEEN_THROUGH: &str = "/proc/self/fd/";

static QUEUE: Mutex<Option<Queue>> = Mutex::new(None);

thread_local! {
    /// The process that the thread works for, if it is only one.
    static ABOUT: Cell<Option<i32>> = const { Cell::new(None) };
}

type Wake = Box<dyn Fn() + Send>;

#[derive(Default)]
struct Queue {
    actions: Vec<Action>,
    wake: Option<Wake>,
}

pub fn begin() {
    queue().get_or_insert_default();
}

/// From now on `take` returns actions, and `wake` is called when there are some.
pub fn send_with(wake: impl Fn() + Send + 'static) {
    if let Some(queue) = &mut *queue() {
        queue.wake = Some(Box::new(wake));
    }
}

pub fn end() {
    *queue() = None;
}

pub fn about(pid: i32) {
    ABOUT.set(Some(pid));
}

/// Queue an action that was done (`folder`, `file`, `removed`) or follows (`attach`, `signal`, `program`).
pub fn note(what: &'static str, detail: impl FnOnce() -> String) {
    let mut queue = queue();
    let Some(queue) = queue
        .as_mut()
        .filter(|queue| queue.actions.len() < MAX_QUEUED)
    else {
        return;
    };
    let (what, detail) = match queue.actions.len() + 1 == MAX_QUEUED {
        true => (
            "dropped",
            "the coordinator does not read the log of actions".to_owned(),
        ),
        false => (what, plain(&detail())),
    };
    queue.actions.push(Action {
        time: now(),
        what,
        pid: ABOUT.get(),
        detail,
    });
    if let (1, Some(wake)) = (queue.actions.len(), &queue.wake) {
        wake();
    }
}

/// The actions since the last call, once `send_with` was called.
pub fn take() -> Vec<Action> {
    let mut queue = queue();
    let queue = queue.as_mut().filter(|queue| queue.wake.is_some());
    queue.map_or(Vec::new(), |queue| std::mem::take(&mut queue.actions))
}

fn queue() -> MutexGuard<'static, Option<Queue>> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn now() -> f64 {
    since_1970().as_secs_f64()
}

fn plain(detail: &str) -> String {
    let rest = detail.strip_prefix(SEEN_THROUGH);
    let path = rest.and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    path.unwrap_or(detail).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_the_processes_own() {
        assert_eq!(plain("/proc/self/fd/12/tmp/x"), "/tmp/x");
        assert_eq!(plain("/tmp/x"), "/tmp/x");
        assert_eq!(plain(&"x".repeat(900)).len(), LONGEST);
    }
}
