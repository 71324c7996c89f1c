//! The host's own `perf`. It writes its recording to the agent, which folds it at once. Nothing goes to a disk.

mod command;
mod companion;
pub mod events;
mod java_map;
pub mod notes;
pub mod program;
mod record;
pub mod recording;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::companion::{Companion, View};
use self::events::Event;
use self::java_map::Java;
use self::notes::Rights;
pub use self::program::Perf;
pub use self::record::Shared as PerfShared;
use self::record::{names, Command};
use self::recording::Recording;
use crate::engine::api::{
    is_taken_anywhere, Engine, EventProfile, Folded, Job, Note, Prepared, Raw, Shared, Started,
    Stopped,
};
use crate::jvm::pauses::PauseLog;
use crate::jvm::preflight::Findings;
use crate::os::proc::target::Target;
use crate::wire::outcome::{Code, Failure};
use crate::wire::sampling::Sampling;

/// The engine's name in a sampling.
pub const NAME: &str = "perf";
/// How long the JVM may take to list its code, and the agent to fold and to clean up.
const MAP: Duration = Duration::from_secs(15);
const FOLD: Duration = Duration::from_secs(20);
const FAREWELL: Duration = Duration::from_secs(5);

pub fn prepare(job: &Job, target: Target, findings: Arc<Findings>) -> Result<Prepared, Failure> {
    let target = Arc::new(target);
    let (shared, sampling) = (&job.shared, &job.shared.sampling);
    let (mut events, mut refused) = (Vec::new(), Vec::new());
    for name in &sampling.events {
        match Event::new(name) {
            Ok(event) => events.push(event),
            Err(failure) => refused.push(failure),
        }
    }
    let perf = shared.perf.perf()?;
    let rights = Rights::of_agent();
    let companion = Companion::start(job, target.clone(), findings.clone())?;
    let (java, pauses) = companion.do_now(FAREWELL, |view| (view.java(), view.pauses.take()))?;
    // With `auto`, async-profiler was tried before and failed.
    let attachable =
        findings.library.is_some() && findings.refusal.is_none() && java.takes_agents();
    let better = attachable && sampling.engine == NAME;
    if better && events.iter().any(Event::is_off_cpu) {
        // Threads mostly wait in the kernel or in the JVM's own code, where Java frames are lost.
        events.retain(|event| !event.is_off_cpu());
        let failure = Failure::new(
            "offcpu of a JVM is recorded by async-profiler: perf loses the Java frames of threads that wait",
            "use --engine async-profiler (or auto)",
        );
        refused.push(failure.coded(Code::EventUnsupported));
    }
    if events.is_empty() {
        return Err(Failure::all(refused));
    }
    let mut command = Command::new(perf, target.pid, rights.kernel, sampling, job.duration());
    let (events, impossible) = command.possible(events, target.status.threads, &shared.perf)?;
    refused.extend(impossible);
    if events.is_empty() {
        return Err(Failure::all(refused));
    }
    let mut notes = command.notes();
    notes.extend(rights.note());
    if events.iter().any(Event::is_off_cpu) {
        notes.extend(off_cpu_notes(findings.library.is_some(), rights.kernel));
    }
    refused.extend(without_effect(sampling));
    notes.extend(refused.into_iter().map(Note::of));
    if shared.dry_run {
        notes.extend(companion.do_now(FAREWELL, |view| view.foresee())?);
        notes.extend(notes::before_recording(&java, better));
        let sources = sources(&events, &rights);
        return Ok(Prepared::DryRun(Ok(Started { sources, notes })));
    }
    Ok(Prepared::Ready(Box::new(PerfRecord {
        shared: shared.clone(),
        target,
        companion,
        command,
        events,
        rights,
        java,
        better,
        notes,
        pauses,
        recording: None,
        attached: None,
    })))
}

fn sources(events: &[Event], rights: &Rights) -> BTreeMap<String, String> {
    let source = |event: &Event| (event.name.clone(), event.source(rights.kernel));
    events.iter().map(source).collect()
}

/// Options without effect on perf, unless the failure of an event says so already.
fn without_effect(sampling: &Sampling) -> Vec<Failure> {
    let asked = |events: &[&str]| {
        let mut asked = sampling.events.iter();
        asked.any(|event| events.contains(&event.as_str()))
    };
    let mut failures = Vec::new();
    for (given, option, what, events) in [
        (
            sampling.alloc_interval,
            "--alloc-interval",
            "allocations",
            &["alloc", "live", "nativemem", "nativelive"][..],
        ),
        (
            sampling.lock_threshold,
            "--lock-threshold",
            "locks",
            &["lock"],
        ),
        (
            sampling.wall_interval,
            "--wall-interval",
            "wall-clock time",
            &["wall"],
        ),
    ] {
        if given.is_some() && !asked(events) {
            let failure = Failure::new(
                format!("{option} has no effect: perf does not sample {what}"),
                format!("leave {option} out, or use --engine async-profiler for JVMs"),
            );
            failures.push(failure.coded(Code::OptionIgnored));
        }
    }
    failures
}

/// What `perf stat` prints of a thread's own code in so much time, one event a line. None: it does not run.
pub fn stat(perf: &Perf, events: &[&str], thread: i32, time: Duration) -> Option<String> {
    const ANSWER: Duration = Duration::from_secs(10);
    let (thread, time) = (thread.to_string(), time.as_millis().to_string());
    let mut arguments = vec!["stat", "-x", ",", "-t", &thread, "--timeout", &time];
    events
        .iter()
        .for_each(|event| arguments.extend(["-e", event]));
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    let ended = command::run(&perf.path, &arguments, ANSWER).ok()?;
    ended.good.then_some(ended.words)
}

fn off_cpu_notes(jvm: bool, kernel: bool) -> Option<Note> {
    match (jvm, kernel) {
        (_, false) => Some(Note::of(
            Failure::new(
                "offcpu without stacks: waiting threads are in the kernel, which the agent may not sample",
                "connect as root (--become sudo)",
            )
            .coded(Code::NoKernelFrames),
        )),
        (true, true) => Some(Note::degraded(
            "offcpu by perf: most waiting threads have lost their Java frames",
        )),
        (false, true) => None,
    }
}

struct PerfRecord {
    shared: Arc<Shared>,
    target: Arc<Target>,
    companion: Companion,
    command: Command,
    events: Vec<Event>,
    rights: Rights,
    java: Java,
    /// Whether async-profiler could record the process too.
    better: bool,
    notes: Vec<Note>,
    pauses: Option<PauseLog>,
    recording: Option<Recording>,
    attached: Option<Duration>,
}

impl Engine for PerfRecord {
    fn target(&self) -> &Target {
        &self.target
    }

    fn start(&mut self) -> Result<Started, Failure> {
        let recording = Recording::start(
            &self.command,
            &self.events,
            &self.companion,
            self.shared.clone(),
        )?;
        self.recording = Some(recording);
        Ok(Started {
            sources: sources(&self.events, &self.rights),
            notes: std::mem::take(&mut self.notes),
        })
    }

    fn began(&self) -> Option<Instant> {
        Some(self.recording.as_ref()?.begin)
    }

    fn too_much(&self) -> Option<Failure> {
        let recording = self.recording.as_ref()?;
        recording
            .too_much()
            .or_else(|| self.shared.limits.refuse_full().err())
    }

    /// On a busy host perf may take seconds to end. Later samples are left out.
    fn samples_until_stopped(&self) -> bool {
        false
    }

    fn stop(&mut self) -> Result<Stopped, Failure> {
        let Some(recording) = self.recording.take() else {
            return Err(Failure::plain("nothing was started"));
        };
        let lives = self.target.stat().is_some();
        self.notes.extend(recording.stop(lives, &self.companion)?);
        Ok(match lives {
            true => Stopped::OnRequest,
            false => Stopped::WithTheProcess,
        })
    }

    fn ask(&mut self) {
        let _turn = self.shared.attaches.take_at_the_end();
        let asked = self.java.is_hotspot && self.java.no_attach.is_none();
        let asked = asked && self.target.stat().is_some();
        let began = Instant::now();
        let names = self.companion.do_now(MAP, |view| view.ask_for_map());
        self.attached = asked.then(|| began.elapsed());
        let unnamed = |hangs| match self.java.is_hotspot {
            true => vec![Note::degraded("Java methods may have no names")
                .coded(Code::NoJavaNames)
                .because(hangs)],
            false => vec![Note::of(hangs)],
        };
        self.notes.extend(names.unwrap_or_else(unnamed));
    }

    fn attached(&self) -> Option<Duration> {
        self.attached
    }

    fn pauses(&mut self) -> Option<PauseLog> {
        self.pauses.take()
    }

    fn fold(&mut self, _stopped: Stopped) -> Result<Folded, Failure> {
        let kernel = self.rights.kernel_symbols().unwrap_or(None);
        let recorded = self.companion.do_now(FOLD, |view| view.fold(kernel))?;
        let (recorded, unnamed) = recorded.map_err(|error| {
            Failure::plain(format!("perf's output cannot be read: {error}"))
                .coded(Code::DamagedRecording)
        })?;
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(unnamed);
        notes.extend(notes::of_recording(&recorded, &self.java, self.better));
        let there = |event: &&Event| recorded.events.iter().any(|it| it.event == event.name);
        let (there, missing): (Vec<&Event>, Vec<&Event>) = self.events.iter().partition(there);
        let missing = (!missing.is_empty())
            .then(|| format!("perf recorded no event named {}", names(missing)));
        if there.is_empty() {
            let notes = notes.into_iter().filter(|note| note.degraded);
            let failures = notes.map(|note| Failure::new(note.text, note.remedy));
            let missing = missing.map(Failure::plain).into_iter();
            return Err(Failure::all(missing.chain(failures)));
        }
        notes.extend(missing.map(Note::degraded));
        let profiles = there.into_iter().zip(recorded.events);
        let unsure = self.java.is_hotspot && !self.java.debug_non_safepoints;
        let profiles = profiles.map(|(event, recorded)| EventProfile {
            callers_unsure: unsure && is_taken_anywhere(&recorded.event),
            source: event.source(self.rights.kernel),
            interval: self.command.interval(event),
            event: recorded.event,
            profile: recorded.profile,
            taken: recorded.taken,
        });
        Ok(Folded {
            profiles: profiles.collect(),
            notes,
        })
    }

    fn raw(&mut self) -> Result<Raw, Failure> {
        Err(Failure::new(
            "perf's output is folded as it arrives and not kept",
            "leave --keep-raw out, or use --engine async-profiler for JVMs",
        )
        .coded(Code::OptionIgnored))
    }

    fn leave(mut self: Box<Self>) -> Vec<String> {
        self.recording = None;
        let left = self.companion.do_now(FAREWELL, View::left);
        left.unwrap_or_else(|hangs| vec![hangs.reason])
    }
}
