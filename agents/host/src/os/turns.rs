//! A semaphore whose permits (turns) expire.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Up to `most` threads have a turn at a time. One that hangs loses its turn after `longest`.
pub struct Turns {
    most: usize,
    longest: Duration,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    /// By number, and since when.
    taken: Vec<(u64, Instant)>,
    number: u64,
    over: bool,
}

/// Ends when dropped.
pub struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    pub fn new(most: usize, longest: Duration) -> Self {
        Self {
            most,
            longest,
            state: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// None: no more turns are given.
    pub fn take(&self) -> Option<Turn<'_>> {
        self.wait(true)
    }

    /// None: all are taken, or no more are given.
    pub fn take_now(&self) -> Option<Turn<'_>> {
        let mut state = self.state();
        let room = self.has_room(&mut state) && !state.over;
        room.then(|| self.taken(state))
    }

    /// Wait for a turn at the end of a recording, which is never refused.
    pub fn take_at_the_end(&self) -> Option<Turn<'_>> {
        self.wait(false)
    }

    fn wait(&self, begins: bool) -> Option<Turn<'_>> {
        let mut state = self.state();
        loop {
            if begins && state.over {
                return None;
            }
            if self.has_room(&mut state) {
                return Some(self.taken(state));
            }
            let first = state.taken.iter().map(|(_, since)| since.elapsed()).max();
            let left = self.longest.saturating_sub(first.unwrap_or_default());
            let waited = self.freed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn has_room(&self, state: &mut State) -> bool {
        let taken = &mut state.taken;
        taken.retain(|(_, since)| since.elapsed() < self.longest);
        taken.len() < self.most
    }

    fn taken(&self, mut state: MutexGuard<'_, State>) -> Turn<'_> {
        state.number += 1;
        let number = state.number;
        state.taken.push((number, Instant::now()));
        Turn {
            turns: self,
            number,
        }
    }

    pub fn end(&self) {
        self.state().over = true;
        self.freed.notify_all();
    }

    pub fn is_over(&self) -> bool {
        self.state().over
    }

    /// How long `count` threads may have to wait, if all keep their turns too long.
    pub fn patience(&self, count: usize) -> Duration {
        self.longest * count.div_ceil(self.most) as u32
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.turns.state().taken.retain(|(turn, _)| *turn != number);
        self.turns.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn those_that_hang_do_not_hold_up_the_others() {
        let turns = Turns::new(2, Duration::from_millis(20));
        let held = [turns.take(), turns.take()];
        let next = [turns.take(), turns.take()];
        assert!(held.iter().chain(&next).all(Option::is_some));
        // Dropping a lost turn late does not end another thread's turn.
        drop(held);
        assert!(turns.state().taken.len() <= 2);
        assert_eq!(turns.patience(5), Duration::from_millis(60));
    }

    #[test]
    fn who_waits_learns_that_nobody_begins_any_more() {
        let turns = Turns::new(1, LONG);
        let held = turns.take().unwrap();
        scope(|scope| {
            let waiting = scope.spawn(|| turns.take().is_none());
            turns.end();
            assert!(waiting.join().unwrap());
        });
        drop(held);
        assert!(turns.take().is_none() && turns.take_at_the_end().is_some());
    }
}
