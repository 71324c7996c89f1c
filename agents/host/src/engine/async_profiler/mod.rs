//! async-profiler: a library that is loaded into the JVM by attach, and writes one JFR recording of all events.

mod chunks;
pub mod events;
pub mod intervals;
pub mod jvm;
pub mod loading;
pub mod name_log;
pub mod plan;
pub mod results;
pub mod tally;
pub mod thread_names;

use std::fs::File;
use std::time::{Duration, Instant};

use self::intervals::{Intervals, Rate};
use self::jvm::{start_failure, Jvm};
use self::plan::{Choice, Plan};
use self::results::Given;
use self::thread_names::{unread, ThreadNames};
use crate::engine::api::{
    is_taken_anywhere, Engine, Folded, Job, Library, Note, Part, Prepared, Raw, Shared, Started,
    Stopped,
};
use crate::engine::kernel_events::may_sample_itself;
use crate::jvm::hsperf;
use crate::jvm::pauses::PauseLog;
use crate::jvm::preflight::{last_set, refuse_disabled, Findings};
use crate::os::identity::Namespaces;
use crate::os::proc::target::Target;
use crate::wire::outcome::{Code, Failure};

/// The engine's name in a sampling.
pub const NAME: &str = "async-profiler";

/// JDKs whose sampler misses large objects (JDK-8356372).
const MISSES_LARGE: std::ops::Range<u32> = 11..25;
/// The last JDK for which it is known that a full collection of ParallelGC begins with a young one; in JDK 25 none does.
const YOUNG_FIRST: u32 = 21;

/// What is known about a JVM before it is touched. The thread has the JVM's user and namespaces from then on.
pub struct Looked<'a> {
    library: &'a Library,
    namespaces: Namespaces,
    events: Vec<String>,
    left_out: Vec<Failure>,
    agent_filtered: bool,
    names: Result<Option<ThreadNames>, Failure>,
    /// Whether perf could follow its stacks too.
    frame_pointers: bool,
    /// Whether all compiled code has debug information, not only what is compiled once the profiler is loaded.
    debug_info: bool,
    /// Whether its sampler misses objects outside of TLABs.
    misses_large: bool,
    young_first: bool,
}

/// Check everything that can be seen from outside. Err: the JVM cannot be recorded.
fn look<'a>(
    shared: &'a Shared,
    target: &Target,
    findings: &Findings,
) -> Result<Looked<'a>, Failure> {
    let missing = || {
        Failure::new(
            "async-profiler's library is missing on the host",
            "send it for this host's processor",
        )
        .coded(Code::LibraryMissing)
    };
    let library = &shared.libraries.async_profiler;
    let library = library.as_ref().ok_or_else(missing)?;
    if !findings.is_jvm {
        let pid = target.pid;
        return Err(Failure::new(
            format!("process {pid} is not a JVM, and async-profiler records only JVMs"),
            "record it with --engine perf",
        )
        .coded(Code::NotAJvm));
    }
    if let Some(refusal) = &findings.refusal {
        return Err(refusal.clone());
    }
    let (events, mut left_out) = events::possible(&shared.sampling.events);
    if events.is_empty() {
        return Err(Failure::all(left_out));
    }
    // Only root may see this; the thread takes the JVM's user below.
    let agent_filtered = Target::own_status().is_some_and(|own| own.filtered);
    let namespaces = Namespaces::enter(target)?;
    let (named, data) = (&namespaces.named, &findings.performance_data);
    let options = findings.options(named);
    refuse_disabled(target.pid, &options)?;
    let is_set = |flag| last_set(&options, flag) == Some(true);
    let version = hsperf::jvm_version(named, findings.library.as_deref(), data);
    let feature = version.as_deref().and_then(events::feature);
    let misses_large = feature.is_some_and(|feature| MISSES_LARGE.contains(&feature));
    let young_first = feature.is_some_and(|feature| feature <= YOUNG_FIRST);
    let (events, unable) = events::of_jvm(events, version.as_deref());
    left_out.extend(unable);
    let names = ThreadNames::wanted(shared, findings, &namespaces.named, version.as_deref());
    match events.is_empty() {
        true => Err(Failure::all(left_out)),
        false => Ok(Looked {
            library,
            namespaces,
            events,
            left_out,
            agent_filtered,
            names,
            frame_pointers: is_set("PreserveFramePointer"),
            debug_info: is_set("DebugNonSafepoints"),
            misses_large,
            young_first,
        }),
    }
}

pub fn prepare(job: &Job, target: Target, findings: &Findings) -> Result<Prepared, Failure> {
    let shared = &job.shared;
    let looked = look(shared, &target, findings)?;
    let (named, data) = (&looked.namespaces.named, &findings.performance_data);
    let rate = Rate::begin(named, data);
    let entered = loading::enter(shared, &target, &looked, findings)?;
    let alloc = || rate.interval(named, data);
    let events = looked.events;
    let (intervals, chosen) =
        Intervals::choose(&shared.sampling, &events, target.status.threads, alloc);
    let mut notes: Vec<Note> = looked.left_out.into_iter().map(Note::of).collect();
    notes.extend(chosen);
    let names = looked.names.unwrap_or_else(|failure| {
        notes.push(unread(failure));
        None
    });
    let (debug_info, misses_large) = (looked.debug_info, looked.misses_large);
    let young_first = looked.young_first;
    let plan = Plan::new(events, intervals, job.duration(), findings.kernel);
    let Some(entered) = entered else {
        let filtered = looked.agent_filtered;
        let started = expected_start(&target, &plan, notes, findings.privileged, filtered);
        return Ok(Prepared::DryRun(started));
    };
    let pauses = PauseLog::open(named, data, shared.count());
    let (musl, shared) = (findings.loaded.musl, job.shared.clone());
    Ok(Prepared::Ready(Box::new(AsyncProfiler {
        published: pauses.as_ref().and_then(PauseLog::published),
        collections: None,
        young_first,
        used: plan.choices[0].clone(),
        plan,
        jvm: Jvm::new(target, looked.namespaces, entered, musl, shared, names),
        notes,
        pauses,
        debug_info,
        misses_large,
        begin: Instant::now(),
        seconds: 0.0,
        given: Given::default(),
    })))
}

/// What `start` would most likely return: the first of the plan's choices that would work. The calling thread must have
/// the JVM's user and no more rights. An agent whose own system calls are filtered, as in the JVM's container
/// (`agent_filtered`), finds out by trying.
fn expected_start(
    target: &Target,
    plan: &Plan,
    mut notes: Vec<Note>,
    privileged: bool,
    agent_filtered: bool,
) -> Result<Started, Failure> {
    let refused = if privileged {
        ""
    } else if !may_sample_itself() {
        "its user may not use perf events (perf_event_paranoid, seccomp)"
    } else if target.status.filtered && !agent_filtered {
        "its system calls are filtered (seccomp), probably perf_event_open as well"
    } else {
        ""
    };
    let by_perf_events = |choice: &Choice| match choice.source.as_str() {
        "" | "ctimer" | "itimer" => false,
        event => !is_method(event),
    };
    let works = |choice: &&Choice| refused.is_empty() || !by_perf_events(choice);
    let Some(choice) = plan.choices.iter().find(works) else {
        return Err(start_failure(target.pid, &plan.events, refused));
    };
    notes.extend(choice.note.clone());
    if !works(&&plan.choices[0]) {
        notes.push(Note::plain(refused));
    }
    Ok(Started {
        sources: plan.sources(choice),
        notes,
    })
}

/// Whether an event is a Java method, which is counted without the kernel.
fn is_method(event: &str) -> bool {
    event.contains('.') && !event.contains([':', '/'])
}

struct AsyncProfiler {
    jvm: Jvm,
    plan: Plan,
    notes: Vec<Note>,
    pauses: Option<PauseLog>,
    /// The file of the JVM's performance data.
    published: Option<File>,
    /// How often its collectors had run at the start; how often they have run since, once it is stopped.
    collections: Option<u64>,
    young_first: bool,
    debug_info: bool,
    misses_large: bool,
    /// What uses the profiler's only `event=`; the first choice until one has worked.
    used: Choice,
    /// When the profiler was started, and for how many seconds it sampled.
    begin: Instant,
    seconds: f64,
    given: Given,
}

impl AsyncProfiler {
    /// What the recording itself does not say.
    fn completed(&mut self, mut folded: Folded) -> Result<Folded, Failure> {
        for recorded in &mut folded.profiles {
            recorded.callers_unsure = !self.debug_info && is_taken_anywhere(&recorded.event);
            if self.misses_large && matches!(&*recorded.event, "alloc" | "live") {
                let tally = &mut self.given.tally;
                tally.add_objects(recorded).map_err(results::unreadable)?;
            }
        }
        Ok(folded)
    }

    fn collections_so_far(&self) -> Option<u64> {
        hsperf::collections(self.published.as_ref()?, self.young_first)
    }
}

impl Engine for AsyncProfiler {
    fn target(&self) -> &Target {
        &self.jvm.target
    }

    fn start(&mut self) -> Result<Started, Failure> {
        self.collections = self.collections_so_far();
        let (choice, refused) = match self.jvm.start(&self.plan) {
            Err(failure)
                if failure.code == Code::NoDebugSymbols && self.plan.leave_out("alloc") =>
            {
                let why = format!("alloc was left out: {}", failure.reason);
                let failure = Failure::new(why, events::SYMBOLS).coded(Code::NoDebugSymbols);
                self.notes.push(Note::of(failure));
                self.jvm.start(&self.plan)?
            }
            started => started?,
        };
        self.begin = Instant::now();
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(choice.note.clone());
        if !refused.is_empty() {
            notes.push(Note::plain(refused));
        }
        notes.extend(self.jvm.names_failure.take().map(unread));
        let sources = self.plan.sources(&choice);
        self.used = choice;
        Ok(Started { sources, notes })
    }

    fn too_much(&self) -> Option<Failure> {
        self.jvm.too_much()
    }

    fn writes_parts(&self) -> bool {
        true
    }

    fn part(&mut self) -> Result<Option<Part>, Failure> {
        // Only the whole recording says what was not freed.
        if self.plan.has("nativelive") {
            return Ok(None);
        }
        let slices = self.jvm.slices_so_far(self.given.until);
        let Some(part) = results::fold_part(self, slices)? else {
            return Ok(None);
        };
        let folded = self.completed(part.folded)?;
        Ok(Some(Part { folded, ..part }))
    }

    fn stop(&mut self) -> Result<Stopped, Failure> {
        self.seconds = self.begin.elapsed().as_secs_f64();
        let stopped = self.jvm.stop(self.plan.time_limit())?;
        let now = self.collections_so_far();
        let before = self.collections.take();
        self.collections = now
            .zip(before)
            .and_then(|(now, before)| now.checked_sub(before));
        self.jvm.hold_recording();
        self.jvm.stop_names();
        Ok(stopped)
    }

    fn attached(&self) -> Option<Duration> {
        Some(self.jvm.attached())
    }

    fn pauses(&mut self) -> Option<PauseLog> {
        self.pauses.take()
    }

    fn fold(&mut self, stopped: Stopped) -> Result<Folded, Failure> {
        let (slices, note) = self.jvm.slices();
        let folded = results::fold(self, stopped, slices)?;
        let mut folded = self.completed(folded)?;
        folded.notes.extend(self.given.tally.notes(&self.plan));
        folded.notes.extend(note);
        Ok(folded)
    }

    fn raw(&mut self) -> Result<Raw, Failure> {
        let recording = self.jvm.recording(results::MAX_RAW);
        let (file, size) = recording.map_err(|error| Failure::plain(error.to_string()))?;
        Ok(Raw { file, size })
    }

    fn leave(self: Box<Self>) -> Vec<String> {
        self.jvm.leave()
    }
}
