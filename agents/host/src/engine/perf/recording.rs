//! A recording by perf: started, ended, and its stream read to the end.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

use super::beside::Beside;
use super::command::Running;
use super::events::{self, Event};
use super::heard::Heard;
use super::often::Often;
use super::record::{names, Command};
use super::words;
use crate::engine::api::{Note, Shared};
use crate::wire::outcome::{Code, Failure};

/// How long perf may take to open its events, until they count, and to end:
/// it goes from processor to processor, and where others have them all it was seen to wait 9 s for one. What it has not
/// written when it is killed is lost.
const OPEN: Duration = Duration::from_secs(18);
const COUNT: Duration = Duration::from_secs(22);
const END: Duration = Duration::from_secs(11);
/// How long its stream may take to be read to the end once it is cut, and perf to end where its stream has.
const LAST: Duration = Duration::from_secs(3);
/// How long one that does not say when its events count may take to tell of what is there already.
const SETTLE: Duration = Duration::from_secs(2);

/// A recording that is under way.
pub struct Recording {
    running: Running,
    read: Receiver<Result<(), String>>,
    /// While this is there its stream is read, or until it ends.
    cut: Option<UnixStream>,
    begin: Instant,
    /// Samples of a later time are left out, where it is known what perf takes for the time.
    end: Option<Arc<AtomicU64>>,
    /// Its events did not count yet when it began.
    late: bool,
    samples: Arc<AtomicU64>,
    often: Option<Often>,
}

impl Recording {
    /// Returns once perf records.
    pub fn start(
        command: &Command,
        events: &[Event],
        beside: &Beside,
        shared: Arc<Shared>,
    ) -> Result<Self, Failure> {
        let called = Instant::now();
        let left = |limit: Duration| limit.saturating_sub(called.elapsed());
        let (cut, until) = UnixStream::pair().map_err(|error| {
            let reason = format!("cannot create a socket for perf: {error}");
            Failure::new(reason, "raise the limit of open files (ulimit -n)")
                .coded(Code::TooManyFiles)
        })?;
        let (mut running, stream) = command.start(events)?;
        let (began, begin) = channel();
        let wanted = events::wanted(events, command.frequency, command.kernel);
        let samples = Arc::new(AtomicU64::new(0));
        let heard = Heard::new(stream, until, shared, began, samples.clone());
        let end = Arc::new(AtomicU64::new(u64::MAX));
        let by = end.clone();
        let read = beside.ask(move |companion| companion.record(heard, wanted, by));
        match begin.recv_timeout(left(OPEN)) {
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return Err(too_late()),
            Err(RecvTimeoutError::Disconnected) => {
                running.wait(LAST);
                let killed = running.killed();
                return Err(words::end(killed, &running.words(), &names(events)));
            }
        }
        // Older ones do not tell before there are samples, which an idle process has none of.
        let patience = match command.tells_that_events_count {
            true => left(COUNT),
            false => SETTLE,
        };
        let counts = begin.recv_timeout(patience);
        Ok(Self {
            running,
            read,
            cut: Some(cut),
            begin: Instant::now(),
            end: command.knows_its_clock().then_some(end),
            late: command.tells_that_events_count && counts == Err(RecvTimeoutError::Timeout),
            samples,
            often: Often::of(events, command.frequency),
        })
    }

    /// Why it should end before its time: there are too many samples.
    pub fn too_much(&self) -> Option<Failure> {
        let samples = self.samples.load(Ordering::Relaxed);
        let seconds = self.begin.elapsed().as_secs_f64();
        self.often.as_ref()?.too_many(samples, seconds)
    }

    /// End it, and have its stream read to the end. What is to be said of that; `lives`: whether the process does.
    pub fn stop(mut self, lives: bool, beside: &Beside) -> Result<Vec<Note>, Failure> {
        if let Some(end) = &self.end {
            end.store(monotonic(), Ordering::Relaxed);
        }
        let mut notes = Vec::new();
        if self.late {
            notes.push(Note::degraded("perf started counting late").coded(Code::PerfLate));
        }
        let early = self.read.try_recv().ok();
        self.running.interrupt();
        let result = match &early {
            Some(result) => result.clone(),
            None => self.read_to_the_end(beside)?,
        };
        let ended = self.running.wait(LAST);
        let killed = self.running.killed();
        if killed.is_some() || early.is_some() && lives {
            let words = self.running.words();
            let end = words::end(killed, &words, "the process to the end");
            notes.push(Note::of(end));
        } else if !ended {
            notes.push(Note::degraded("perf did not end and was killed").coded(Code::PerfTimeout));
        }
        let damaged = result.err();
        notes.extend(damaged.map(|error| {
            Note::degraded(format!("perf's stream is damaged: {error}"))
                .coded(Code::DamagedRecording)
        }));
        Ok(notes)
    }

    fn read_to_the_end(&mut self, beside: &Beside) -> Result<Result<(), String>, Failure> {
        self.read.recv_timeout(END).or_else(|_| {
            self.running.wait(Duration::ZERO);
            self.cut = None; // a perf that gets no processor keeps its stream open
            self.read.recv_timeout(LAST).map_err(|_| beside.hangs())
        })
    }
}

fn too_late() -> Failure {
    Failure::new(
        format!("perf did not start within {} s", OPEN.as_secs()),
        "check whether all processors of the host are busy (uptime), and record again later",
    )
    .coded(Code::PerfTimeout)
}

/// Nanoseconds of the clock that perf is told to take.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
