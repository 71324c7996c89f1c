//! Work for several users, some at a time. Who has much of it, or lets it hang, keeps nobody waiting but himself.

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::discovery::fair_share::by_turns;
use crate::os::threads::STACK;
use crate::wire::events::Found;

/// So much is done at a time, as many JVMs as are attached to for a recording. What hangs takes nobody else's place, but
/// of one user no more is under way.
const AT_ONCE: usize = 8;
/// What takes longer than this part of the time for all of it hangs.
const SLOW: u32 = 10;
/// Threads, those with that hang since an earlier step.
const MOST: usize = 64;
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Work on a thread of its own, which may take another user's identity and ends with it.
pub struct Work {
    pub what: String,
    pub uid: u32,
    pub run: Box<dyn FnOnce() -> Found + Send>,
}

/// Do it all. What takes too long is told, and what there is no time left for is not begun: nobody would wait for it, and
/// what comes next relies on its being over.
pub fn work(works: impl Iterator<Item = Work>, patience: Duration, found: &mut Found) {
    let mut turns = Turns::begin(works.collect(), patience);
    turns.go_on(found);
    while !turns.under_way.is_empty() && Instant::now() < turns.end {
        turns.wait(found);
        turns.go_on(found);
    }
    let under_way = turns.under_way.into_values().map(|it| it.what);
    for what in under_way.chain(turns.waiting.into_iter().map(|work| work.what)) {
        too_late(what, found);
    }
}

struct Turns {
    waiting: Vec<Work>,
    under_way: HashMap<usize, UnderWay>,
    begun: usize,
    end: Instant,
    slow: Duration,
    /// What came of it; nothing of a thread that broke down.
    told: Receiver<(usize, Option<Found>)>,
    tell: Sender<(usize, Option<Found>)>,
}

/// One of them, until this is dropped.
struct Thread;

impl Thread {
    fn begin() -> Self {
        THREADS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

struct UnderWay {
    what: String,
    uid: u32,
    hangs_from: Instant,
}

impl Turns {
    fn begin(works: Vec<Work>, patience: Duration) -> Self {
        let (tell, told) = channel();
        Self {
            waiting: by_turns(works, |work| work.uid),
            under_way: HashMap::new(),
            begun: 0,
            end: Instant::now() + patience,
            slow: patience / SLOW,
            told,
            tell,
        }
    }

    /// Begin what there is room for.
    fn go_on(&mut self, found: &mut Found) {
        while Instant::now() < self.end {
            match self.next() {
                Some(next) => self.start(next, found),
                None => return,
            }
        }
    }

    /// Where in the queue that user's first is for whom least is under way.
    fn next(&self) -> Option<usize> {
        let (now, mut busy) = (Instant::now(), 0);
        let mut of_users: HashMap<u32, usize> = HashMap::new();
        for one in self.under_way.values() {
            *of_users.entry(one.uid).or_default() += 1;
            busy += usize::from(now < one.hangs_from);
        }
        if at_work() >= MOST {
            return None;
        }
        let of = |work: &Work| of_users.get(&work.uid).copied().unwrap_or(0);
        let waiting = self.waiting.iter().map(of).enumerate();
        let (next, _) = waiting
            .filter(|&(_, of_user)| busy < AT_ONCE && of_user < AT_ONCE)
            .min_by_key(|&(_, of_user)| of_user)?;
        Some(next)
    }

    fn start(&mut self, next: usize, found: &mut Found) {
        let Work { what, uid, run } = self.waiting.remove(next);
        let (number, tell) = (self.begun, self.tell.clone());
        self.begun += 1;
        let thread = Thread::begin();
        let run = move || {
            let more = catch_unwind(AssertUnwindSafe(run)).ok();
            drop(thread);
            // Nobody may wait any more.
            let _ = tell.send((number, more));
        };
        let hangs_from = Instant::now() + self.slow;
        let one = UnderWay {
            what,
            uid,
            hangs_from,
        };
        match thread::Builder::new().stack_size(STACK).spawn(run) {
            Ok(_) => drop(self.under_way.insert(number, one)),
            Err(error) => found.fail(one.what, error.to_string()),
        }
    }

    /// Until something is done or hangs: then there is room.
    fn wait(&mut self, found: &mut Found) {
        let now = Instant::now();
        let hang = self.under_way.values().map(|one| one.hangs_from);
        let room = hang.filter(|&at| at > now).min();
        let until = room.unwrap_or(self.end).min(self.end);
        if let Ok((number, more)) = self.told.recv_timeout(until.saturating_duration_since(now)) {
            let one = self.under_way.remove(&number);
            match more {
                Some(more) => found.merge(more),
                None => one.into_iter().for_each(|one| too_late(one.what, found)),
            }
        }
    }
}

/// How many threads there are, those with that nobody waits for any more.
pub fn at_work() -> usize {
    THREADS.load(Ordering::Relaxed)
}

/// Told once of each, however often it was too late.
fn too_late(what: String, found: &mut Found) {
    if !found.cleaned.failed.iter().any(|told| told.what == what) {
        found.fail(what, "it could not be looked at in time: try again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;
    use std::sync::{Arc, Condvar, Mutex};

    /// `run` for JVMs of a user.
    fn of(
        uid: u32,
        pids: Range<i32>,
        run: impl Fn() + Clone + Send + 'static,
    ) -> impl Iterator<Item = Work> {
        pids.map(move |pid| {
            let run = run.clone();
            let run = Box::new(move || {
                run();
                let mut found = Found::default();
                found.cleaned.stopped.push(pid);
                found
            });
            let what = format!("process {pid}");
            Work { what, uid, run }
        })
    }

    /// What hangs until something else was done so many times, and that.
    fn until_done(times: usize) -> (impl Fn() + Clone, impl Fn() + Clone) {
        let left = Arc::new((Mutex::new(times), Condvar::new()));
        let done = left.clone();
        let hang = move || {
            let (times, changed) = &*left;
            drop(changed.wait_while(times.lock().unwrap(), |times| *times > 0));
        };
        let finish = move || {
            *done.0.lock().unwrap() -= 1;
            done.1.notify_all();
        };
        (hang, finish)
    }

    #[test]
    fn who_lets_his_hang_keeps_nobody_waiting_but_himself() {
        let (hang, finish) = until_done(30);
        let works = of(7, 0..40, hang).chain(of(0, 40..70, finish));
        let mut found = Found::default();
        work(works, Duration::from_secs(60), &mut found);
        assert!(found.cleaned.failed.is_empty());
        assert_eq!(found.cleaned.stopped.len(), 70);
    }

    #[test]
    fn however_many_users_let_theirs_hang() {
        let (hang, finish) = until_done(1);
        let crowd = (1..=20).flat_map(|uid| of(uid, uid as i32..uid as i32 + 1, hang.clone()));
        let mut found = Found::default();
        work(
            crowd.chain(of(0, 40..41, finish)),
            Duration::from_secs(5),
            &mut found,
        );
        assert!(found.cleaned.failed.is_empty());
        assert_eq!(found.cleaned.stopped.len(), 21);
    }

    #[test]
    fn of_one_user_few_are_waited_for() {
        let (begin, begun) = channel();
        let (hang, finish) = until_done(1);
        let run = move || {
            begin.send(()).unwrap();
            hang();
        };
        let mut found = Found::default();
        work(of(7, 0..20, run), Duration::from_millis(500), &mut found);
        assert_eq!(found.cleaned.failed.len(), 20);
        finish();
        assert!(begun.iter().count() <= AT_ONCE);
    }

    #[test]
    fn a_thread_that_breaks_down_is_told() {
        let mut found = Found::default();
        let works = of(7, 0..1, || panic!("on purpose")).chain(of(7, 1..2, || {}));
        work(works, Duration::from_secs(60), &mut found);
        assert_eq!(found.cleaned.stopped, [1]);
        assert_eq!(found.cleaned.failed[0].what, "process 0");
    }

    #[test]
    fn what_there_is_no_time_for_is_not_begun_and_told_once() {
        let mut found = Found::default();
        let (sender, begun) = channel::<()>();
        for _ in 0..2 {
            let sender = sender.clone();
            let run = move || sender.send(()).unwrap();
            work(of(7, 7..8, run), Duration::ZERO, &mut found);
        }
        drop(sender);
        assert!(begun.recv().is_err());
        assert_eq!(found.cleaned.failed.len(), 1);
    }
}
