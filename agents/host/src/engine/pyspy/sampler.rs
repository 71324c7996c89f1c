//! Takes samples of one Python process and adds them to profiles at once. Runs in the agent's child.

use std::collections::{HashMap, HashSet};
use std::io;
use std::mem::{replace, take};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use flamegraph::{NameRules, Profile, Row, TimesBuilder, ValueType};
use py_spy::{Frame, PythonSpy, StackTrace};

use super::forks::Forks;
use super::frame;
use super::messages::{Command, Order, Totals};
use super::native::{Files, Native};
use super::spark_task::{SparkTask, TaskSlices};
use super::tasks::{Task, Tasks};
use crate::os::lease::since_1970;
use crate::resources::pace::Pace;

/// The frame of a running thread that has no Python frames, such as one of NumPy's or Arrow's own.
const NATIVE: &str = "native code";
/// The frame below the thread's in wall-clock samples: what the thread did, by the kernel's and Python's account.
const HOLDS_GIL: &str = "[holds the GIL]";
const RUNS_WITHOUT: &str = "[runs without the GIL]";
const WAITING: &str = "[waiting]";
/// The names of the coordinator's own threads, in a notebook, begin so.
const COORDINATOR: &str = "hprofiler-";
/// Names of threads whose group is remembered; more are forgotten, and worked out anew.
const MOST_REMEMBERED: usize = 1 << 12;

/// How often the agent learns that samples are taken.
const SIGN: Duration = Duration::from_secs(1);
/// A thread that was seen running too seldom for its CPU time is sampled so often more when it is seen.
const MOST_BEHIND: u64 = 4;

/// What is recorded: an event, and the time between two samples of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub name: &'static str,
    pub every: Duration,
}

/// What a recording has taken.
struct Samples {
    events: Vec<Sampled>,
    /// The begin of this part of it, and the same in microseconds since 1970.
    begin: Instant,
    start: i64,
    /// The most rows of times of an event.
    rows: usize,
    /// How often stacks were read, and how often they could not be.
    reads: u64,
    errors: u64,
    process_ended: bool,
    full: bool,
    /// The CPU time of processes that it forked, which are sampled too, and have ended.
    forked_ticks: u64,
    /// If native frames are wanted.
    native: Option<Native>,
    slices: TaskSlices,
}

/// A process that is sampled.
pub struct Member {
    pub spy: PythonSpy,
    pub tasks: Tasks,
    spark_task: SparkTask,
    /// The nanoseconds of each thread's CPU time for which there are samples.
    sampled: HashMap<i32, u64>,
}

struct Sampled {
    event: Event,
    next: Instant,
    /// How often a sample was due, and how often stacks were read for it.
    rounds: u64,
    reads: u64,
    taken: u64,
    profile: Profile,
    times: Option<TimesBuilder>,
}

/// A recording.
pub struct Work {
    samples: Samples,
    /// The process that was chosen.
    own: i32,
    /// The CPU time of processes that it forked that was returned.
    forked_given: u64,
    /// That process, and those that it forked.
    members: Vec<Member>,
    forks: Forks,
    /// The root frames of threads by their names.
    groups: HashMap<String, String>,
    cells: usize,
    files: Files,
    pace: Pace,
}

impl Work {
    pub fn of(order: &Order, member: Member, forks: Forks, pace: Pace) -> Self {
        Self {
            samples: Samples::begin(order),
            own: order.pid,
            forked_given: 0,
            members: vec![member],
            forks,
            groups: HashMap::new(),
            cells: order.cells,
            files: Files::new(order.symbols),
            pace,
        }
    }

    /// What its processes did before does not count.
    pub fn begin(&mut self) {
        self.forks.begin();
    }

    /// Sample until there is a command, or until `end`. `sign` is called about once a second. True: a part is wanted.
    pub fn run(
        &mut self,
        commands: &Receiver<Command>,
        end: Instant,
        mut sign: impl FnMut() -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut signed = Instant::now();
        loop {
            let next = self.samples.events.iter().map(|event| event.next).min();
            let next = next.unwrap_or(end).min(end).min(signed + SIGN);
            let left = next.saturating_duration_since(Instant::now());
            match commands.recv_timeout(left) {
                Ok(Command::Part) => return Ok(true),
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                _ => return Ok(false),
            }
            if signed.elapsed() >= SIGN {
                signed = Instant::now();
                sign()?;
            }
            self.pace.rest();
            let due = self.samples.due(Instant::now());
            if !self.sample_all(&due) {
                self.samples.process_ended = true;
                return Ok(false);
            }
            let events = self.samples.events.iter();
            let nodes = events.map(|event| event.profile.node_count());
            if nodes.sum::<usize>() * 2 > self.cells {
                self.samples.full = true;
                return Ok(false);
            }
        }
    }

    /// The CPU time of processes that it forked, since the last call.
    pub fn forked_ticks(&mut self) -> u64 {
        let forked = self.members.iter().filter(|it| it.spy.pid != self.own);
        let live = forked.map(|it| it.tasks.cpu_ticks).sum::<u64>();
        let all = self.samples.forked_ticks + live;
        let given = replace(&mut self.forked_given, all);
        all.saturating_sub(given)
    }

    pub fn totals(&mut self) -> Totals {
        let forked_ticks = self.forked_ticks();
        let samples = &self.samples;
        Totals {
            process_ended: samples.process_ended,
            full: samples.full,
            reads: samples.reads,
            errors: samples.errors,
            forked_ticks,
            stops: samples.native.as_ref().map(Native::stops),
        }
    }

    /// What a sample stands for, and the profile, of each event: of what was sampled since the last call.
    pub fn profiles(&mut self) -> flamegraph::Result<Vec<(u64, Profile)>> {
        self.samples.take()
    }

    /// False: the process that was chosen has ended.
    fn sample_all(&mut self, due: &[usize]) -> bool {
        let appeared = self.forks.appeared().into_iter();
        let appeared = appeared.map(|(spy, tasks)| Member::of(spy, tasks));
        self.members.extend(appeared);
        let mut members = take(&mut self.members);
        members.retain_mut(|member| {
            let tasks = member.tasks.read();
            match &tasks {
                Some(tasks) => self.sample(due, member, tasks),
                None if member.spy.pid == self.own => {}
                None => {
                    self.samples.forked_ticks += member.tasks.cpu_ticks;
                    if let Some(native) = &mut self.samples.native {
                        native.forget(member.spy.pid);
                    }
                }
            }
            tasks.is_some()
        });
        self.members = members;
        self.members
            .first()
            .is_some_and(|member| member.spy.pid == self.own)
    }

    fn sample(&mut self, due: &[usize], member: &mut Member, tasks: &HashMap<i32, Task>) {
        let mut due_events = due.iter().map(|&event| &self.samples.events[event]);
        let of_all = due_events.clone().any(Sampled::is_wall);
        let of_cpu = due_events.find(|event| !event.is_wall());
        let ran = match of_cpu {
            Some(event) => member.those_that_ran(tasks, event.event.every.as_nanos() as u64),
            None => HashSet::new(),
        };
        // An idle process is not read for its CPU time.
        if !of_all && ran.is_empty() {
            return;
        }
        let now = Instant::now();
        self.samples.reads += 1;
        let traces = match &mut self.samples.native {
            Some(native) => {
                let all = of_all.then_some(tasks);
                native.read(&mut member.spy, &member.tasks, &ran, all)
            }
            None => member.spy.get_stack_traces().ok(),
        };
        let Some(traces) = traces else {
            self.samples.errors += 1;
            return;
        };
        if member.spy.pid == self.own {
            for &event in due {
                self.samples.events[event].reads += 1;
            }
        }
        let spark_task = member.spark_task.of_stacks(&traces, member.tasks.memory());
        let slice = spark_task.map_or(0, |task| self.samples.slices.number(task));
        let mut unseen: HashMap<i32, &Task> =
            tasks.iter().map(|(&tid, task)| (tid, task)).collect();
        for trace in traces {
            let tid = member.thread_of(&trace, tasks);
            let tid = tid.filter(|tid| tasks.contains_key(tid));
            let task = tid.and_then(|tid| unseen.remove(&tid));
            let runs = tid.map_or(trace.owns_gil, |tid| ran.contains(&tid));
            let name = trace.thread_name.as_deref();
            let name = name
                .or(task.map(|task| &*task.name))
                .unwrap_or("unknown thread");
            let running = task.map_or(trace.active, |task| task.running);
            let doing = match (trace.owns_gil, running) {
                (true, _) => HOLDS_GIL,
                (false, true) => RUNS_WITHOUT,
                (false, false) => WAITING,
            };
            let of_coordinator = name.starts_with(COORDINATOR);
            let mut stack = vec![self.group(name), doing.to_owned()];
            stack.extend(self.frames(member, tid, &trace.frames));
            // In wall-clock time a task's samples are those of the JVM's thread, which waits for its worker.
            if !of_coordinator {
                self.samples.add(due, "wall", now, &stack, 0);
            }
            if runs {
                stack.remove(1);
                self.samples.add(due, "cpu", now, &stack, slice);
            }
        }
        let unseen = unseen.into_iter().filter(|(tid, _)| ran.contains(tid));
        for (tid, task) in unseen {
            let mut stack = vec![self.group(&task.name)];
            stack.extend(self.frames(member, Some(tid), &[]));
            self.samples.add(due, "cpu", now, &stack, slice);
        }
    }

    /// The frames of a thread's stack, the outermost first.
    fn frames(&mut self, member: &Member, tid: Option<i32>, python: &[Frame]) -> Vec<String> {
        let (native, files) = (&mut self.samples.native, &mut self.files);
        let native = native.as_mut().zip(tid);
        let native = native.and_then(|(native, tid)| {
            native.stack(member.spy.pid, &member.tasks, tid, python, files)
        });
        match native {
            Some(frames) => frames,
            None if python.is_empty() => vec![NATIVE.to_owned()],
            None => python.iter().rev().map(frame).collect(),
        }
    }

    fn group(&mut self, name: &str) -> String {
        if self.groups.len() >= MOST_REMEMBERED {
            self.groups.clear();
        }
        let group = self.groups.entry(name.to_owned());
        let of_name = || format!("[{}]", NameRules::builtin().thread_group(name));
        group.or_insert_with(of_name).clone()
    }
}

impl Member {
    pub fn of(spy: PythonSpy, tasks: Tasks) -> Self {
        Self {
            spark_task: SparkTask::of(&spy),
            spy,
            tasks,
            sampled: HashMap::new(),
        }
    }

    /// The threads to sample: those that run now and have used a CPU for as long as a sample stands for. A thread that
    /// waits for a processor runs too by its state, but uses none.
    fn those_that_ran(&mut self, tasks: &HashMap<i32, Task>, every: u64) -> HashSet<i32> {
        if self.sampled.len() > MOST_REMEMBERED {
            self.sampled.clear();
        }
        let running = tasks.iter().filter(|(_, task)| task.running);
        let due = running.filter(|(&tid, task)| {
            let Some(ran) = task.ran else { return true };
            let sampled = self.sampled.entry(tid).or_insert(ran.saturating_sub(every));
            let behind = ran.saturating_sub(*sampled);
            if behind >= every {
                *sampled += every.max(behind.saturating_sub(MOST_BEHIND * every));
            }
            // A new thread may have the number of one that has ended.
            *sampled = ran.min(*sampled);
            behind >= every
        });
        due.map(|(&tid, _)| tid).collect()
    }

    /// The process's own number of a Python thread. None: it is not known.
    pub fn thread_of(&mut self, trace: &StackTrace, tasks: &HashMap<i32, Task>) -> Option<i32> {
        match trace.os_thread_id {
            Some(number) => i32::try_from(number).ok(),
            None => self.tasks.described_at(trace.thread_id, tasks),
        }
    }
}

impl Sampled {
    fn is_wall(&self) -> bool {
        self.event.name == "wall"
    }

    /// Set the time of the next sample. Gaps vary between half and one and a half of the interval, so that samples do
    /// not keep step with a program that works at regular times.
    fn schedule(&mut self, now: Instant) {
        const GOLDEN: f64 = 0.618_033_988_749_895;
        let varied = 0.5 + (self.rounds as f64 * GOLDEN).fract();
        self.rounds += 1;
        self.next = now.max(self.next + self.event.every.mul_f64(varied));
    }
}

impl Samples {
    fn begin(order: &Order) -> Self {
        let begin = Instant::now();
        let rows = order.rows / order.events.len().max(1);
        let of_event = |event: Event| Sampled {
            next: begin,
            rounds: 0,
            reads: 0,
            taken: 0,
            profile: Profile::new(value_types(event.name)),
            times: order.times.then(|| TimesBuilder::new(rows, 1)),
            event,
        };
        Self {
            events: order.events().into_iter().map(of_event).collect(),
            begin,
            start: since_1970().as_micros() as i64,
            rows,
            reads: 0,
            errors: 0,
            process_ended: false,
            full: false,
            forked_ticks: 0,
            native: order.native.then(Native::default),
            slices: TaskSlices::default(),
        }
    }

    /// The events to be sampled now, by index.
    fn due(&mut self, now: Instant) -> Vec<usize> {
        let mut due = Vec::new();
        for (index, event) in self.events.iter_mut().enumerate() {
            if event.next <= now {
                event.schedule(now);
                due.push(index);
            }
        }
        due
    }

    /// Add a sample to the event of this name, if it is due.
    fn add(&mut self, due: &[usize], name: &str, now: Instant, stack: &[String], slice: u16) {
        let since = now.duration_since(self.begin);
        let is_it = |event: &&usize| self.events[**event].event.name == name;
        let Some(&event) = due.iter().find(is_it) else {
            return;
        };
        let event = &mut self.events[event];
        let amounts = [1, event.event.every.as_nanos() as i64];
        // More names or larger sums than a profile can have do not fit into the agent's memory either.
        let Ok(node) = event.profile.add_stack(stack, &amounts) else {
            return;
        };
        event.taken += 1;
        if let Some(times) = &mut event.times {
            let row = Row {
                node,
                samples: 1,
                slice,
                ..Row::default()
            };
            times.add(0, since.as_micros() as i64, row);
        }
    }

    fn take(&mut self) -> flamegraph::Result<Vec<(u64, Profile)>> {
        let (seconds, start, rows) = (self.begin.elapsed().as_secs_f64(), self.start, self.rows);
        let slices = take(&mut self.slices).all;
        self.begin = Instant::now();
        self.start = since_1970().as_micros() as i64;
        let profile = |sampled: &mut Sampled| {
            let (taken, reads) = (take(&mut sampled.taken), take(&mut sampled.reads));
            let empty = Profile::new(value_types(sampled.event.name));
            let mut profile = replace(&mut sampled.profile, empty);
            let mut interval = sampled.event.every.as_nanos() as u64;
            if sampled.is_wall() && taken > 0 {
                // A sample stands for the time between two reads, which a busy agent makes longer.
                interval = (seconds * 1e9 / reads as f64) as u64;
                let total = taken.saturating_mul(interval) as i64;
                profile = profile.with_total(1, total)?;
            }
            let times = sampled.times.as_mut();
            profile.set_times(times.map(|times| {
                let mut times = replace(times, TimesBuilder::new(rows, 1));
                times.times(0, start, slices.clone(), Some)
            }));
            Ok((interval, profile))
        };
        self.events.iter_mut().map(profile).collect()
    }
}

/// The values of an event's profile.
pub fn value_types(event: &str) -> Vec<ValueType> {
    let (count, amount) = match event {
        "wall" => ("wall_samples", "wall"),
        _ => ("samples", "cpu"),
    };
    let values = [(count, "count"), (amount, "nanoseconds")];
    values.map(|(name, unit)| ValueType::new(name, unit)).into()
}
