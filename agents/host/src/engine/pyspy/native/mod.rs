//! Native frames in the stacks of a Python process, which is stopped for each sample.

mod merge;
mod modules;
mod registers;
mod stop;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use py_spy::{Frame, PythonSpy, StackTrace};
use serde::{Deserialize, Serialize};

use self::merge::{merge, PythonFrame};
pub use self::modules::Files;
use self::modules::{Modules, MOST_FRAMES, MOST_STACK};
use self::stop::{while_stopped, StoppedThread};
use super::frame;
use super::tasks::{Task, Tasks};
use crate::engine::api::{fraction, share, Note};
use crate::wire::outcome::Code;

/// The most threads that are stopped for one sample.
const MOST_THREADS: usize = 64;
/// A process may be stopped for a fifth of the time. Time in which it was not stopped is saved up, to this limit.
const TIME_FOR_STOPS: u32 = 5;
const SAVED: Duration = Duration::from_millis(200);

#[derive(Default)]
pub struct Native {
    processes: HashMap<i32, Process>,
    stops: Stops,
}

/// What was done for native frames.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Stops {
    /// How often a process was stopped, and for how long altogether.
    stops: u64,
    stopped: Duration,
    /// Why a thread could not be stopped: an error's number.
    refused: Option<i32>,
    /// How many stacks were to have native frames, and how many have none.
    wanted: u64,
    missing: u64,
}

struct Process {
    modules: Modules,
    /// When it may be stopped again.
    next: Instant,
    /// The threads of this sample, by the process's own numbers.
    threads: HashMap<i32, Option<StoppedThread>>,
}

impl Native {
    /// Python's stacks of all threads. Those in `ran` are stopped meanwhile, and those of `all` that run; `stack` returns
    /// their stacks. Threads that wait are not stopped: this may end their wait, or take long.
    pub fn read(
        &mut self,
        spy: &mut PythonSpy,
        tasks: &Tasks,
        ran: &HashSet<i32>,
        all: Option<&HashMap<i32, Task>>,
    ) -> Option<Vec<StackTrace>> {
        let process = self.processes.entry(spy.pid).or_insert_with(|| Process {
            modules: Modules::default(),
            next: Instant::now(),
            threads: HashMap::new(),
        });
        process.modules.refresh(tasks);
        let running = all.into_iter().flatten().filter(|(_, task)| task.running);
        let threads = ran.iter().chain(running.map(|(thread, _)| thread));
        let threads: HashSet<i32> = threads.copied().collect();
        let own: HashMap<i32, i32> = threads
            .iter()
            .filter_map(|&thread| Some((tasks.number_of(thread)?, thread)))
            .take(MOST_THREADS)
            .collect();
        process.threads = threads.into_iter().map(|thread| (thread, None)).collect();
        let now = Instant::now();
        if own.is_empty() || now < process.next {
            return spy.get_stack_traces().ok();
        }
        let numbers: Vec<i32> = own.keys().copied().collect();
        let modules = &process.modules;
        let size = |pointer| modules.stack_size(pointer);
        let read = || spy.get_stack_traces().ok();
        let stop = while_stopped(&numbers, tasks.memory(), size, read)?;
        process.next = next_stop(process.next, now, stop.time);
        let refused = stop.refused.map(|error| error as i32);
        self.stops.refused = refused.or(self.stops.refused);
        if !stop.time.is_zero() {
            self.stops.stops += 1;
            self.stops.stopped += stop.time;
        }
        for thread in stop.threads {
            let number = own[&thread.thread];
            process.threads.insert(number, Some(thread));
        }
        stop.result
    }

    /// The frames of a thread's stack, the outermost first. None: it was not to be stopped, or its frames do not fit.
    pub fn stack(
        &mut self,
        pid: i32,
        tasks: &Tasks,
        thread: i32,
        python: &[Frame],
        files: &mut Files,
    ) -> Option<Vec<String>> {
        let process = self.processes.get_mut(&pid)?;
        let stopped = process.threads.remove(&thread)?;
        let merged = || {
            let stopped = stopped?;
            let frames = process.modules.walk(&stopped, tasks, files);
            let python = python.iter().map(|python| PythonFrame {
                name: frame(python),
                is_entry: python.is_entry || python.is_shim_entry,
            });
            let is_cut = stopped.stack.len() == MOST_STACK || frames.len() == MOST_FRAMES;
            merge(&frames, python.collect(), is_cut)
        };
        let merged = merged();
        self.stops.wanted += 1;
        self.stops.missing += u64::from(merged.is_none());
        merged
    }

    /// A process that has ended.
    pub fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    pub fn stops(&self) -> Stops {
        self.stops.clone()
    }
}

impl Stops {
    pub fn notes(&self) -> Vec<Note> {
        let seconds = self.stopped.as_secs_f64();
        let stops = format!(
            "the process was stopped {} times, for {seconds:.2} s altogether",
            self.stops
        );
        let stops = Note::plain(stops)
            .coded(Code::StoppedForSamples)
            .with("times", self.stops)
            .with("seconds", seconds);
        let missing = share(self.missing, self.wanted).map(|percent| {
            let refused = self.refused.filter(|_| self.stops == 0);
            let why = match refused.map(Errno::from_raw) {
                Some(error) => format!("threads could not be stopped ({error}); another program may trace the process"),
                None => "native and Python frames did not fit, or stops would have taken more than a fifth of the time".to_owned(),
            };
            Note::plain(format!("{percent} of the stacks have no native frames: {why}"))
                .coded(Code::NoNativeFrames)
                .with("share", fraction(self.missing, self.wanted))
        });
        let stops = (self.stops > 0).then_some(stops);
        stops.into_iter().chain(missing).collect()
    }
}

fn next_stop(next: Instant, now: Instant, stopped: Duration) -> Instant {
    next.max(now - SAVED) + TIME_FOR_STOPS * stopped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_stopped_for_a_fifth_of_the_time() {
        let (begin, stop) = (Instant::now(), Duration::from_millis(10));
        let (mut now, mut next, mut stopped) = (begin, begin, Duration::ZERO);
        while now < begin + Duration::from_secs(10) {
            if now >= next {
                next = next_stop(next, now, stop);
                (now, stopped) = (now + stop, stopped + stop);
            }
            now += Duration::from_millis(1);
        }
        let (least, most) = (Duration::from_millis(1900), Duration::from_millis(2050));
        assert!((least..most).contains(&stopped), "{stopped:?}");
    }
}
