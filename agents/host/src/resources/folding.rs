//! Limits how many recordings are folded at a time, because applications need the memory and the processor.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::os::turns::{Turn, Turns};

/// One process is folded at a time, and none while too many results wait to be received. A waiting recording takes no
/// memory.
pub struct Folding {
    turns: Turns,
    room: usize,
    waiting: Mutex<WaitingBytes>,
    emptied: Condvar,
}

#[derive(Default)]
struct WaitingBytes {
    bytes: usize,
    /// When they last fell below the limit.
    freed: Option<Instant>,
}

/// A folded result. It counts as waiting until this is dropped.
pub struct Waiting {
    bytes: Vec<u8>,
    folding: Arc<Folding>,
}

impl Folding {
    /// `longest`: when a turn passes to the next. `room`: the bytes that may wait to be received while the next is
    /// folded.
    pub fn new(longest: Duration, room: usize) -> Self {
        Self {
            turns: Turns::new(1, longest),
            room,
            waiting: Mutex::default(),
            emptied: Condvar::new(),
        }
    }

    /// Wait for a turn. None: results are not wanted any more.
    pub fn turn(&self) -> Option<Turn<'_>> {
        loop {
            let turn = self.turns.take()?;
            if self.waiting().bytes <= self.room {
                return Some(turn);
            }
            drop(turn);
            let full =
                |waiting: &mut WaitingBytes| waiting.bytes > self.room && !self.turns.is_over();
            drop(self.emptied.wait_while(self.waiting(), full));
        }
    }

    /// A turn if there is one at once.
    pub fn turn_now(&self) -> Option<Turn<'_>> {
        let room = self.waiting().bytes <= self.room;
        room.then(|| self.turns.take_now()).flatten()
    }

    /// Give no more turns.
    pub fn end(&self) {
        self.turns.end();
        let _waiting = self.waiting(); // no thread is between checking the turns and waiting
        self.emptied.notify_all();
    }

    pub fn is_over(&self) -> bool {
        self.turns.is_over()
    }

    pub fn wait(self: &Arc<Self>, bytes: Vec<u8>) -> Waiting {
        self.waiting().bytes += bytes.len();
        Waiting {
            bytes,
            folding: self.clone(),
        }
    }

    /// When waiting results last delayed all others. None: they never did.
    pub fn held_up(&self) -> Option<Instant> {
        let waiting = self.waiting();
        match waiting.bytes > self.room {
            true => Some(Instant::now()),
            false => waiting.freed,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingBytes> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<[u8]> for Waiting {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Freed before the next starts.
        let size = self.bytes.len();
        drop(std::mem::take(&mut self.bytes));
        let room = self.folding.room;
        let mut waiting = self.folding.waiting();
        let was_full = waiting.bytes > room;
        waiting.bytes -= size;
        if was_full && waiting.bytes <= room {
            waiting.freed = Some(Instant::now());
            self.folding.emptied.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::scope;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn nobody_begins_while_too_much_waits_to_be_received() {
        let folding = Arc::new(Folding::new(LONG, 10));
        let (one, other) = (folding.wait(vec![0; 10]), folding.wait(vec![0; 10]));
        assert!(folding.held_up().is_some());
        let (had, is_had) = channel();
        scope(|scope| {
            scope.spawn(|| had.send(folding.turn().is_some()).unwrap());
            assert!(is_had.recv_timeout(Duration::from_millis(50)).is_err());
            drop(one);
            assert!(is_had.recv_timeout(LONG).unwrap());
        });
        let freed = folding.held_up().unwrap();
        assert!(freed <= Instant::now());
        drop(other);
        assert_eq!(folding.held_up(), Some(freed));
    }

    #[test]
    fn who_waits_for_room_learns_that_nobody_wants_it_any_more() {
        let folding = Arc::new(Folding::new(LONG, 10));
        let _more_than_there_is_room_for = folding.wait(vec![0; 100]);
        scope(|scope| {
            let waiting = scope.spawn(|| folding.turn().is_none());
            folding.end();
            assert!(waiting.join().unwrap());
        });
        assert!(folding.is_over());
    }
}
