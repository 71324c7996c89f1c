//! Runs work that can block forever on worker threads with a deadline: reads of another process's `/proc` files (the
//! kernel takes a lock that the process may hold while a file system hangs), attaching, folders on such a file system.
//!
//! A stuck thread cannot be ended. It is left behind; at most `MOST` may be.

use std::fmt;
use std::iter::once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::os::threads::STACK;

const MOST: usize = 64;
/// After this many stuck items of a list, the others get only a moment.
const PATIENT_WITH: usize = 3;
const MOMENT: Duration = Duration::from_millis(200);

static WORKERS: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoResult {
    /// It takes too long, or it panicked.
    Stuck,
    /// Too many workers are stuck already, or the system gives the agent no more threads.
    NotStarted,
}

impl fmt::Display for NoResult {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Stuck => "it hangs: it could not be read in time (ps would hang as well)",
            Self::NotStarted => {
                "it was not checked: too many processes on this host hang, or the agent cannot start a thread (ulimit -u, pids.max)"
            }
        })
    }
}

/// One of `WORKERS`.
struct Worker;

impl Worker {
    fn new() -> Result<Self, NoResult> {
        let more = |workers| (workers < MOST).then_some(workers + 1);
        let counted = WORKERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.map_or(Err(NoResult::NotStarted), |_| Ok(Self))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        WORKERS.fetch_sub(1, Ordering::Relaxed);
    }
}

pub fn run<T: Send + 'static>(
    timeout: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoResult> {
    start(once(work), |work| work())?
        .recv_timeout(timeout)
        .map_err(|_| NoResult::Stuck)
}

/// The results for all items, in order, from one worker. If an item takes longer than `patience`, another worker
/// continues with the rest.
pub fn map<I, T>(
    items: Vec<I>,
    patience: Duration,
    work: impl Fn(&I) -> T + Send + Sync + 'static,
) -> Vec<Result<T, NoResult>>
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    let (items, work) = (Arc::new(items), Arc::new(work));
    let (mut results, mut stuck) = (Vec::new(), 0);
    while results.len() < items.len() {
        let (items_of_worker, work) = (items.clone(), work.clone());
        let started = start(results.len()..items.len(), move |index| {
            work(&items_of_worker[index])
        });
        let receiver = match started {
            Ok(receiver) => receiver,
            Err(why) => {
                results.push(Err(why));
                continue;
            }
        };
        while results.len() < items.len() {
            let patience = if stuck < PATIENT_WITH {
                patience
            } else {
                MOMENT
            };
            match receiver.recv_timeout(patience) {
                Ok(result) => results.push(Ok(result)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    stuck += 1;
                    results.push(Err(NoResult::Stuck));
                    break;
                }
            }
        }
    }
    results
}

/// The results for all items, in order. Each runs on its own thread (which may change its identity), some at a time. An
/// item that is not done within `timeout` has no result.
pub fn run_all<I, T>(
    items: Vec<I>,
    at_once: usize,
    timeout: Duration,
    work: impl Fn(I) -> T + Clone + Send + 'static,
) -> Vec<Result<T, NoResult>>
where
    I: Send + 'static,
    T: Send + 'static,
{
    let mut results: Vec<_> = items.iter().map(|_| Err(NoResult::NotStarted)).collect();
    let patience = Patience {
        each: timeout,
        all: timeout,
    };
    run_each(items, at_once, patience, work, |index, result| {
        results[index] = result;
    });
    results
}

/// How long one item may take, and all together.
pub struct Patience {
    pub each: Duration,
    pub all: Duration,
}

/// As `run_all`, with each result as it comes, by the item's place.
pub fn run_each<I, T>(
    items: Vec<I>,
    at_once: usize,
    patience: Patience,
    work: impl Fn(I) -> T + Clone + Send + 'static,
    mut on_result: impl FnMut(usize, Result<T, NoResult>),
) where
    I: Send + 'static,
    T: Send + 'static,
{
    let end = Instant::now() + patience.all;
    let count = items.len();
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for _ in 0..at_once.min(count) {
            let (sender, work, next) = (sender.clone(), work.clone(), &next);
            let look = move || {
                while let Some((index, item)) = next() {
                    let left = end.saturating_duration_since(Instant::now());
                    let work = work.clone();
                    let result = match left.is_zero() {
                        true => Err(NoResult::NotStarted),
                        false => run(left.min(patience.each), move || work(item)),
                    };
                    let _ = sender.send((index, result));
                }
            };
            // If no thread can be started, the others do its work.
            let _ = thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, look);
        }
        drop(sender);
        for (index, result) in receiver {
            on_result(index, result);
        }
    });
    let left = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    left.for_each(|(index, _)| on_result(index, Err(NoResult::NotStarted)));
}

fn start<I, T: Send + 'static>(
    items: impl Iterator<Item = I> + Send + 'static,
    work: impl Fn(I) -> T + Send + 'static,
) -> Result<Receiver<T>, NoResult> {
    let mut worker = Some(Worker::new()?);
    let (sender, receiver) = channel();
    let run = move || {
        let mut items = items.peekable();
        while let Some(item) = items.next() {
            let result = work(item);
            // The thread that gets the last result may start the next worker at once.
            if items.peek().is_none() {
                drop(worker.take());
            }
            // A worker that was given up has no receiver.
            if sender.send(result).is_err() {
                break;
            }
        }
    };
    let spawned = thread::Builder::new().stack_size(STACK).spawn(run);
    spawned.map(|_| receiver).map_err(|_| NoResult::NotStarted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Condvar;

    /// Work that blocks until the gate is opened.
    #[derive(Clone, Default)]
    struct Gate(Arc<(Mutex<bool>, Condvar)>);

    impl Gate {
        fn wait(&self) {
            let (open, changed) = &*self.0;
            drop(changed.wait_while(open.lock().unwrap(), |open| !*open));
        }

        fn open(&self) {
            *self.0 .0.lock().unwrap() = true;
            self.0 .1.notify_all();
        }
    }

    /// On a busy machine other work, too, may take longer than a short patience.
    fn expect(
        wanted: &[Result<i32, NoResult>],
        attempt: impl Fn(Duration) -> Vec<Result<i32, NoResult>>,
    ) {
        let mut patience = Duration::from_millis(100);
        while patience < Duration::from_secs(20) {
            if attempt(patience) == wanted {
                return;
            }
            patience *= 2;
        }
        assert_eq!(attempt(patience), wanted);
    }

    #[test]
    fn work_that_hangs_is_left_behind() {
        let long = Duration::from_secs(60);
        let stuck = Err(NoResult::Stuck);
        assert_eq!(run(long, || 7), Ok(7));
        assert_eq!(run(long, || -> i32 { panic!("on purpose") }), stuck);

        let gate = Gate::default();
        let blocked = gate.clone();
        let odd_blocks = move |number: &i32| {
            if number % 2 == 1 {
                blocked.wait();
            }
            number * 2
        };
        expect(&[Ok(0), stuck, Ok(4), stuck, Ok(8)], |patience| {
            map(vec![0, 1, 2, 3, 4], patience, odd_blocks.clone())
        });

        let blocked = gate.clone();
        let first_blocks = move |number: i32| {
            if number == 0 {
                blocked.wait();
            }
            number
        };
        expect(&[stuck, Ok(1), Ok(2)], |patience| {
            run_all(vec![0, 1, 2], 2, patience, first_blocks.clone())
        });
        let late = Err(NoResult::NotStarted);
        assert_eq!(run_all(vec![1], 1, Duration::ZERO, |one| one), [late]);
        gate.open();
    }
}
