//! Taking turns at reading and folding what was recorded: it takes memory and a processor that the applications need.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One process has the turn at a time. One that keeps it too long, as in a file system that hangs, loses it, and the
/// next begins. Nobody begins while too much of what was folded waits to be received: a fold takes memory, and a
/// recording that waits takes none.
pub struct Folding {
    longest: Duration,
    /// How many bytes may wait to be received while the next is folded.
    room: usize,
    holder: Mutex<Holder>,
    freed: Condvar,
}

#[derive(Default)]
struct Holder {
    /// Since when somebody has the turn.
    since: Option<Instant>,
    /// The number of that turn, or of the last one.
    number: u64,
    /// How many bytes of what was folded wait to be received.
    waiting: usize,
    /// Since when they leave room again, if they ever left none.
    freed: Option<Instant>,
    /// Nobody wants what is folded any more.
    over: bool,
}

/// Somebody's turn, until this is dropped.
pub struct Turn<'a> {
    folding: &'a Folding,
    number: u64,
}

/// What was folded. It counts as waiting until this is dropped.
pub struct Waiting {
    bytes: Vec<u8>,
    folding: Arc<Folding>,
}

impl Folding {
    /// `longest`: after what time a turn passes to the next, whether its holder is ready or not. `room`: how many bytes
    /// may wait to be received while the next is folded.
    pub fn new(longest: Duration, room: usize) -> Self {
        Self {
            longest,
            room,
            holder: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Wait for a turn; None once nobody wants what is folded any more.
    pub fn turn(&self) -> Option<Turn<'_>> {
        let mut holder = self.holder();
        while !holder.over {
            let Some(left) = self.left(&holder) else {
                break;
            };
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

    /// Have something wait that was just folded.
    pub fn wait(self: &Arc<Self>, bytes: Vec<u8>) -> Waiting {
        self.holder().waiting += bytes.len();
        Waiting {
            bytes,
            folding: self.clone(),
        }
    }

    /// Until when nobody could begin, for all that waited: until now, where it still does. None where it never was
    /// too much.
    pub fn held_up(&self) -> Option<Instant> {
        let holder = self.holder();
        match holder.waiting > self.room {
            true => Some(Instant::now()),
            false => holder.freed,
        }
    }

    /// How long to wait before the next look; None where whoever looks may begin: the turn is free, or kept too long.
    fn left(&self, holder: &Holder) -> Option<Duration> {
        if holder.waiting > self.room {
            return Some(self.longest);
        }
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

impl AsRef<[u8]> for Waiting {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It is free before the next begins.
        let bytes = std::mem::take(&mut self.bytes);
        let size = bytes.len();
        drop(bytes);
        let mut holder = self.folding.holder();
        let was_full = holder.waiting > self.folding.room;
        holder.waiting -= size;
        if was_full && holder.waiting <= self.folding.room {
            holder.freed = Some(Instant::now());
            self.folding.freed.notify_all();
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
        let folding = Folding::new(LONG, usize::MAX);
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
        let folding = Folding::new(Duration::from_millis(50), usize::MAX);
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
        let folding = Folding::new(LONG, usize::MAX);
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

    /// That a turn is had no sooner than this lets it.
    fn waits_for(folding: &Arc<Folding>, lets: impl FnOnce()) {
        let (had, is_had) = channel();
        scope(|scope| {
            scope.spawn(|| had.send(folding.turn().is_some()).unwrap());
            assert!(is_had.recv_timeout(Duration::from_millis(50)).is_err());
            lets();
            assert!(is_had.recv_timeout(LONG).unwrap());
        });
    }

    #[test]
    fn nobody_begins_while_too_much_waits_to_be_received() {
        let folding = Arc::new(Folding::new(LONG, 10));
        let (one, other) = (folding.wait(vec![0; 10]), folding.wait(vec![0; 10]));
        assert!(folding.held_up().is_some());
        waits_for(&folding, || drop(one));
        let freed = folding.held_up().unwrap();
        assert!(freed <= Instant::now());
        drop(other);
        assert_eq!(folding.held_up(), Some(freed));
        let _more_than_there_is_room_for = folding.wait(vec![0; 100]);
        folding.end();
        assert!(folding.turn().is_none());
    }
}
