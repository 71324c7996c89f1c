//! What is done beside the process, by a thread that has its user and its files.

use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use flamegraph::perf_data::{Finish, JitMaps, Live, LiveLimits, Recorded, Wanted};
use flamegraph::{GoOn, SymbolOptions};

use super::heard::Heard;
use super::java_map::{Asked, Java, MapFile, NO_NAMES};
use crate::engine::api::{Job, Library};
use crate::engine::api::{Note, Shared};
use crate::jvm::preflight::{self, Findings};
use crate::os::identity::Shoes;
use crate::os::proc::target::Target;
use crate::resources::folding::Folding;
use crate::wire::outcome::{Code, Failure};

/// The part of the agent's memory that symbols may take: they come beside the call tree, and a file's tables beside them.
const SYMBOLS: u64 = 4;

/// The state of the thread beside a process.
pub struct Companion {
    target: Target,
    shoes: Shoes,
    findings: Findings,
    session: String,
    shared: Arc<Shared>,
    folding: Arc<Folding>,
    perfmap: Option<Arc<Library>>,
    java: Java,
    live: Option<Live>,
    map: Option<MapFile>,
    left: Vec<String>,
}

impl Companion {
    /// Take the process's user and files, for good.
    pub fn enter(job: &Job) -> Result<Self, Failure> {
        let target = Target::open(job.chosen.pid, job.chosen.start_time)?;
        let findings = preflight::look(&target);
        let shoes = Shoes::put_on(&target)?;
        Ok(Self {
            java: Java::look(&findings, &shoes, target.pid),
            target,
            shoes,
            findings,
            session: job.session.clone(),
            shared: job.shared.clone(),
            folding: job.folding.clone(),
            perfmap: job.libraries.perfmap.clone(),
            live: None,
            map: None,
            left: Vec::new(),
        })
    }

    /// What is known of the JVM; nothing of other processes.
    pub fn java(&self) -> Java {
        self.java.clone()
    }

    /// Read perf's stream to its end.
    pub fn record(
        &mut self,
        heard: Heard,
        wanted: Vec<Wanted>,
        end: Arc<AtomicU64>,
    ) -> Result<(), String> {
        let usual = LiveLimits::default();
        let limits = LiveLimits {
            cells: self.shared.limits.cells(1),
            ..usual
        };
        let live = self.live.insert(Live::new(wanted, limits));
        live.end_by(end);
        live.read(heard).map_err(|error| error.to_string())
    }

    /// What would be said of that, without asking.
    pub fn foresee(&mut self) -> Vec<Note> {
        self.asked().foresee()
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            target: &self.target,
            shoes: &self.shoes,
            java: &self.java,
            musl: self.findings.loaded.musl,
            session: &self.session,
            library: self.perfmap.as_deref(),
        }
    }

    /// Ask the JVM, while it lives, which code it has where. What could not be deleted is told at the end.
    pub fn ask_for_map(&mut self) -> Vec<Note> {
        let answer = self.asked().map();
        self.map = answer.map;
        self.left.extend(answer.left);
        answer.notes
    }

    /// Name what was recorded, and say where that cannot be. `kernel`: the kernel's symbols, which are the agent's to read.
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
        let symbols = SymbolOptions {
            root: self.shoes.path("/").into(),
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

    /// Symbols are read from files of the process's choice: as slowly as everything, and only while somebody waits.
    fn go_on(&self) -> GoOn {
        let (shared, folding) = (self.shared.clone(), self.folding.clone());
        GoOn::new(move || {
            shared.limits.rest();
            !folding.is_over()
        })
    }

    /// The paths that could not be deleted.
    pub fn left(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left)
    }
}
