//! Taking turns at a place that several recordings may want at once.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A folder (device and inode) and a number in it.
pub type Place = (u64, u64, i32);

/// The places that are taken.
pub struct Turns {
    taken: Mutex<Option<HashSet<Place>>>,
    freed: Condvar,
}

/// A place is taken until this is dropped.
pub struct Turn<'a> {
    turns: &'a Turns,
    place: Place,
}

impl Turns {
    pub const fn new() -> Self {
        Self {
            taken: Mutex::new(None),
            freed: Condvar::new(),
        }
    }

    /// Take a place; None when it did not become free within `patience`.
    pub fn take(&self, place: Place, patience: Duration) -> Option<Turn<'_>> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_taken = |taken: &mut Option<HashSet<Place>>| {
            taken.as_ref().is_some_and(|taken| taken.contains(&place))
        };
        let waited = self.freed.wait_timeout_while(taken, patience, is_taken);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        taken
            .get_or_insert_default()
            .insert(place)
            .then(|| Turn { turns: self, place })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self
            .turns
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        taken.get_or_insert_default().remove(&self.place);
        self.turns.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_in_a_place() {
        let turns = Turns::new();
        let moment = Duration::from_millis(10);
        let first = turns.take((1, 2, 3), moment);
        assert!(first.is_some());
        assert!(turns.take((1, 2, 3), moment).is_none());
        assert!(turns.take((1, 2, 4), moment).is_some());
        drop(first);
        assert!(turns.take((1, 2, 3), moment).is_some());
    }

    #[test]
    fn who_waits_gets_it_when_it_is_free() {
        let turns = Turns::new();
        let first = turns.take((1, 2, 3), Duration::ZERO);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| turns.take((1, 2, 3), Duration::from_secs(60)).is_some());
            drop(first);
            assert!(second.join().unwrap());
        });
    }
}
