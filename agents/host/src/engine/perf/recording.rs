//! A running recording by perf: its process, and its stream.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::process::ChildStdout;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;

use super::command::Running;
use super::companion::Companion;
use super::events::Event;
use super::notes;
use super::record::{names, Command};
use crate::engine::api::{Note, Shared};
use crate::os::lease;
use crate::wire::outcome::{Code, Failure};

/// How long perf may take to open its events, until they count, and to end. It visits all processors, and was seen to
/// wait 9 s for busy ones. When it is killed, what it has not written is lost.
const OPEN: Duration = Duration::from_secs(18);
const COUNT: Duration = Duration::from_secs(22);
const END: Duration = Duration::from_secs(11);
/// How long reading the rest of a closed stream may take, and perf's end after its stream.
const LAST: Duration = Duration::from_secs(3);
/// How long to wait for a perf that does not say when its events count.
const SETTLE: Duration = Duration::from_secs(2);
/// This many samples at once do no harm, as when a process starts.
const BURST: f64 = 50_000.0;

pub struct Recording {
    running: Running,
    read: Receiver<Result<(), String>>,
    /// The stream is read until it ends, or until this is dropped.
    cut: Option<UnixStream>,
    /// When its events were seen to count. Earlier samples are left out, if perf's clock is known.
    pub begin: Instant,
    /// Later samples are left out, if perf's clock is known.
    end: Option<Arc<AtomicU64>>,
    /// Its events did not count yet at the start.
    late: bool,
    samples: Arc<AtomicU64>,
    /// See `Command::most_samples`.
    most: Option<(f64, String)>,
}

impl Recording {
    /// Returns once perf records.
    pub fn start(
        command: &Command,
        events: &[Event],
        companion: &Companion,
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
        // Profiles say when samples were taken if perf's clock is known.
        let times = shared.sampling.timeline && command.knows_its_clock();
        let (began, begin) = channel();
        let samples = Arc::new(AtomicU64::new(0));
        let counting = Arc::new(AtomicU64::new(0));
        let stream = Stream {
            stream,
            until,
            shared,
            progress: Progress::default(),
            said: (false, false),
            began,
            counting: counting.clone(),
            samples: samples.clone(),
        };
        let end = Arc::new(AtomicU64::new(u64::MAX));
        let (wanted, by) = (command.wanted(events), end.clone());
        let clock = times.then(clocks);
        let from = match command.knows_its_clock() {
            true => counting.clone(),
            false => Arc::default(),
        };
        let read = companion.ask(move |process| process.record(stream, wanted, from, by, clock));
        match begin.recv_timeout(left(OPEN)) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(Failure::new(
                    format!("perf did not start within {} s", OPEN.as_secs()),
                    "check whether all processors of the host are busy (uptime), and record again later",
                )
                .coded(Code::PerfTimeout)
                .with("seconds", OPEN.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                running.wait(LAST);
                let killed = running.killed();
                return Err(notes::end(killed, &running.words(), &names(events)));
            }
        }
        // Versions before 6.0 write nothing before the first sample, and an idle process has none.
        let patience = if command.says_begin {
            left(COUNT)
        } else {
            SETTLE
        };
        let counts = begin.recv_timeout(patience);
        set_now(&counting);
        let since = clocks().0.saturating_sub(counting.load(Ordering::Relaxed));
        Ok(Self {
            running,
            read,
            cut: Some(cut),
            begin: Instant::now() - Duration::from_nanos(since),
            end: command.knows_its_clock().then_some(end),
            late: command.says_begin && counts == Err(RecvTimeoutError::Timeout),
            samples,
            most: command.most_samples(events),
        })
    }

    pub fn too_much(&self) -> Option<Failure> {
        let (most, names) = self.most.as_ref()?;
        let samples = self.samples.load(Ordering::Relaxed);
        let seconds = self.begin.elapsed().as_secs_f64();
        (samples as f64 > BURST + most * seconds).then(|| {
            Failure::new(
                format!("{names}: too frequent to record each, {samples} in {seconds:.1} s"),
                format!("count {names} by perf stat, or record cpu or a rarer event"),
            )
            .coded(Code::EventTooFrequent)
        })
    }

    /// End it, and read its stream to the end. `lives`: whether the process does.
    pub fn stop(mut self, lives: bool, companion: &Companion) -> Result<Vec<Note>, Failure> {
        if let Some(end) = &self.end {
            end.store(clocks().0, Ordering::Relaxed);
        }
        let mut notes = Vec::new();
        if self.late {
            let late = Note::degraded("perf started counting late");
            notes.push(late.coded(Code::PerfLate));
        }
        let early = self.read.try_recv().ok();
        self.running.interrupt();
        let result = match &early {
            Some(result) => result.clone(),
            None => self.read.recv_timeout(END).or_else(|_| {
                self.running.wait(Duration::ZERO);
                self.cut = None; // a perf that gets no processor keeps its stream open
                self.read.recv_timeout(LAST).map_err(|_| companion.hangs())
            })?,
        };
        let ended = self.running.wait(LAST);
        let killed = self.running.killed();
        if killed.is_some() || early.is_some() && lives {
            let words = self.running.words();
            let end = notes::end(killed, &words, "the process to the end");
            notes.push(Note::of(end));
        } else if !ended {
            notes.push(Note::degraded("perf did not end and was killed").coded(Code::PerfTimeout));
        }
        notes.extend(result.err().map(|error| {
            Note::degraded(format!("perf's stream is damaged: {error}"))
                .coded(Code::DamagedRecording)
        }));
        Ok(notes)
    }
}

/// Set a time of perf's clock, once.
fn set_now(time: &AtomicU64) {
    let now = clocks().0;
    let _ = time.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
}

/// What perf's clock says, in nanoseconds, and the wall clock at that moment, in microseconds since 1970.
fn clocks() -> (u64, i64) {
    let (monotonic, wall) = (lease::now(), lease::since_1970());
    (monotonic.as_nanos() as u64, wall.as_micros() as i64)
}

/// perf's stream. It sends a message when perf has opened its events, and another one when they count.
pub struct Stream {
    stream: ChildStdout,
    /// When its other end is closed, only what is there is read.
    until: UnixStream,
    shared: Arc<Shared>,
    progress: Progress,
    said: (bool, bool),
    began: Sender<()>,
    /// When its events were seen to count. It is set before anybody reads of their samples.
    counting: Arc<AtomicU64>,
    samples: Arc<AtomicU64>,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = PollFlags::IN;
        let mut fds = [
            PollFd::new(&self.stream, wanted),
            PollFd::new(&self.until, wanted),
        ];
        while let Err(error) = poll(&mut fds, None) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        let (more, over) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if !over {
            // perf waits meanwhile. What does not fit into the kernel's buffers counts as lost.
            self.shared.limits.rest();
        }
        if !more {
            return Ok(0);
        }
        let read = self.stream.read(buffer)?;
        self.progress.follow(&buffer[..read]);
        let Progress {
            opened,
            begun,
            samples,
            ..
        } = self.progress;
        if begun {
            set_now(&self.counting);
        }
        for (now, said) in [
            (opened || begun, &mut self.said.0),
            (begun, &mut self.said.1),
        ] {
            if now && !std::mem::replace(said, true) {
                // The receiver may be gone.
                let _ = self.began.send(());
            }
        }
        self.samples.store(samples, Ordering::Relaxed);
        Ok(read)
    }
}

/// The stream's first bytes, the size of its header, and the size of a record's head: type (4 bytes), flags and size.
const MAGIC: &[u8] = b"PERFILE2";
const HEADER: usize = 16;
const HEAD: usize = 8;
/// Types of records: the description of an event, a sample, the end of a round over the processors, and the end of what
/// is written before events count (perf 6.0 and later).
const ATTR: u32 = 64;
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;
const FINISHED_INIT: u32 = 82;
/// After this record's head, 4 bytes say how many bytes follow the record.
const TRACING_DATA: u32 = 66;

/// How far perf is, from its stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Progress {
    /// It has described an event.
    pub opened: bool,
    /// Its events count, or the stream is damaged.
    pub begun: bool,
    /// A record said that they count.
    pub says_begin: bool,
    pub samples: u64,
    /// Whether the header is past, and whether the stream is damaged and is not followed any more.
    in_records: bool,
    lost: bool,
    /// The start of a record as far as it is there, and the bytes to skip before it.
    head: Vec<u8>,
    skip: u64,
}

impl Progress {
    pub fn follow(&mut self, mut bytes: &[u8]) {
        while !self.lost && !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len() as u64);
            self.skip -= skipped;
            let missing = self.needed() - self.head.len();
            bytes = &bytes[skipped as usize..];
            let (now, rest) = bytes.split_at(missing.min(bytes.len()));
            self.head.extend(now);
            bytes = rest;
            if self.head.len() == self.needed() {
                self.take_head();
            }
        }
    }

    fn word(&self, at: usize) -> u32 {
        let word = self.head.get(at..at + 4).unwrap_or(&[0; 4]);
        u32::from_ne_bytes(word.try_into().unwrap_or_default())
    }

    fn needed(&self) -> usize {
        match self.in_records {
            false => HEADER,
            true if self.head.len() >= HEAD && self.word(0) == TRACING_DATA => HEAD + 4,
            true => HEAD,
        }
    }

    fn take_head(&mut self) {
        if self.in_records {
            let size = u64::from(u16::from_ne_bytes([self.head[6], self.head[7]]));
            let kind = self.word(0);
            self.lost = size < self.head.len() as u64;
            self.opened |= kind == ATTR;
            self.says_begin |= kind == FINISHED_INIT;
            self.begun |= matches!(kind, SAMPLE | FINISHED_ROUND | FINISHED_INIT);
            self.samples += u64::from(kind == SAMPLE);
            self.skip = size.saturating_sub(self.head.len() as u64) + u64::from(self.word(HEAD));
        } else {
            self.lost = !self.head.starts_with(MAGIC);
            self.in_records = true;
        }
        self.begun |= self.lost;
        self.head.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, size: u16) -> Vec<u8> {
        let head = [&kind.to_ne_bytes()[..], &[0; 2], &size.to_ne_bytes()].concat();
        [head, vec![9; usize::from(size) - HEAD]].concat()
    }

    /// A stream without a record of events that count.
    fn before() -> Vec<u8> {
        let tracing = [
            &TRACING_DATA.to_ne_bytes()[..],
            &[0; 2],
            &12u16.to_ne_bytes(),
        ]
        .concat();
        let parts = [
            [MAGIC, &[0; 8]].concat(),
            record(ATTR, 48),
            record(2, 64),
            [tracing, 4u32.to_ne_bytes().to_vec(), vec![9; 4]].concat(),
        ];
        parts.concat()
    }

    fn after(stream: &[u8], step: usize) -> Progress {
        let mut progress = Progress::default();
        for part in stream.chunks(step) {
            progress.follow(part);
        }
        progress
    }

    #[test]
    fn a_stream_shows_when_perf_has_begun() {
        let before = before();
        for step in [1, 3, 8192] {
            let progress = after(&before, step);
            assert!(progress.opened && !progress.begun, "{step}");
            for (kind, says) in [
                (SAMPLE, false),
                (FINISHED_ROUND, false),
                (FINISHED_INIT, true),
            ] {
                let progress = after(&[before.clone(), record(kind, 16)].concat(), step);
                assert_eq!(
                    (progress.begun, progress.says_begin),
                    (true, says),
                    "{kind} {step}"
                );
            }
            let samples = [
                record(SAMPLE, 40),
                record(2, 64),
                record(SAMPLE, 8),
                record(SAMPLE, 4000),
            ];
            let progress = after(&[before.clone(), samples.concat()].concat(), step);
            assert_eq!(progress.samples, 3);
        }
    }
}
