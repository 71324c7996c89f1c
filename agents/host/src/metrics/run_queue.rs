//! How long the threads of a process were ready to run and waited for a CPU.
//!
//! `/proc/PID/schedstat` is of the main thread alone, so each thread is read. That is too much for every second if
//! there are many.

use std::collections::HashMap;

use super::table::{Reading, Thing};
use crate::os::proc::target::Target;

/// Threads to read in a second, of all processes: about a thousandth of a CPU. Processes wait for their turns.
pub const A_SECOND: usize = 50;

/// The time of all threads since the first reading: a thread that ends takes none away.
#[derive(Default)]
pub struct RunQueue {
    total: u64,
    threads: HashMap<i32, u64>,
    begun: bool,
}

impl RunQueue {
    /// Read all threads, and return their number.
    pub fn read(&mut self, target: &Target, id: &str, to: &mut Vec<Reading>) -> usize {
        let found = waits(target);
        let number = found.len();
        self.take(found);
        if number > 0 {
            Thing::new("process", id, to).counter("run_queue_ns", "ns", self.total);
        }
        number
    }

    fn take(&mut self, found: Vec<(i32, u64)>) {
        if self.begun {
            let grown = found.iter().map(|(thread, waited)| {
                waited.saturating_sub(self.threads.get(thread).copied().unwrap_or(0))
            });
            self.total = grown.fold(self.total, u64::saturating_add);
        }
        self.begun = true;
        self.threads = found.into_iter().collect();
    }
}

/// The nanoseconds of each thread so far.
fn waits(target: &Target) -> Vec<(i32, u64)> {
    let wait = |thread: i32| {
        let text = target.read(&format!("task/{thread}/schedstat"), 256)?;
        Some((thread, text.split_ascii_whitespace().nth(1)?.parse().ok()?))
    };
    target.threads().into_iter().filter_map(wait).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_and_one_that_ends_takes_nothing_away() {
        let mut queue = RunQueue::default();
        queue.take(vec![(1, 100), (2, 50)]);
        assert_eq!(queue.total, 0);
        queue.take(vec![(1, 130), (2, 51), (3, 7)]);
        assert_eq!(queue.total, 38);
        queue.take(vec![(3, 8)]);
        assert_eq!(queue.total, 39);
        queue.take(vec![(3, 5), (1, 2)]); // another thread with the same number
        assert_eq!(queue.total, 41);
    }

    #[test]
    fn all_threads_of_a_process_are_read() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || ended.recv());
        let mut to = Vec::new();
        let number = RunQueue::default().read(&Target::own(), "7", &mut to);
        assert!(number >= 2 && to.len() == 1, "{number}");
        drop(end);
        let _ = thread.join();
    }
}
