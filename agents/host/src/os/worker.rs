//! Work that may hang, for what it reads belongs to somebody else: on a thread of its own, which is left behind where it
//! takes too long.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::gettid;

use crate::os::proc::{read_text, stat};
use crate::os::threads::STACK;

/// How long a thread that only waits for a processor is waited for beyond its time, and how often that is looked at.
const STARVED: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(20);

/// Threads for one kind of work: so many may be at it, for one user and for all. More than one are only where some are
/// no longer waited for. Who has none of them gets one beyond the limit for all, up to twice as many: users who have
/// many that hang are to keep nobody else out.
pub struct Asides {
    most_of_user: usize,
    most: usize,
    all: Mutex<Places>,
}

/// By their numbers.
struct Places {
    next: u64,
    taken: BTreeMap<u64, Taken>,
}

/// By a thread that works for a process.
struct Taken {
    whose: Whose,
    left_behind: bool,
}

/// Why nothing came of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unheard {
    /// It takes too long, or work for this process hangs already.
    Hangs,
    /// Enough of it hangs.
    TooMuch,
    /// No thread can be started for it.
    NoThread,
}

/// The process that work is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whose {
    pub uid: u32,
    pub pid: i32,
    pub start_time: u64,
}

impl Whose {
    /// Its user and its number, and what tells it from others that had that number.
    pub fn new(uid: u32, pid: i32, start_time: u64) -> Self {
        Self {
            uid,
            pid,
            start_time,
        }
    }
}

/// One of them, until this is dropped.
struct Place {
    asides: &'static Asides,
    number: u64,
}

impl Asides {
    pub const fn new(most_of_user: usize, most: usize) -> Self {
        let places = Places {
            next: 0,
            taken: BTreeMap::new(),
        };
        Self {
            most_of_user,
            most,
            all: Mutex::new(places),
        }
    }

    /// What comes of `work`, unless it takes longer than `patience`.
    pub fn wait<T: Send + 'static>(
        &'static self,
        whose: Whose,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unheard> {
        let place = self.place(whose)?;
        let number = place.number;
        let (sender, receiver) = channel();
        let thread = Arc::new(AtomicI32::new(0));
        let worker = thread.clone();
        let run = move || {
            worker.store(gettid().as_raw_nonzero().get(), Ordering::Relaxed);
            let done = work();
            drop(place);
            // Nobody may wait any more.
            let _ = sender.send(done);
        };
        let spawned = thread::Builder::new().stack_size(STACK).spawn(run);
        spawned.map_err(|_| Unheard::NoThread)?;
        let done = in_time(&receiver, patience, &thread);
        if done.is_none() {
            self.leave_behind(number);
        }
        done.ok_or(Unheard::Hangs)
    }

    /// How many nobody waits for any more.
    pub fn left_behind(&self) -> usize {
        let places = self.places();
        places.taken.values().filter(|it| it.left_behind).count()
    }

    fn place(&'static self, whose: Whose) -> Result<Place, Unheard> {
        let mut places = self.places();
        let taken = &places.taken;
        let hangs = |taken: &Taken| taken.left_behind && taken.whose == whose;
        if taken.values().any(hangs) {
            return Err(Unheard::Hangs);
        }
        let of_user = |taken: &&Taken| taken.whose.uid == whose.uid;
        let of_user = taken.values().filter(of_user).count();
        let most = match of_user {
            0 => 2 * self.most,
            _ => self.most,
        };
        if of_user >= self.most_of_user || taken.len() >= most {
            return Err(Unheard::TooMuch);
        }
        let number = places.next;
        places.next += 1;
        let left_behind = false;
        places.taken.insert(number, Taken { whose, left_behind });
        Ok(Place {
            asides: self,
            number,
        })
    }

    fn leave_behind(&self, number: u64) {
        if let Some(taken) = self.places().taken.get_mut(&number) {
            taken.left_behind = true;
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.asides.places().taken.remove(&self.number);
    }
}

/// What a thread sends in time. One that gets no processor does not hang.
fn in_time<T>(receiver: &Receiver<T>, patience: Duration, thread: &AtomicI32) -> Option<T> {
    let end = Instant::now() + patience + STARVED;
    let mut waits = patience;
    loop {
        match receiver.recv_timeout(waits) {
            Ok(done) => return Some(done),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if Instant::now() >= end || !wants_processor(thread.load(Ordering::Relaxed)) {
            return receiver.try_recv().ok();
        }
        waits = MOMENT;
    }
}

/// Whether a thread of ours runs, or would; one that has not begun is 0.
fn wants_processor(thread: i32) -> bool {
    let state = || {
        let text = read_text(format!("/proc/self/task/{thread}/stat"), 4096)?;
        Some(stat::parse(&text)?.state)
    };
    thread == 0 || state() == Some('R')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Sender;

    fn whose(uid: u32, pid: i32) -> Whose {
        Whose::new(uid, pid, 1)
    }

    /// Let work for a process hang until what is returned is dropped; None where there is no thread for it.
    fn hang(asides: &'static Asides, whose: Whose) -> Option<Sender<()>> {
        let (let_go, until) = channel::<()>();
        let (begins, begun) = channel();
        let hangs = move || {
            let _ = begins.send(());
            let _ = until.recv();
        };
        let waited = asides.wait(whose, Duration::ZERO, hangs);
        assert!(matches!(waited, Err(Unheard::Hangs | Unheard::TooMuch)));
        begun.recv().ok().map(|()| let_go)
    }

    #[test]
    fn what_is_done_in_time_comes_back() {
        static ASIDES: Asides = Asides::new(1, 1);
        for number in 0..3 {
            let done = ASIDES.wait(whose(7, 1), Duration::from_secs(60), move || number);
            assert_eq!(done, Ok(number));
        }
        let breaks = || panic!("on purpose");
        assert_eq!(
            ASIDES.wait::<()>(whose(7, 1), Duration::from_secs(60), breaks),
            Err(Unheard::Hangs)
        );
        assert!(ASIDES.places().taken.is_empty());
    }

    #[test]
    fn threads_that_nobody_waits_for_are_few() {
        static ASIDES: Asides = Asides::new(2, 3);
        let hangs = |uid, pid| hang(&ASIDES, whose(uid, pid));
        let mut hanging: Vec<_> = [(7, 1), (7, 2), (8, 4)].map(|it| hangs(it.0, it.1)).into();
        assert!(hangs(7, 3).is_none(), "of one user");
        assert!(hangs(8, 5).is_none(), "of all");
        hanging.extend((9..12).map(|uid| hangs(uid, 6)));
        assert!(hanging.iter().all(Option::is_some));
        assert!(hangs(12, 6).is_none(), "of whoever has none");
        assert_eq!(ASIDES.left_behind(), 6);
    }

    #[test]
    fn what_hangs_is_asked_again_once_it_goes_on() {
        static ASIDES: Asides = Asides::new(9, 9);
        let process = whose(7, 1);
        let hanging = hang(&ASIDES, process);
        assert!(hang(&ASIDES, process).is_none());
        drop(hanging);
        let patience = Duration::from_secs(60);
        while ASIDES.wait(process, patience, || ()).is_err() {
            thread::yield_now();
        }
    }

    #[test]
    fn who_gets_no_processor_in_time_is_waited_for() {
        static ASIDES: Asides = Asides::new(1, 1);
        let works = || {
            let end = Instant::now() + Duration::from_millis(200);
            while Instant::now() < end {}
            7
        };
        assert_eq!(ASIDES.wait(whose(7, 1), Duration::ZERO, works), Ok(7));
    }
}
