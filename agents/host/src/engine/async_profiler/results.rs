//! What async-profiler wrote, as profiles of one event each.

use std::fs::File;

use flamegraph::{Limits, Profile, ReadOptions, Threads};

use super::jvm::Jvm;
use super::plan::{Choice, Plan};
use crate::clock::Clock;
use crate::engine::{EventProfile, Folded, Note, Raw, Stopped};
use crate::outcome::Failure;

/// The largest recording that is read, in bytes. It is read piece by piece.
const MAX_RECORDING: u64 = 4 << 30;
/// The largest that is sent as it is.
const MAX_RAW: u64 = 512 << 20;

/// A recording that is over.
pub struct Recorded {
    file: File,
    stopped: Stopped,
}

impl Recorded {
    pub fn open(jvm: &Jvm, stopped: Stopped) -> Result<Self, Failure> {
        match (jvm.recording(MAX_RECORDING), stopped) {
            (Ok((file, _)), _) => Ok(Self { file, stopped }),
            (Err(error), Stopped::AsTold) => Err(Failure::new(
                format!("the profiler's output is missing: {error}"),
                "see whether the folder's disk is full",
            )),
            (Err(_), Stopped::WithTheProcess) => Err(killed()),
        }
    }

    /// The profiles of the plan's events. `used`: what records the event that takes the profiler's only `event=`.
    pub fn fold(
        self,
        plan: &Plan,
        used: Option<&Choice>,
        clock: &Clock,
    ) -> Result<Folded, Failure> {
        let damaged = |error: flamegraph::Error| {
            Failure::plain(format!("the profiler's output cannot be read: {error}"))
        };
        let options = ReadOptions {
            limits: Limits::default(),
            threads: Threads::Groups,
            ..ReadOptions::default()
        };
        let whole = flamegraph::read_stream(self.file, &options).map_err(damaged)?;
        let notes = whole.warnings().iter().map(Note::degraded).collect();
        let mut profiles = Vec::new();
        for event in &plan.events {
            let source = used.map_or_else(|| event.clone(), |choice| plan.source(event, choice));
            let profile = one(&whole, event).map_err(damaged)?;
            profiles.push(EventProfile {
                event: event.clone(),
                source,
                interval: plan.interval(event),
                taken: profile.total(0).map_err(damaged)? as u64,
                profile,
                timeline: Vec::new(),
            });
        }
        let _ = (self.stopped, clock.cpu_seconds);
        Ok(Folded { profiles, notes })
    }
}

fn one(whole: &Profile, event: &str) -> flamegraph::Result<Profile> {
    let values: Vec<usize> = columns(event)
        .iter()
        .filter_map(|name| whole.value_named(name).ok())
        .collect();
    whole.select(&values)
}

fn columns(event: &str) -> [&str; 2] {
    match event {
        "cpu" => ["samples", "cpu"],
        "wall" => ["wall_samples", "wall"],
        "offcpu" => ["offcpu_samples", "offcpu"],
        "alloc" => ["alloc_objects", "alloc_space"],
        "live" => ["inuse_objects", "inuse_space"],
        "lock" => ["contentions", "delay"],
        "nativemem" => ["native_allocs", "native_space"],
        other => [other, ""],
    }
}

fn killed() -> Failure {
    Failure::new(
        "the JVM ended during the recording and wrote nothing: it was killed (SIGKILL, out of memory) or crashed",
        "look at the system's log and at hs_err files",
    )
}

/// The recording as it is.
pub fn raw(jvm: &Jvm) -> Result<Raw, Failure> {
    let (file, size) = jvm
        .recording(MAX_RAW)
        .map_err(|error| Failure::plain(error.to_string()))?;
    Ok(Raw {
        name: "recording.jfr".to_owned(),
        file,
        size,
    })
}
