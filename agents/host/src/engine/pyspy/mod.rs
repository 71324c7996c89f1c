//! py-spy: reads the stacks of a CPython process from its memory, without stopping it. Nothing is loaded into it.
//!
//! py-spy was not written for processes that mean harm. So each process has a child of the agent (`child`), the same
//! program, that reads it with its user's rights. Here is the agent's side, which runs nothing of py-spy.

pub mod child;
pub mod dump;
mod files;
mod forks;
pub mod messages;
mod native;
mod python;
pub mod reader;
mod sampler;
pub mod spark_task;
mod tasks;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use flamegraph::{python_frame, Limits};
use py_spy::Frame;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;

use self::messages::{read_profiles, Command, Event, Head, Message, Order, Totals};
use self::python::no_python;
use self::reader::Reader;
use crate::discovery::find::PARENT;
use crate::engine::api::{
    fraction, share, Engine, EventProfile, Folded, Job, Note, Part, Prepared, Raw, Shared, Started,
    Stopped,
};
use crate::engine::perf::events::OF_ASYNC_PROFILER;
use crate::jvm::preflight::Findings;
use crate::os::lease::since_1970;
use crate::os::proc::stat;
use crate::os::proc::target::Target;
use crate::resources::children;
use crate::wire::outcome::{Code, Failure};
use crate::wire::sampling::Sampling;

/// The engine's name in a sampling.
pub const NAME: &str = "pyspy";
/// The source of all its samples.
const SOURCE: &str = "py-spy";
/// The highest frequency. Each sample reads the process's memory many times.
const MOST_HZ: u32 = 100;
const WALL: Duration = Duration::from_millis(10);
/// How long a child may search for the interpreter, and how long one sample may take.
const OPEN: Duration = Duration::from_secs(20);
const LAST: Duration = Duration::from_secs(10);
/// How long sending the profiles may take.
const SEND: Duration = Duration::from_secs(20);
/// If nobody stops a recording, it ends this long after the requested time.
const LEASE: Duration = Duration::from_secs(30);
/// The part of the agent's memory that one child may take, and the bounds of that in bytes.
const PART: u64 = 2;
const BOUNDS: (u64, u64) = (96 << 20, 256 << 20);
/// The parts of the agent's memory for symbols, and for profiles as they are sent.
const SYMBOLS: u64 = 8;
const SENT: u64 = 4;
/// The parts of a recording's largest call tree, and of its most rows, that a child may make.
const TREE: usize = 8;
const ROWS: usize = 4;
/// A process chooses the names of its functions; longer ones are cut.
const LONGEST_NAME: usize = 500;

/// Whether `auto` tries this engine.
pub fn suits(findings: &Findings) -> bool {
    python::is_program(&findings.loaded.paths())
}

pub fn prepare(job: &Job, target: Target, findings: &Findings) -> Result<Prepared, Failure> {
    let pid = target.pid;
    let memory = open_memory(&target)?;
    let python = python::look(&findings.loaded.paths()).ok_or_else(|| no_python(pid))?;
    python.refuse_unknown(pid)?;
    let (events, mut notes) = possible(&job.shared.sampling)?;
    if job.chosen.labels.contains_key(PARENT) {
        // Nobody asked for what JVMs alone can do of this process, too.
        notes.iter_mut().for_each(|note| note.degraded = false);
    }
    let source = |event: &Event| (event.name.to_owned(), SOURCE.to_owned());
    let sources = events.iter().map(source).collect();
    if job.shared.dry_run {
        return Ok(Prepared::DryRun(Ok(Started { sources, notes })));
    }
    refuse_two_users(&target)?;
    // The child opens it anew.
    drop(memory);
    let order = order(job, &target, &events);
    let mut reader = Reader::start(&order)?;
    if !matches!(reader.next(OPEN)?, Message::Ready) {
        return Err(reader.lost(&std::io::ErrorKind::InvalidData.into()));
    }
    Ok(Prepared::Ready(Box::new(PySpy {
        shared: job.shared.clone(),
        target,
        reader: RefCell::new(reader),
        order,
        events,
        sources,
        notes,
        totals: RefCell::new(None),
    })))
}

fn refuse_two_users(target: &Target) -> Result<(), Failure> {
    match target.status.one_user {
        true => Ok(()),
        false => Err(Failure::new(
            format!("process {} has the rights of two users", target.pid),
            "record it with --engine perf",
        )
        .coded(Code::NotPermitted)),
    }
}

fn order(job: &Job, target: &Target, events: &[Event]) -> Order {
    let shared = &job.shared;
    let limits = &shared.limits;
    let event = |event: &Event| (event.name.to_owned(), event.every.as_nanos() as u64);
    Order {
        recorded: shared.pids(),
        events: events.iter().map(event).collect(),
        duration: job.duration(),
        times: shared.sampling.timeline,
        native: shared.sampling.python_native,
        symbols: limits.memory_part(SYMBOLS) as usize,
        cells: limits.cells(events.len()) / TREE,
        rows: limits.rows() / ROWS,
        ..Order::of(target, limits.memory_part(PART))
    }
}

impl Order {
    /// To open a process with at most so many bytes of memory, and to record nothing of it.
    fn of(target: &Target, memory: u64) -> Self {
        let status = &target.status;
        Self {
            agent: std::process::id() as i32,
            agent_start: stat::own().map_or(0, |own| own.start_time),
            pid: target.pid,
            start_time: target.start_time,
            uid: status.uid,
            gid: status.gid,
            groups: status.groups.clone(),
            memory: memory.clamp(BOUNDS.0, BOUNDS.1),
            ..Self::default()
        }
    }
}

fn unreadable(pid: i32, error: &str) -> Failure {
    Failure::new(
        format!("cannot find Python's stacks in the memory of process {pid}: {error}"),
        "record it with --engine perf, which sees its native code",
    )
    .coded(Code::PythonUnreadable)
}

/// The kernel allows it to those who may also read the memory by other ways.
fn open_memory(target: &Target) -> Result<File, Failure> {
    let pid = target.pid;
    let opened = target.open_link("mem", OFlags::RDONLY).map(File::from);
    opened.map_err(|error| match error {
        Errno::NOENT | Errno::SRCH => {
            Failure::plain(format!("process {pid} has ended")).coded(Code::ProcessEnded)
        }
        error => Failure::new(
            format!("the agent may not read the memory of process {pid}: {error}"),
            "connect as root (--become sudo), or as the process's user where kernel.yama.ptrace_scope is 0",
        )
        .coded(Code::NotPermitted),
    })
}

/// The events that can be recorded, and notes on what is not as it was asked for.
fn possible(sampling: &Sampling) -> Result<(Vec<Event>, Vec<Note>), Failure> {
    let (mut events, mut refused) = (Vec::new(), Vec::new());
    let mut lowered = None;
    for name in &sampling.events {
        let (name, every) = match name.as_str() {
            "cpu" => {
                let frequency = sampling.frequency.min(MOST_HZ);
                lowered = (frequency < sampling.frequency).then_some(frequency);
                ("cpu", Duration::from_secs(1) / frequency)
            }
            "wall" => {
                let asked = sampling.wall_interval.map_or(WALL, Duration::from_nanos);
                if asked < WALL {
                    let reason = "10 ms is the shortest time between wall-clock samples of Python";
                    let failure = Failure::new(reason, "use a longer --wall-interval");
                    refused.push(failure.coded(Code::FrequencyLowered));
                }
                ("wall", asked.max(WALL))
            }
            other => {
                let reason = format!("py-spy cannot record {other}, only cpu and wall");
                let remedy = match OF_ASYNC_PROFILER.contains(&other) {
                    true => "leave it out for Python: it needs a JVM",
                    false => "record it with --engine perf",
                };
                let failure = Failure::new(reason, remedy);
                refused.push(failure.coded(Code::EventUnsupported));
                continue;
            }
        };
        events.push(Event { name, every });
    }
    if events.is_empty() {
        return Err(Failure::all(refused));
    }
    refused.extend(lowered.map(|frequency| {
        let reason = format!("{frequency} Hz is the most at which Python processes are sampled");
        Failure::new(reason, "use a lower frequency").coded(Code::FrequencyLowered)
    }));
    Ok((events, refused.into_iter().map(Note::of).collect()))
}

struct PySpy {
    shared: Arc<Shared>,
    target: Target,
    reader: RefCell<Reader>,
    order: Order,
    events: Vec<Event>,
    sources: BTreeMap<String, String>,
    notes: Vec<Note>,
    /// Once it is not sampled any more.
    totals: RefCell<Option<Totals>>,
}

impl PySpy {
    /// What the child says while it samples. Err: it is lost.
    fn look(&self) -> Result<(), Failure> {
        let mut totals = self.totals.borrow_mut();
        if totals.is_some() {
            return Ok(());
        }
        let mut reader = self.reader.borrow_mut();
        match reader.look()? {
            Some(Message::Over(over)) => *totals = Some(over),
            Some(_) => return Err(reader.lost(&std::io::ErrorKind::InvalidData.into())),
            None => {}
        }
        Ok(())
    }

    /// The profiles that follow a message. If they cannot be used, nothing more is read.
    fn read(&mut self, profiles: &[Head]) -> Result<Vec<EventProfile>, Failure> {
        let limits = Limits {
            pprof_bytes: self.shared.limits.memory_part(SENT),
            cells: self.order.cells.saturating_mul(2),
            rows: self.order.rows.saturating_mul(2),
            ..Limits::default()
        };
        let reader = self.reader.get_mut();
        let read = read_profiles(reader.bytes(SEND), profiles, &self.events, &limits);
        read.map_err(|wrong| {
            reader.lost(&std::io::ErrorKind::InvalidData.into());
            let reason = format!(
                "the profile of process {} cannot be used: {wrong}",
                self.target.pid
            );
            Failure::plain(reason).coded(Code::DamagedRecording)
        })
    }
}

impl Engine for PySpy {
    fn target(&self) -> &Target {
        &self.target
    }

    fn start(&mut self) -> Result<Started, Failure> {
        let cores = self.shared.limits.cores / children::count().max(1) as f64;
        self.reader.get_mut().command(&Command::Start(cores));
        Ok(Started {
            sources: std::mem::take(&mut self.sources),
            notes: std::mem::take(&mut self.notes),
        })
    }

    fn too_much(&self) -> Option<Failure> {
        if let Err(lost) = self.look() {
            return Some(lost);
        }
        let full = self.totals.borrow().as_ref().is_some_and(|it| it.full);
        let too_large = || self.shared.limits.too_large("its call tree is too large");
        let child = self.reader.borrow().number();
        full.then(too_large)
            .or_else(|| self.shared.limits.refuse_child(child).err())
    }

    fn part(&mut self) -> Result<Option<Part>, Failure> {
        self.look()?;
        if self.totals.get_mut().is_some() {
            return Ok(None);
        }
        let reader = self.reader.get_mut();
        reader.command(&Command::Part);
        let until = since_1970().as_micros() as i64;
        match reader.next(LAST)? {
            Message::Part {
                forked_ticks,
                profiles,
            } => Ok(Some(Part {
                folded: Folded {
                    profiles: self.read(&profiles)?,
                    notes: Vec::new(),
                },
                until,
                more_cpu_seconds: seconds(forked_ticks),
            })),
            Message::Over(over) => {
                *self.totals.get_mut() = Some(over);
                Ok(None)
            }
            _ => Err(reader.lost(&std::io::ErrorKind::InvalidData.into())),
        }
    }

    fn stop(&mut self) -> Result<Stopped, Failure> {
        self.look()?;
        let reader = self.reader.get_mut();
        let totals = self.totals.get_mut();
        reader.command(&Command::Stop);
        if totals.is_none() {
            match reader.next(LAST)? {
                Message::Over(over) => *totals = Some(over),
                _ => return Err(reader.lost(&std::io::ErrorKind::InvalidData.into())),
            }
        }
        let ended = totals.as_ref().is_some_and(|it| it.process_ended);
        Ok(match ended || self.target.stat().is_none() {
            true => Stopped::WithTheProcess,
            false => Stopped::OnRequest,
        })
    }

    fn more_cpu_seconds(&self) -> f64 {
        let totals = self.totals.borrow();
        seconds(totals.as_ref().map_or(0, |it| it.forked_ticks))
    }

    fn fold(&mut self, _stopped: Stopped) -> Result<Folded, Failure> {
        let totals = self.totals.take().ok_or_else(not_recorded)?;
        let lost = share(totals.errors, totals.reads).map(|percent| {
            Note::plain(format!(
                "{percent} of the stacks could not be read: Python changed them meanwhile"
            ))
            .coded(Code::SamplesLost)
            .with("share", fraction(totals.errors, totals.reads))
        });
        let native = totals.stops.as_ref().map(native::Stops::notes);
        let reader = self.reader.get_mut();
        let profiles = match reader.next(SEND)? {
            Message::Profiles { profiles } => self.read(&profiles)?,
            _ => return Err(reader.lost(&std::io::ErrorKind::InvalidData.into())),
        };
        Ok(Folded {
            profiles,
            notes: lost.into_iter().chain(native.unwrap_or_default()).collect(),
        })
    }

    fn raw(&mut self) -> Result<Raw, Failure> {
        Err(Failure::new(
            "Python's stacks are folded as they are read and not kept",
            "leave --keep-raw out",
        )
        .coded(Code::OptionIgnored))
    }

    fn leave(self: Box<Self>) -> Vec<String> {
        Vec::new()
    }
}

/// `function (file)`; Python 3.11 and later also names the function's class.
fn frame(frame: &Frame) -> String {
    let name = python_frame(&frame.name, &frame.filename);
    name.chars().take(LONGEST_NAME).collect()
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / clock_ticks_per_second() as f64
}

fn not_recorded() -> Failure {
    Failure::plain("nothing was recorded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_how_often() {
        let mut sampling = Sampling::of("cpu wall");
        sampling.frequency = 99;
        let (events, notes) = possible(&sampling).unwrap();
        let every: Vec<u128> = events.iter().map(|event| event.every.as_micros()).collect();
        assert_eq!((every, notes), (vec![10_101, 10_000], vec![]));
        sampling.frequency = 997;
        sampling.wall_interval = Some(50_000_000);
        let (events, notes) = possible(&sampling).unwrap();
        let every: Vec<u128> = events.iter().map(|event| event.every.as_millis()).collect();
        assert_eq!(
            (every, notes[0].code),
            (vec![10, 50], Code::FrequencyLowered)
        );
        let (events, notes) = possible(&Sampling::of("page-faults wall")).unwrap();
        assert_eq!((events.len(), notes[0].code), (1, Code::EventUnsupported));
        assert!(possible(&Sampling::of("alloc")).is_err());
        sampling.events = vec!["wall".to_owned()];
        sampling.wall_interval = Some(1_000_000);
        let (events, notes) = possible(&sampling).unwrap();
        assert_eq!(
            (events[0].every, notes[0].code),
            (WALL, Code::FrequencyLowered)
        );
    }
}
