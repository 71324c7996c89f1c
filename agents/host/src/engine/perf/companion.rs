//! A thread that sees the process's files as the process's user.
//!
//! Another thread runs perf itself, with the agent's own rights.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flamegraph::perf_data::{Finish, JitMaps, Live, LiveLimits, Recorded, Wanted};
use flamegraph::{GoOn, Open, SymbolOptions};

use super::java_map::{Java, MapFile, NO_NAMES};
use super::recording::Stream;
use crate::engine::api::{Job, Note, Shared};
use crate::jvm::pauses::PauseLog;
use crate::jvm::preflight::Findings;
use crate::os::identity::Namespaces;
use crate::os::proc::named::open_within;
use crate::os::proc::target::Target;
use crate::os::threads::{hangs, no_thread, unbroken};
use crate::wire::outcome::{Code, Failure};

/// How long the thread may take to enter the process's namespaces.
const ENTER: Duration = Duration::from_secs(10);
/// The part of the agent's memory for symbols, beside the call tree and a file's tables.
const SYMBOLS: u64 = 4;

type Work = Box<dyn FnOnce(&mut View) + Send>;

/// It ends when this is dropped and its work is done.
pub struct Companion {
    orders: Sender<Work>,
    pid: i32,
}

impl Companion {
    /// It takes the process's user at once, so that it sees the files even after the process's end.
    pub fn start(job: &Job, target: Arc<Target>, findings: Arc<Findings>) -> Result<Self, Failure> {
        let (orders, to_do) = channel::<Work>();
        let (entered, answer) = channel();
        let pid = job.chosen.pid;
        let copy = job.clone();
        let run = move || match View::enter(&copy, target, findings) {
            Ok(mut view) => {
                let _ = entered.send(Ok(()));
                for work in to_do {
                    // If it panics, the waiting side sees the channel closed.
                    let _ = unbroken(|| work(&mut view));
                }
            }
            Err(failure) => drop(entered.send(Err(failure))),
        };
        let thread = thread::Builder::new().name(format!("beside {pid}"));
        thread.spawn(run).map_err(|error| no_thread(pid, &error))?;
        answer.recv_timeout(ENTER).map_err(|_| hangs(pid))??;
        Ok(Self { orders, pid })
    }

    /// Start some work; the result comes by the channel.
    pub fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut View) -> T + Send + 'static,
    ) -> Receiver<T> {
        let (sender, receiver) = channel();
        let work = move |view: &mut View| {
            // The receiver may be gone.
            let _ = sender.send(work(view));
        };
        // If the thread is gone, the channel is closed.
        let _ = self.orders.send(Box::new(work));
        receiver
    }

    pub fn do_now<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut View) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let answer = self.ask(work).recv_timeout(patience);
        answer.map_err(|_| self.hangs())
    }

    pub fn hangs(&self) -> Failure {
        hangs(self.pid)
    }
}

/// The process as its user sees it, and what was recorded of it.
pub struct View {
    pub(super) target: Arc<Target>,
    pub(super) namespaces: Namespaces,
    pub(super) musl: bool,
    pub(super) shared: Arc<Shared>,
    pub(super) java: Java,
    pub(super) pauses: Option<PauseLog>,
    live: Option<Live>,
    /// The JVM's names, once it was asked.
    pub(super) map: Option<MapFile>,
    /// Paths that could not be deleted.
    pub(super) left: Vec<String>,
}

impl View {
    /// For good.
    fn enter(job: &Job, target: Arc<Target>, findings: Arc<Findings>) -> Result<Self, Failure> {
        let namespaces = Namespaces::enter(&target)?;
        let (named, data) = (&namespaces.named, &findings.performance_data);
        Ok(Self {
            pauses: PauseLog::open(named, data, job.shared.count()),
            java: Java::look(&findings, &namespaces, target.pid),
            target,
            namespaces,
            musl: findings.loaded.musl,
            shared: job.shared.clone(),
            live: None,
            map: None,
            left: Vec::new(),
        })
    }

    pub fn java(&self) -> Java {
        self.java.clone()
    }

    /// `clock`: the same moment by the stream's clock and the wall clock, to keep when samples were taken.
    pub fn record(
        &mut self,
        stream: Stream,
        wanted: Vec<Wanted>,
        begin: Arc<AtomicU64>,
        end: Arc<AtomicU64>,
        clock: Option<(u64, i64)>,
    ) -> Result<(), String> {
        let usual = LiveLimits::default();
        let limits = LiveLimits {
            cells: self.shared.limits.cells(1),
            ..usual
        };
        let live = self.live.insert(Live::new(wanted, limits));
        live.begin_by(begin);
        live.end_by(end);
        if let Some(clock) = clock {
            live.keep_times(self.shared.limits.rows(), clock, None);
        }
        live.read(stream).map_err(|error| error.to_string())
    }

    /// Find names for the recording, with a note if that fails. `kernel`: the kernel's symbols, which only the agent
    /// may read.
    pub fn fold(&mut self, kernel: Option<Vec<u8>>) -> Result<(Recorded, Option<Note>), String> {
        let mut live = self.live.take().ok_or("nothing was recorded")?;
        let pid = self.target.pid as u32;
        let (maps, unnamed) = match self.map.take().map(MapFile::read) {
            Some(Ok(map)) => (JitMaps::from_iter([(pid, map)]), None),
            Some(Err(reason)) if self.java.is_hotspot => {
                let unnamed = Note::degraded(NO_NAMES)
                    .coded(Code::NoJavaNames)
                    .because(Failure::plain(reason));
                (JitMaps::default(), Some(unnamed))
            }
            _ => (JitMaps::default(), None),
        };
        let root = self.namespaces.named.root.clone();
        let symbols = SymbolOptions {
            root: "/".into(),
            open: Some(Open::new(move |path| open_within(&root, path.to_str()?))),
            kallsyms_text: kernel.map(Arc::from),
            memory: self.shared.limits.memory_part(SYMBOLS) as usize,
            go_on: self.go_on(),
            ..SymbolOptions::none()
        };
        let finish = Finish {
            pid: Some(pid),
            symbols: &symbols,
            jit: &maps,
            cpu_nanoseconds: None,
        };
        let recorded = live.finish(&finish).map_err(|error| error.to_string())?;
        Ok((recorded, unnamed))
    }

    /// Symbols are read at the agent's pace, and only while somebody waits: the process chooses their files.
    fn go_on(&self) -> GoOn {
        let shared = self.shared.clone();
        GoOn::new(move || {
            shared.limits.rest();
            !shared.folding.is_over()
        })
    }

    pub fn left(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left)
    }
}
