//! What the host's kernel, its JVMs and its control groups publish, read once a second during a recording.
//!
//! A thread of its own reads, since such a read may hang. What it has so far can be taken at any time.

pub mod cgroup;
pub mod counters;
mod host;
mod jvm;
mod mounts;
mod nodes;
mod process;
mod python;
mod run_queue;
mod table;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::jvm::hsperf;
use crate::os::identity::Namespaces;
use crate::os::lease::since_1970;
use crate::os::proc::target::Target;
use crate::os::threads::STACK;
use crate::os::worker_pool;
use crate::wire::events::Metrics;
use crate::wire::outcome::Failure;
use crate::wire::requests::Watched;

use cgroup::Group;
use counters::Counters;
use host::Host;
use mounts::Mounts;
use nodes::Nodes;
use process::Process;
use table::{Reading, Table};

const EVERY: Duration = Duration::from_secs(1);
const MOST_PROCESSES: usize = 64;
/// How long opening the files of all JVMs may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// A process to read; `published` is the file of a JVM's performance data.
pub struct Chosen {
    pub pid: i32,
    pub start_time: u64,
    pub published: Option<File>,
}

/// The readings of a recording, which go on until the end of its time or of this value.
pub struct MetricsLog {
    read: Arc<Mutex<Read>>,
    /// Takes processes that are read, too, from now on. The thread ends when it is dropped.
    more: Option<Sender<Chosen>>,
}

/// What was read so far.
struct Read {
    table: Table,
    facts: BTreeMap<&'static str, u64>,
    /// Which counters are missing, and why.
    notes: Vec<Failure>,
    /// Of the last reading.
    last_notes: Vec<Failure>,
}

impl MetricsLog {
    /// Begin to read, and to count. The host's clock is so many microseconds ahead. Nothing is read if there is no
    /// thread for it.
    pub fn begin(
        processes: Vec<Chosen>,
        counters: Vec<String>,
        duration: Duration,
        clock_offset: i64,
    ) -> Self {
        Self::begin_with(|| processes, counters, duration, clock_offset, true)
    }

    /// The same for processes that are not recorded, until the end of this value and by the host's clock.
    pub fn watch(mut processes: Vec<Watched>, counters: Vec<String>) -> Self {
        processes.truncate(MOST_PROCESSES);
        Self::begin_with(|| chosen(processes), counters, Duration::MAX, 0, false)
    }

    fn begin_with(
        processes: impl FnOnce() -> Vec<Chosen> + Send + 'static,
        counters: Vec<String>,
        duration: Duration,
        clock_offset: i64,
        with_threads: bool,
    ) -> Self {
        let read = Arc::new(Mutex::new(Read {
            table: Table::new(EVERY),
            facts: host::facts(),
            notes: Vec::new(),
            last_notes: Vec::new(),
        }));
        let (more, new) = channel();
        let shared = read.clone();
        let work = move || {
            let begin = Instant::now();
            let zero = since_1970().as_micros() as i64 - clock_offset;
            let mut host = Host::open();
            let mut mounts = Mounts::open();
            let mut nodes = Nodes::open();
            let chosen = processes().into_iter().take(MOST_PROCESSES);
            let mut processes: Vec<Process> = chosen.filter_map(Process::open).collect();
            let mut groups = cgroup::of(processes.iter());
            let mut counters = (!counters.is_empty()).then(|| {
                let mut chosen = counters::Chosen::of_this_machine(&counters);
                let notes = std::mem::take(&mut chosen.notes);
                let counters = Counters::open(chosen);
                let mut read = shared.lock().unwrap_or_else(PoisonError::into_inner);
                read.facts.extend(&counters.facts);
                read.notes = notes;
                counters
            });
            let mut threads = with_threads.then(Threads::default);
            loop {
                // Whoever takes the table never waits for a read.
                let time = begin.elapsed();
                let mut reading = Vec::new();
                host.read(&mut reading);
                mounts.read(&mut reading);
                nodes.read(&mut reading);
                processes.iter_mut().for_each(|one| one.read(&mut reading));
                groups.iter_mut().for_each(|one| one.read(&mut reading));
                if let Some(threads) = &mut threads {
                    threads.read(&mut processes, time >= duration, &mut reading);
                }
                if let Some(counters) = &mut counters {
                    counters.read(&processes, &mut reading);
                }
                let every = {
                    let mut read = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    read.table.add(zero + time.as_micros() as i64, reading);
                    read.last_notes = counters.as_ref().map_or_else(Vec::new, Counters::notes);
                    read.table.every
                };
                if time >= duration {
                    return;
                }
                // A late reading is not caught up.
                let next = (time + every).min(duration.max(time + EVERY / 2));
                loop {
                    match new.recv_timeout(next.saturating_sub(begin.elapsed())) {
                        Ok(chosen) => join(chosen, &mut processes, &mut groups),
                        Err(RecvTimeoutError::Timeout) => break,
                        Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("metrics".to_owned());
        let started = thread.stack_size(STACK).spawn(work);
        Self {
            read,
            more: started.ok().map(|_| more),
        }
    }

    /// Read no more.
    pub fn stop(&mut self) {
        self.more.take();
    }

    /// Read this one too from now on, unless there are too many.
    pub fn add(&self, process: Chosen) {
        if let Some(more) = &self.more {
            let _ = more.send(process);
        }
    }

    /// The readings since the last call, and the one before them.
    pub fn take(&self) -> Metrics {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let message = read.table.message(read.facts.clone());
        read.table.keep_last();
        message
    }

    /// The readings since the last call, while the recording goes on.
    pub fn part(&self) -> Metrics {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let facts = read.facts.clone();
        read.table.part(facts)
    }

    /// All readings so far, and what could not be counted. None: there are none.
    pub fn finish(mut self) -> (Option<Metrics>, Vec<Failure>) {
        self.stop();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let metrics = (!read.table.is_empty()).then(|| read.table.message(read.facts.clone()));
        let notes = std::mem::take(&mut read.notes);
        let last = std::mem::take(&mut read.last_notes);
        (metrics, notes.into_iter().chain(last).collect())
    }
}

/// A process takes the place of one that has ended.
fn join(chosen: Chosen, processes: &mut Vec<Process>, groups: &mut Vec<Group>) {
    processes.retain(|process| process.target.stat().is_some());
    if processes.len() >= MOST_PROCESSES {
        return;
    }
    let Some(process) = Process::open(chosen) else {
        return;
    };
    let new = cgroup::of(std::iter::once(&process));
    groups.extend(
        new.into_iter()
            .filter(|group| !groups.contains(group))
            .collect::<Vec<_>>(),
    );
    processes.push(process);
}

/// If a process's files hang, what its JVM publishes is left out.
fn chosen(processes: Vec<Watched>) -> Vec<Chosen> {
    let found = worker_pool::run_all(processes.clone(), MOST_PROCESSES, PATIENCE, published);
    let found = processes.into_iter().zip(found);
    found
        .map(|(Watched { pid, start_time }, published)| Chosen {
            pid,
            start_time,
            published: published.ok().flatten(),
        })
        .collect()
}

/// The file of a JVM's performance data, opened as the JVM's user. None: it publishes nothing, or is not a JVM. The
/// calling thread stays in the process's namespaces.
fn published(process: Watched) -> Option<File> {
    let target = Target::open(process.pid, process.start_time).ok()?;
    let data = target.mapped(|mapping| hsperf::is_data(&mapping.file.path))?;
    if data.is_empty() {
        return None;
    }
    let namespaces = Namespaces::enter(&target).ok()?;
    hsperf::open(&namespaces.named, &data).map(|(file, _)| file)
}

/// Reads the threads of as many processes as a second allows. One with more threads uses up the next seconds, too.
#[derive(Default)]
struct Threads {
    /// Whose threads are read next.
    next: usize,
    /// Threads beyond what the time so far allowed.
    debt: usize,
    begun: bool,
}

impl Threads {
    /// Of all processes at the first and at the `last` reading.
    fn read(&mut self, processes: &mut [Process], last: bool, to: &mut Vec<Reading>) {
        let all = last || !std::mem::replace(&mut self.begun, true);
        self.debt = self.debt.saturating_sub(run_queue::A_SECOND);
        for _ in 0..processes.len() {
            if self.debt >= run_queue::A_SECOND && !all {
                return;
            }
            self.debt += processes[self.next % processes.len()].read_threads(to);
            self.next = (self.next + 1) % processes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::proc::stat;

    pub fn own() -> Chosen {
        Chosen {
            pid: std::process::id() as i32,
            start_time: stat::own().unwrap().start_time,
            published: None,
        }
    }

    #[test]
    fn a_recording_is_read_from_its_beginning_to_its_end() {
        let now = || since_1970().as_micros() as i64;
        let (begun, length, ahead) = (now(), 1_200_000, 5_000_000);
        let duration = Duration::from_micros(length as u64);
        let log = MetricsLog::begin(vec![own()], Vec::new(), duration, ahead);
        let until = Instant::now() + Duration::from_secs(60);
        // The thread ends by itself, and lets go of the table.
        while Arc::strong_count(&log.read) > 1 {
            assert!(Instant::now() < until);
            thread::sleep(Duration::from_millis(5));
        }
        let metrics = log.finish().0.unwrap();
        // On a busy machine the last reading may be the first.
        assert!((1..=3).contains(&metrics.time.len()), "{:?}", metrics.time);
        let last = metrics.time.iter().sum::<i64>() + ahead;
        assert!(
            (begun + length..now() + 60_000_000).contains(&last),
            "{last}"
        );
        let id = std::process::id().to_string();
        let found = |of: &str, id: &str, name: &str| {
            let mut series = metrics.series.iter();
            series.any(|one| (one.of, &*one.id, &*one.name) == (of, id, name))
        };
        assert!(found("host", "", "user_ticks") && found("cpu", "0", "busy_ticks"));
        assert!(found("process", &id, "threads") && found("process", &id, "read_bytes"));
        assert!(metrics.facts["ticks_per_second"] > 0 && metrics.facts["memory_total"] > 0);
    }

    #[test]
    fn a_process_that_is_gone_is_left_out_and_a_stop_ends_the_readings() {
        let gone = Chosen {
            start_time: 1,
            ..own()
        };
        let mut log = MetricsLog::begin(vec![gone], Vec::new(), Duration::from_secs(3600), 0);
        let until = Instant::now() + Duration::from_secs(60);
        while log.read.lock().unwrap().table.is_empty() {
            assert!(Instant::now() < until);
            thread::sleep(Duration::from_millis(5));
        }
        log.stop();
        while Arc::strong_count(&log.read) > 1 {
            assert!(Instant::now() < until);
            thread::sleep(Duration::from_millis(5));
        }
        let metrics = log.finish().0.unwrap();
        assert!(metrics.series.iter().all(|one| one.of != "process"));
    }
}
