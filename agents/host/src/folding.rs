//! Taking turns at reading and folding what was recorded: it takes memory and a processor that the applications need.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One process has the turn at a time. One that keeps it too long, as in a file system that hangs, has it no more: the
/// next begins beside it.
pub struct Folding {
    longest: Duration,
    holder: Mutex<Holder>,
    freed: Condvar,
}

#[derive(Default)]
struct Holder {
    /// Since when somebody has the turn.
    since: Option<Instant>,
    /// The number of that turn, or of the last one.
    number: u64,
    /// Nobody wants what is folded any more.
    over: bool,
}

/// Somebody's turn, until this is dropped.
pub struct Turn<'a> {
    folding: &'a Folding,
    number: u64,
}

impl Folding {
    /// `longest`: after what time a turn passes to the next, whether its holder is ready or not.
    pub fn new(longest: Duration) -> Self {
        Self {
            longest,
            holder: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Wait for a turn; None once nobody wants what is folded any more.
    pub fn turn(&self) -> Option<Turn<'_>> {
        let mut holder = self.holder();
        while let (false, Some(left)) = (holder.over, self.left(&holder)) {
            let waited = self.freed.wait_timeout(holder, left);
            holder = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if holder.over {
            return None;
        }
        holder.since = Some(Instant::now());
        holder.number += 1;
        Some(Turn {
            folding: self,
            number: holder.number,
        })
    }

    /// Nobody gets a turn any more; those that wait learn it at once.
    pub fn end(&self) {
        self.holder().over = true;
        self.freed.notify_all();
    }

    /// Whether nobody wants what is folded any more.
    pub fn is_over(&self) -> bool {
        self.holder().over
    }

    /// How long somebody may yet keep the turn; None where it is free, or kept too long.
    fn left(&self, holder: &Holder) -> Option<Duration> {
        let left = self.longest.checked_sub(holder.since?.elapsed());
        left.filter(|left| !left.is_zero())
    }

    fn holder(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut holder = self.folding.holder();
        // A turn that has passed to another is the other's to end.
        if holder.number == self.number {
            holder.since = None;
            self.folding.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::thread::{scope, yield_now};

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn one_at_a_time() {
        let folding = Folding::new(LONG);
        let (folds, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let process = || {
            let _turn = folding.turn().unwrap();
            most.fetch_max(folds.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            yield_now();
            folds.fetch_sub(1, Ordering::SeqCst);
        };
        scope(|scope| (0..8).for_each(|_| drop(scope.spawn(process))));
        assert_eq!(most.into_inner(), 1);
    }

    #[test]
    fn those_that_hang_do_not_hold_up_the_others() {
        let folding = Folding::new(Duration::from_millis(50));
        let (hanging, hangs) = channel();
        let (done, is_done) = channel();
        scope(|scope| {
            for _ in 0..2 {
                let (let_go, until) = channel::<()>();
                let (folding, hanging) = (&folding, hanging.clone());
                scope.spawn(move || {
                    let _turn = folding.turn().unwrap();
                    hanging.send(let_go).unwrap();
                    let _ = until.recv();
                });
            }
            let held: Vec<_> = (0..2).map(|_| hangs.recv_timeout(LONG).unwrap()).collect();
            for number in 0..3 {
                let (folding, done) = (&folding, done.clone());
                scope.spawn(move || {
                    let _turn = folding.turn().unwrap();
                    done.send(number).unwrap();
                });
            }
            for _ in 0..3 {
                is_done.recv_timeout(LONG).unwrap();
            }
            drop(held);
        });
        // Late ends of turns that have passed end nobody else's.
        assert!(folding.holder().since.is_none());
    }

    #[test]
    fn who_waits_learns_that_nobody_wants_it_any_more() {
        let folding = Folding::new(LONG);
        let held = folding.turn().unwrap();
        scope(|scope| {
            let waiting: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| folding.turn().is_none()))
                .collect();
            folding.end();
            assert!(waiting.into_iter().all(|waited| waited.join().unwrap()));
        });
        drop(held);
        assert!(folding.is_over() && folding.turn().is_none());
    }
}
