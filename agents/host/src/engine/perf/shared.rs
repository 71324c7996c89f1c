//! What the recordings of a session share where perf makes them: the program, the memory, and the turns to try it out.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::available_parallelism;

use super::budget::Budget;
use super::find::{self, Perf};
use crate::outcome::Failure;

pub struct Shared {
    pub budget: Arc<Budget>,
    perf: OnceLock<Result<Perf, Failure>>,
    /// How many more may be tried out now: a perf that opens its events takes a processor for a good part of a second.
    free: Mutex<usize>,
    freed: Condvar,
}

/// The right to try perf out, until this is dropped.
pub struct Trial<'a>(&'a Shared);

impl Shared {
    pub fn of_host() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from))
    }

    fn new(at_once: usize) -> Self {
        Self {
            budget: Budget::of_host(),
            perf: OnceLock::new(),
            free: Mutex::new(at_once),
            freed: Condvar::new(),
        }
    }

    /// The host's perf, which is looked for once.
    pub fn perf(&self) -> Result<Perf, Failure> {
        self.perf.get_or_init(find::find).clone()
    }

    /// Wait until no more are tried out than there are processors.
    pub fn trial(&self) -> Trial<'_> {
        let none_free = |free: &mut usize| *free == 0;
        let waited = self.freed.wait_while(self.free(), none_free);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        Trial(self)
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{scope, yield_now};

    #[test]
    fn no_more_are_tried_out_than_may() {
        let shared = Shared::new(2);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let process = || {
            let _trial = shared.trial();
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
        };
        scope(|scope| (0..16).for_each(|_| drop(scope.spawn(process))));
        assert!((1..=2).contains(&most.into_inner()));
    }
}
