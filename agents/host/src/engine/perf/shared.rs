//! What the recordings of a session share where perf makes them: the program, the memory, and what it was tried out on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::budget::KernelMemory;
use super::find::{self, Perf};
use super::record::Tried;
use crate::wire::outcome::Failure;

pub struct Shared {
    pub memory: KernelMemory,
    perf: OnceLock<Result<Perf, Failure>>,
    /// By what perf was asked for.
    trials: Mutex<HashMap<Vec<String>, Arc<OnceLock<Tried>>>>,
}

impl Shared {
    pub fn of_host() -> Self {
        Self {
            memory: KernelMemory::of_host(),
            perf: OnceLock::new(),
            trials: Mutex::default(),
        }
    }

    /// The host's perf, which is looked for once.
    pub fn perf(&self) -> Result<Perf, Failure> {
        self.perf.get_or_init(find::find).clone()
    }

    /// What came of trying perf out with these arguments, which is done once: it takes a processor for a good part of a
    /// second, and what the kernel lets it do is the same for all processes that it may record.
    pub fn tried(&self, arguments: Vec<String>, trial: impl FnOnce() -> Tried) -> Tried {
        let mut trials = self.trials.lock().unwrap_or_else(PoisonError::into_inner);
        let tried = trials.entry(arguments).or_default().clone();
        drop(trials);
        tried.get_or_init(trial).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread::scope;

    #[test]
    fn it_is_tried_out_once_for_all() {
        let shared = Shared::of_host();
        let trials = AtomicU64::new(0);
        let tried = |arguments: &str| {
            let trial = || Tried {
                pages: trials.fetch_add(1, Ordering::SeqCst),
                ..Tried::default()
            };
            shared.tried(vec![arguments.to_owned()], trial).pages
        };
        let both = || (tried("one"), tried("other"));
        scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(both)).collect();
            for thread in threads {
                let (one, other) = thread.join().unwrap();
                assert_eq!(one + other, 1);
            }
        });
        assert_eq!(trials.into_inner(), 2);
    }
}
