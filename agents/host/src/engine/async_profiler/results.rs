//! Reads async-profiler's recording into one profile per event.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use flamegraph::{
    read_jfr_part, unfreed, Error, Limits, Profile, ReadOptions, Recording, Settings, SliceOf,
    Threads, ValueType, MOST_LIVE,
};

use super::chunks::{self, Finished};
use super::plan::{Choice, Plan};
use super::tally::Tally;
use super::AsyncProfiler;
use crate::engine::api::{EventProfile, Folded, Note, Part, Stopped};
use crate::resources::limits;
use crate::wire::outcome::{Code, Failure};

/// The largest recording that is read, in bytes. It is read chunk by chunk.
const MAX_RECORDING: u64 = 2 << 30;
/// The largest chunk, which is held in memory. The profiler writes chunks of 8 MiB.
const MAX_CHUNK: u64 = 64 << 20;
/// The most bytes of names of a recording.
const MOST_NAMES: usize = 64 << 20;
const NAMES_PART: u64 = 8;
/// The largest raw recording that is sent.
pub const MAX_RAW: u64 = 512 << 20;
/// The most warnings of one recording that become notes.
const MOST_WARNINGS: usize = 3;

/// What parts of a recording were folded before it was over.
#[derive(Default)]
pub(super) struct Given {
    /// Where they end in the file.
    pub bytes: u64,
    /// When they end, in microseconds since 1970.
    pub until: i64,
    seconds: f64,
    allocations: u64,
    settings: Settings,
    pub tally: Tally,
}

/// Fold the chunks that were finished meanwhile. Their disk space is given back unless the file is wanted.
pub(super) fn fold_part(
    recorder: &mut AsyncProfiler,
    slices: Option<Arc<dyn SliceOf>>,
) -> Result<Option<Part>, Failure> {
    let recording = recorder.jvm.recording(u64::MAX);
    let (file, _) = recording.map_err(|error| Failure::plain(error.to_string()))?;
    let from = recorder.given.bytes;
    let finished = chunks::finished(&file, from).map_err(|error| limits::unread(&error))?;
    let Some(Finished { to, until }) = finished else {
        return Ok(None);
    };
    let recording = read(recorder, &file, (from, to), slices)?.map_err(unreadable)?;
    let seconds = (until - recording.start / 1000).max(0) as f64 / 1e6;
    let (plan, used) = (&recorder.plan, &recorder.used);
    let tally = &mut recorder.given.tally;
    let folded = of_recording(&recording, Stopped::OnRequest, plan, used, seconds, tally)?;
    recorder.given.allocations += allocations(&recording);
    recorder.given.seconds += seconds;
    recorder.given.settings = recording.settings;
    (recorder.given.bytes, recorder.given.until) = (to, until);
    if !recorder.jvm.shared.sampling.keep_raw {
        recorder.jvm.forget(&file, to);
    }
    Ok(Some(Part {
        folded,
        until,
        more_cpu_seconds: 0.0,
    }))
}

/// Fold what the parts did not have. `slices`: for which part of the job samples were taken.
pub(super) fn fold(
    recorder: &mut AsyncProfiler,
    stopped: Stopped,
    slices: Option<Arc<dyn SliceOf>>,
) -> Result<Folded, Failure> {
    let given = &recorder.given;
    let most = given.bytes.saturating_add(MAX_RECORDING);
    let recording = recorder.jvm.recording(most);
    let (file, size) = recording.map_err(|error| match stopped {
        Stopped::OnRequest | Stopped::Early => Failure::new(
            format!("the profiler's output is missing: {error}"),
            "check whether the disk is full",
        )
        .coded(Code::OutputMissing),
        Stopped::WithTheProcess => killed(),
    })?;
    let plan = &recorder.plan;
    let (used, seconds) = (&recorder.used, recorder.seconds - given.seconds);
    let recording = match read(recorder, &file, (given.bytes, size), slices)? {
        Err(Error::Empty(_)) if given.bytes > 0 => {
            let mut folded = nothing(plan, used);
            if stopped == Stopped::Early {
                folded.notes.push(early(given.seconds));
            }
            return Ok(folded);
        }
        Err(Error::Empty(_)) if stopped == Stopped::WithTheProcess => return Err(killed()),
        read => read.map_err(unreadable)?,
    };
    let sampled = given.allocations + allocations(&recording);
    let before = given.seconds;
    let tally = &mut recorder.given.tally;
    let mut folded = of_recording(&recording, stopped, plan, used, seconds, tally)?;
    if stopped == Stopped::Early {
        let last = recording.sampled.iter().map(|sampled| sampled.last).max();
        let seconds = before + last.unwrap_or(0) as f64 / 1e9;
        folded.notes.insert(0, early(seconds));
    }
    let live = plan.events.iter().any(|event| event == "live");
    if live && !recording.live_cut && loses_live(sampled, recorder.collections) {
        folded.notes.push(live_cut(plan.interval("live")));
    }
    Ok(folded)
}

/// Read a part of the file, which begins with a chunk. The inner error is about what stands there.
fn read(
    recorder: &AsyncProfiler,
    mut file: &File,
    (from, to): (u64, u64),
    slices: Option<Arc<dyn SliceOf>>,
) -> Result<Result<Recording, Error>, Failure> {
    let (plan, shared) = (&recorder.plan, &recorder.jvm.shared);
    let within = &shared.limits;
    let limits = Limits {
        cells: within.cells(plan.events.len()),
        rows: within.rows(),
        chunk_bytes: MAX_CHUNK,
        names_bytes: MOST_NAMES.min(within.memory_part(NAMES_PART) as usize),
        ..Limits::default()
    };
    // The JVM's user may still write to it.
    let mut bytes = || -> Result<_, Failure> {
        let begin = file.seek(SeekFrom::Start(from));
        begin.map_err(|error| limits::unread(&error))?;
        Ok(within.reading(file.take(to.saturating_sub(from))))
    };
    let failed = |error: Error| match error {
        Error::Io(error) => Err(limits::unread(&error)),
        Error::Limit { .. } => Err(within.too_large(&error.to_string())),
        error => Ok(Err(error)),
    };
    let unfreed = match plan.has("nativelive") {
        true => match unfreed(bytes()?, recorder.seconds, &limits) {
            Ok(unfreed) => Some(Arc::new(unfreed)),
            Err(error) => return failed(error),
        },
        false => None,
    };
    let options = ReadOptions {
        slices,
        unfreed,
        ..wanted(limits, shared.sampling.timeline)
    };
    let read = read_jfr_part(bytes()?, &options, recorder.given.settings.clone());
    read.map(Ok).or_else(failed)
}

/// The rest of a recording of which the parts had all.
fn nothing(plan: &Plan, used: &Choice) -> Folded {
    let empty = |event: &String| EventProfile {
        profile: Profile::new(values(event)),
        event: event.clone(),
        source: plan.source(event, used),
        interval: plan.interval(event),
        taken: 0,
        callers_unsure: false,
    };
    Folded {
        profiles: plan.events.iter().map(empty).collect(),
        notes: Vec::new(),
    }
}

/// How many allocations were sampled.
fn allocations(recording: &Recording) -> u64 {
    let allocations = recording.profile.value_named("alloc_objects").ok();
    let mut sampled = recording.sampled.iter();
    let sampled = allocations.and_then(|it| sampled.find(|sampled| sampled.count == it));
    sampled.map_or(0, |sampled| sampled.taken)
}

/// Whether objects were surely lost: each collection makes room in the profiler's table, which takes no more until the
/// next one once it is full.
fn loses_live(sampled: u64, collections: Option<u64>) -> bool {
    let room = collections.map(|times| MOST_LIVE.saturating_mul(times.saturating_add(1)));
    room.is_some_and(|room| sampled > room)
}

/// The same for a recording in memory. `used` recorded the event with the profiler's only `event=`; the profiler sampled
/// for `seconds`. What is judged of the whole recording goes to `tally`.
pub fn of_recording(
    recording: &Recording,
    stopped: Stopped,
    plan: &Plan,
    used: &Choice,
    seconds: f64,
    tally: &mut Tally,
) -> Result<Folded, Failure> {
    let notes = recording.profile.warnings().iter().take(MOST_WARNINGS);
    let notes = notes.map(|warning| {
        Note::degraded(format!("a damaged recording: {warning}")).coded(Code::DamagedRecording)
    });
    let mut notes: Vec<Note> = notes.collect();
    if recording.live_cut {
        notes.push(live_cut(plan.interval("live")));
    }
    let profiles = plan
        .events
        .iter()
        .map(|event| one(recording, event, plan, used));
    let profiles: Result<Vec<EventProfile>, Error> = profiles.collect();
    let mut profiles = profiles.map_err(unreadable)?;
    let behind = match stopped {
        Stopped::OnRequest => {
            tally.add_wall(seconds, recording.wall_busiest, plan.interval("wall"))
        }
        // Samples that were not written yet are lost, so their number proves nothing.
        Stopped::WithTheProcess | Stopped::Early => None,
    };
    if let Some(factor) = behind {
        let of_wall = |profile: &&mut EventProfile| matches!(&*profile.event, "wall" | "offcpu");
        for recorded in profiles.iter_mut().filter(of_wall) {
            stretch(recorded, factor).map_err(unreadable)?;
        }
    }
    for recorded in &profiles {
        tally.add_stacks(recorded).map_err(unreadable)?;
    }
    Ok(Folded { notes, profiles })
}

/// A note that there may be more live objects than async-profiler keeps, at this allocation interval.
fn live_cut(interval: u64) -> Note {
    let larger = interval.saturating_mul(4).div_ceil(1 << 20);
    let note = Note::of(Failure::new(
        format!("there were more live objects than the {MOST_LIVE} samples that async-profiler keeps, or nearly so many: others may be missing"),
        format!("record with --alloc-interval {larger}m"),
    ));
    note.coded(Code::LiveCut)
        .with("event", "live")
        .with("bytes", larger << 20)
}

/// The profiler's own time limit uses the wall clock.
fn early(seconds: f64) -> Note {
    let seconds = seconds.ceil();
    Note::of(Failure::new(
        format!("the profiler ended early, in second {seconds}: the host's clock was set forward, the host slept, or somebody else stopped it"),
        "record again",
    ).coded(Code::ProfilerEnded))
}

fn stretch(recorded: &mut EventProfile, factor: f64) -> flamegraph::Result<()> {
    let total = recorded.profile.total(1)?;
    recorded.interval = (recorded.interval as f64 * factor).round() as u64;
    recorded.profile = recorded
        .profile
        .with_total(1, (total as f64 * factor).round() as i64)?;
    Ok(())
}

pub fn wanted(limits: Limits, times: bool) -> ReadOptions {
    ReadOptions {
        times,
        threads: Threads::Groups,
        estimate: true,
        off_cpu: true,
        limits,
        ..ReadOptions::default()
    }
}

pub(super) fn unreadable(error: Error) -> Failure {
    Failure::plain(format!("the profiler's output cannot be read: {error}"))
        .coded(Code::DamagedRecording)
}

fn killed() -> Failure {
    Failure::new(
        "the JVM ended during the recording and wrote nothing that can be read: it was killed (SIGKILL, out of memory) or crashed",
        "look into the system's log and for hs_err files",
    ).coded(Code::ProcessKilled)
}

/// One event's profile; empty if there were no samples.
fn one(
    recording: &Recording,
    event: &str,
    plan: &Plan,
    used: &Choice,
) -> flamegraph::Result<EventProfile> {
    let whole = &recording.profile;
    let wanted = values(event);
    let named = |value: &ValueType| whole.value_named(&value.name);
    let found: Result<Vec<usize>, Error> = wanted.iter().map(named).collect();
    let (profile, taken) = match found {
        Ok(found) => {
            let mut sampled = recording.sampled.iter();
            let sampled = sampled.find(|sampled| found.first() == Some(&sampled.count));
            let times = sampled.and_then(|sampled| sampled.times.as_ref());
            let taken = sampled.map_or(0, |sampled| sampled.taken);
            (whole.select_timed(&found, times)?, taken)
        }
        Err(_) => (Profile::new(wanted), 0),
    };
    let source = plan.source(event, used);
    Ok(EventProfile {
        profile,
        event: event.to_owned(),
        source,
        interval: plan.interval(event),
        taken,
        callers_unsure: false,
    })
}

pub(super) fn values(event: &str) -> Vec<ValueType> {
    let (count, amount, unit) = match event {
        "cpu" => ("samples", "cpu", "nanoseconds"),
        "wall" => ("wall_samples", "wall", "nanoseconds"),
        "offcpu" => ("offcpu_samples", "offcpu", "nanoseconds"),
        "alloc" => ("alloc_objects", "alloc_space", "bytes"),
        "live" => ("inuse_objects", "inuse_space", "bytes"),
        "lock" => ("contentions", "delay", "nanoseconds"),
        "nativemem" => ("native_allocs", "native_space", "bytes"),
        "nativelive" => ("native_inuse_allocs", "native_inuse_space", "bytes"),
        counted => return vec![ValueType::new(counted, "count")],
    };
    vec![ValueType::new(count, "count"), ValueType::new(amount, unit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_allocations_than_the_table_has_room_for() {
        let recording = |events: &[&str], taken| {
            let types: Vec<ValueType> = events.iter().flat_map(|event| values(event)).collect();
            let sampled = |count| flamegraph::Sampled {
                count,
                amount: None,
                taken,
                last: 0,
                times: None,
            };
            Recording {
                profile: Profile::new(types),
                sampled: vec![sampled(0)],
                lost: 0,
                wall_busiest: 0,
                start: 0,
                engine: None,
                live_cut: false,
                settings: Settings::default(),
            }
        };
        let both = ["alloc", "live"];
        for (events, taken, collections, loses) in [
            (&both[..], 3073, Some(2), true),
            (&both[..], 3072, Some(2), false),
            (&both[..], 1025, Some(0), true),
            (&both[..], 9999, None, false),
            (&both[1..], 9999, Some(2), false),
        ] {
            let sampled = allocations(&recording(events, taken));
            assert_eq!(
                loses_live(sampled, collections),
                loses,
                "{taken} {collections:?}"
            );
        }
    }
}
