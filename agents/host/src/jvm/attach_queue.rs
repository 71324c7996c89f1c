//! Not all JVMs at once: an attach stops a JVM for a moment, and those of one job wait for each other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::wire::outcome::{Code, Failure};

/// A JVM that has not answered by then waits for something else; the next need not wait for it.
const LONGEST: Duration = Duration::from_millis(500);
/// The processors of the host for each JVM that is attached to at a time, and how many these are at least and at most.
const PROCESSORS: u64 = 4;
const AT_ONCE: (u64, u64) = (2, 8);

/// Turns at attaching, of which some may be taken at the same time.
pub struct Attaches {
    most: usize,
    longest: Duration,
    taken: Mutex<Taken>,
    freed: Condvar,
}

#[derive(Default)]
struct Taken {
    /// By number, and since when.
    turns: Vec<(u64, Instant)>,
    number: u64,
    /// Nobody is to be attached to any more for what is still to begin.
    over: bool,
}

/// Somebody's turn, until this is dropped.
pub struct Turn<'a> {
    attaches: &'a Attaches,
    number: u64,
}

impl Attaches {
    pub fn of_host(processors: u64) -> Self {
        let most = (processors / PROCESSORS).clamp(AT_ONCE.0, AT_ONCE.1);
        Self::new(most as usize, LONGEST)
    }

    fn new(most: usize, longest: Duration) -> Self {
        Self {
            most,
            longest,
            taken: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Wait for a turn. Err once nobody is to be attached to any more.
    pub fn turn(&self) -> Result<Turn<'_>, Failure> {
        let ended =
            || Failure::plain("ended before it was this process's turn").coded(Code::ProcessEnded);
        self.wait(true).ok_or_else(ended)
    }

    /// Wait for a turn at what ends a recording, which is not refused.
    pub fn turn_at_the_end(&self) -> Option<Turn<'_>> {
        self.wait(false)
    }

    fn wait(&self, begins: bool) -> Option<Turn<'_>> {
        let mut taken = self.taken();
        loop {
            if begins && taken.over {
                return None;
            }
            taken
                .turns
                .retain(|(_, since)| since.elapsed() < self.longest);
            if taken.turns.len() < self.most {
                break;
            }
            let first = taken.turns.iter().map(|(_, since)| since.elapsed()).max();
            let left = self.longest.saturating_sub(first.unwrap_or_default());
            let waited = self.freed.wait_timeout(taken, left);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        taken.number += 1;
        let number = taken.number;
        taken.turns.push((number, Instant::now()));
        Some(Turn {
            attaches: self,
            number,
        })
    }

    /// Nobody begins any more; those that wait learn it at once.
    pub fn end(&self) {
        self.taken().over = true;
        self.freed.notify_all();
    }

    /// How long so many processes may have to wait for each other, should none of them answer.
    pub fn patience(&self, processes: usize) -> Duration {
        self.longest * processes.div_ceil(self.most) as u32
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.attaches
            .taken()
            .turns
            .retain(|(turn, _)| *turn != number);
        self.attaches.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{scope, yield_now};

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn so_many_at_a_time() {
        let attaches = Attaches::new(3, LONG);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let process = || {
            let _turn = attaches.turn().unwrap();
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            (0..100).for_each(|_| yield_now());
            now.fetch_sub(1, Ordering::SeqCst);
        };
        scope(|scope| (0..64).for_each(|_| drop(scope.spawn(process))));
        assert!(most.into_inner() <= 3);
    }

    #[test]
    fn those_that_do_not_answer_are_not_waited_for() {
        let attaches = Attaches::new(2, Duration::from_millis(20));
        let held = [attaches.turn(), attaches.turn()];
        let next = [attaches.turn(), attaches.turn()];
        assert!(held.iter().chain(&next).all(Result::is_ok));
        // Late ends of turns that have passed end nobody else's.
        drop(held);
        assert!(attaches.taken().turns.len() <= 2);
        assert_eq!(attaches.patience(5), Duration::from_millis(60));
    }

    #[test]
    fn who_waits_learns_that_nobody_is_wanted_any_more() {
        let attaches = Attaches::new(1, LONG);
        let held = attaches.turn().unwrap();
        scope(|scope| {
            let waiting = scope.spawn(|| attaches.turn().is_err());
            attaches.end();
            assert!(waiting.join().unwrap());
        });
        drop(held);
        assert!(attaches.turn().is_err());
        assert!(attaches.turn_at_the_end().is_some());
    }

    #[test]
    fn a_larger_host_takes_more_at_a_time() {
        let most = |processors| Attaches::of_host(processors).most;
        assert_eq!([1, 2, 8, 16, 96].map(most), [2, 2, 2, 4, 8]);
    }
}
