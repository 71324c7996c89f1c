//! Native frames in the stacks of a Python process, which is stopped for each sample.

mod merge;
mod modules;
mod registers;
mod stop;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use py_spy::{Frame, PythonSpy, StackTrace};

use self::merge::{merge, PythonFrame};
use self::modules::{Files, Modules, MOST_STACK};
use self::stop::{while_stopped, Copy};
use super::names::frame;
use super::tasks::{Task, Tasks};
use crate::engine::api::{fraction, share, Note};
use crate::wire::outcome::Code;

pub struct Native {
    files: Files,
    processes: HashMap<i32, Process>,
    /// How often a process was stopped, and for how long altogether.
    stops: u64,
    stopped: Duration,
    /// How many stacks were to have native frames, and how many have none.
    wanted: u64,
    missing: u64,
}

struct Process {
    modules: Modules,
    /// Its Python threads, as far as they were seen.
    python: HashSet<i32>,
    /// The threads of this sample, by the process's own numbers.
    copies: HashMap<i32, Option<Copy>>,
}

impl Native {
    /// `memory`: the bytes that symbols may take.
    pub fn new(memory: usize) -> Self {
        Self {
            files: Files::new(memory),
            processes: HashMap::new(),
            stops: 0,
            stopped: Duration::ZERO,
            wanted: 0,
            missing: 0,
        }
    }

    /// Python's stacks of all threads, and for `stack` those of the threads that ran, with `all` also of every Python
    /// thread. These are stopped meanwhile.
    pub fn read(
        &mut self,
        spy: &mut PythonSpy,
        tasks: &Tasks,
        ran: &HashSet<i32>,
        all: Option<&HashMap<i32, Task>>,
    ) -> Option<Vec<StackTrace>> {
        let process = self.processes.entry(spy.pid).or_insert_with(|| Process {
            modules: Modules::new(),
            python: HashSet::new(),
            copies: HashMap::new(),
        });
        process.modules.refresh(tasks);
        if let Some(all) = all {
            process.python.retain(|thread| all.contains_key(thread));
        }
        let python = process.python.iter().filter(|_| all.is_some());
        let threads: HashSet<i32> = ran.iter().chain(python).copied().collect();
        let own: HashMap<i32, i32> = threads
            .iter()
            .filter_map(|&thread| Some((tasks.number_of(thread)?, thread)))
            .collect();
        process.copies = threads.into_iter().map(|thread| (thread, None)).collect();
        let numbers: Vec<i32> = own.keys().copied().collect();
        let modules = &process.modules;
        let size = |pointer| modules.stack_size(pointer);
        let read = || spy.get_stack_traces().ok();
        let (copies, stopped, traces) = while_stopped(&numbers, tasks.memory(), size, read)?;
        if !copies.is_empty() {
            self.stops += 1;
            self.stopped += stopped;
        }
        for copy in copies {
            process.copies.insert(own[&copy.thread], Some(copy));
        }
        traces
    }

    /// The frames of a thread's stack, the outermost first. None: it was not to be stopped, or its frames do not fit.
    pub fn stack(
        &mut self,
        pid: i32,
        tasks: &Tasks,
        thread: i32,
        python: &[Frame],
    ) -> Option<Vec<String>> {
        let process = self.processes.get_mut(&pid)?;
        if !python.is_empty() {
            process.python.insert(thread);
        }
        let copy = process.copies.remove(&thread)?;
        let merged = || {
            let copy = copy?;
            let frames = process.modules.walk(&copy, tasks, &mut self.files);
            let python = python.iter().map(|python| PythonFrame {
                name: frame(python),
                is_entry: python.is_entry || python.is_shim_entry,
            });
            merge(&frames, python.collect(), copy.stack.len() == MOST_STACK)
        };
        let merged = merged();
        self.wanted += 1;
        self.missing += u64::from(merged.is_none());
        merged
    }

    pub fn notes(&self) -> Vec<Note> {
        let each = self.stopped.as_secs_f64() / self.stops.max(1) as f64;
        let (times, milliseconds) = (self.stops, each * 1e3);
        let stops = format!("the process was stopped {times} times, {milliseconds:.1} ms each");
        let stops = Note::plain(stops).coded(Code::StoppedForSamples);
        let missing = share(self.missing, self.wanted).map(|percent| {
            let text =
                format!("{percent} of the stacks have no native frames: these could not be read, or did not fit Python's");
            let share = fraction(self.missing, self.wanted);
            Note::plain(text)
                .coded(Code::NoNativeFrames)
                .with("share", share)
        });
        let stops = stops
            .with("times", times)
            .with("seconds", self.stopped.as_secs_f64());
        [Some(stops), missing].into_iter().flatten().collect()
    }
}
