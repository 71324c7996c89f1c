//! Reads async-profiler's recording into one profile per event.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use flamegraph::{
    read_jfr_part, Error, Limits, Profile, ReadOptions, Recording, Settings, SliceOf, Threads,
    ValueType, MOST_LIVE,
};

use super::chunks::{self, Finished};
use super::plan::{Choice, Plan};
use super::AsyncProfiler;
use crate::engine::api::{fraction, share, EventProfile, Folded, Note, Part, Stopped};
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

/// Above these factors a slow wall-clock sampler is corrected for, and above the second the result is degraded.
const BEHIND: f64 = 1.02;
const FAR_BEHIND: f64 = 1.2;
/// The depth of the outermost frames, below the thread groups.
const BELOW_THREADS: u32 = 2;
/// Fewer samples of a thread prove nothing.
const FEW: f64 = 20.0;

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
    let folded = of_recording(&recording, Stopped::OnRequest, plan, used, seconds)?;
    recorder.given.allocations += allocations(&recording);
    recorder.given.seconds += seconds;
    recorder.given.settings = recording.settings;
    (recorder.given.bytes, recorder.given.until) = (to, until);
    if !recorder.jvm.shared.sampling.keep_raw {
        recorder.jvm.forget(&file, to);
    }
    Ok(Some(Part { folded, until }))
}

/// Fold what the parts did not have. `slices`: for which part of the job samples were taken.
pub(super) fn fold(
    recorder: &AsyncProfiler,
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
        Err(Error::Empty(_)) if given.bytes > 0 => return Ok(nothing(plan, used)),
        Err(Error::Empty(_)) if stopped == Stopped::WithTheProcess => return Err(killed()),
        read => read.map_err(unreadable)?,
    };
    let mut folded = of_recording(&recording, stopped, plan, used, seconds)?;
    let live = plan.events.iter().any(|event| event == "live");
    let sampled = given.allocations + allocations(&recording);
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
    let options = ReadOptions {
        slices,
        ..wanted(limits, shared.sampling.timeline)
    };
    let begin = file.seek(SeekFrom::Start(from));
    begin.map_err(|error| limits::unread(&error))?;
    // The JVM's user may still write to it.
    let bytes = within.reading(file.take(to.saturating_sub(from)));
    match read_jfr_part(bytes, &options, recorder.given.settings.clone()) {
        Err(Error::Io(error)) => Err(limits::unread(&error)),
        Err(error @ Error::Limit { .. }) => Err(within.too_large(&error.to_string())),
        read => Ok(read),
    }
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
/// for `seconds`.
pub fn of_recording(
    recording: &Recording,
    stopped: Stopped,
    plan: &Plan,
    used: &Choice,
    seconds: f64,
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
    if stopped == Stopped::Early {
        notes.push(early(recording));
    }
    let interval = plan.interval("wall");
    let behind = match stopped {
        Stopped::OnRequest => behind(seconds, recording.wall_busiest, interval),
        // Samples that were not written yet are lost, so their number proves nothing.
        Stopped::WithTheProcess | Stopped::Early => None,
    };
    if let Some(factor) = behind {
        let of_wall = |profile: &&mut EventProfile| matches!(&*profile.event, "wall" | "offcpu");
        for recorded in profiles.iter_mut().filter(of_wall) {
            stretch(recorded, factor).map_err(unreadable)?;
        }
        notes.push(slow(interval, factor));
    }
    for recorded in &profiles {
        notes.extend(broken(recorded, profiles.len() > 1).map_err(unreadable)?);
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

/// Objects of this size may be allocated outside of TLABs, in bytes.
const LARGE: i64 = 16 << 10;
/// The interval from which on the JVM misses too many of them, in bytes. At 128 KiB they were a twentieth too few.
const MISSING: u64 = 256 << 10;

/// A note for JDK 11 to 24 (JDK-8356372): the larger the interval, the fewer samples of large objects. At 1 MiB those of
/// 64 KiB were 26 % too few, at 4 MiB 36 %; those of 512 KiB 8 and 22 %.
pub fn large_objects(recorded: &EventProfile) -> Result<Option<Note>, Failure> {
    if recorded.interval < MISSING {
        return Ok(None);
    }
    let profile = &recorded.profile;
    let objects = profile.nodes(0).map_err(unreadable)?;
    let bytes = profile.nodes(1).map_err(unreadable)?;
    let of_size = bytes
        .zip(objects)
        .map(|(bytes, objects)| (bytes.self_value, objects.self_value));
    let large = of_size.filter(|(bytes, objects)| *bytes / LARGE >= (*objects).max(1));
    let large: i64 = large.map(|(bytes, _)| bytes).sum();
    let whole = profile.total(1).map_err(unreadable)?;
    Ok(share(large as u64, whole as u64).map(|percent| {
        let event = &recorded.event;
        let of = format!("{event}: objects of 16 KiB or more, {percent} of all bytes, may be up to a third too few");
        let remedy = "before JDK 25 they are sampled too rarely: record with --alloc-interval 128k, or on JDK 25";
        Note {
            remedy: remedy.to_owned(),
            ..Note::plain(of)
        }
        .coded(Code::LargeObjectsMissed)
        .with("event", event.clone())
        .with("share", fraction(large as u64, whole as u64))
        .with("bytes", recorded.interval)
    }))
}

/// A note about stacks that the profiler could not walk to their end. `named`: there are several events.
fn broken(recorded: &EventProfile, named: bool) -> flamegraph::Result<Option<Note>> {
    let nodes = recorded.profile.nodes(0)?;
    let ends = nodes.filter(|node| node.depth == BELOW_THREADS && is_end_of_walk(node.name));
    let broken: i64 = ends.map(|node| node.total_value).sum();
    let whole = recorded.profile.total(0)?;
    let percent = share(broken as u64, whole as u64);
    let of = match named {
        true => format!(" ({})", recorded.event),
        false => String::new(),
    };
    Ok(percent.map(|percent| {
        Note::plain(format!(
            "{percent} of the stacks{of} are broken: async-profiler could not walk them to where their threads begin (as where a method of theirs was once recorded as an event, which changes its class)"
        ))
        .coded(Code::BrokenStacks)
        .with("event", recorded.event.clone())
        .with("share", fraction(broken as u64, whole as u64))
    }))
}

fn is_end_of_walk(name: &str) -> bool {
    name.starts_with("break_") || name.starts_with("not_walkable_") || name == "unknown_Java"
}

/// The profiler's own time limit uses the wall clock.
fn early(recording: &Recording) -> Note {
    let last = recording.sampled.iter().map(|sampled| sampled.last);
    let seconds = last.max().unwrap_or(0).div_ceil(1_000_000_000);
    Note::of(Failure::new(
        format!("the profiler ended early, in second {seconds}: the host's clock was set forward, the host slept, or somebody else stopped it"),
        "record again",
    ).coded(Code::ProfilerEnded))
}

/// The factor by which a wall-clock sample stands for more than its interval (nanoseconds). A thread that lived
/// throughout, which every JVM has, should have one sample per interval.
fn behind(seconds: f64, busiest: u64, interval: u64) -> Option<f64> {
    let expected = seconds * 1e9 / interval.max(1) as f64;
    let factor = expected / busiest as f64;
    (busiest > 0 && expected >= FEW && factor > BEHIND).then_some(factor)
}

fn stretch(recorded: &mut EventProfile, factor: f64) -> flamegraph::Result<()> {
    let total = recorded.profile.total(1)?;
    recorded.interval = (recorded.interval as f64 * factor).round() as u64;
    recorded.profile = recorded
        .profile
        .with_total(1, (total as f64 * factor).round() as i64)?;
    Ok(())
}

fn slow(interval: u64, factor: f64) -> Note {
    let milliseconds = |nanoseconds: f64| (nanoseconds / 1e5).round() / 10.0;
    let interval = interval as f64;
    Note {
        degraded: factor > FAR_BEHIND,
        ..Note::of(Failure::new(
            format!(
                "the wall-clock sampler could not keep up: one sample stands for {} ms instead of {} ms",
                milliseconds(interval * factor),
                milliseconds(interval)
            ),
            "use a longer --wall-interval",
        ).coded(Code::SamplerSlow))
    }
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

fn unreadable(error: Error) -> Failure {
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

fn values(event: &str) -> Vec<ValueType> {
    let (count, amount, unit) = match event {
        "cpu" => ("samples", "cpu", "nanoseconds"),
        "wall" => ("wall_samples", "wall", "nanoseconds"),
        "offcpu" => ("offcpu_samples", "offcpu", "nanoseconds"),
        "alloc" => ("alloc_objects", "alloc_space", "bytes"),
        "live" => ("inuse_objects", "inuse_space", "bytes"),
        "lock" => ("contentions", "delay", "nanoseconds"),
        "nativemem" => ("native_allocs", "native_space", "bytes"),
        counted => return vec![ValueType::new(counted, "count")],
    };
    vec![ValueType::new(count, "count"), ValueType::new(amount, unit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_that_falls_behind() {
        const MS: u64 = 1_000_000;
        for (seconds, busiest, interval, want) in [
            (3.0, 300, 10 * MS, None),
            (3.0, 296, 10 * MS, None),
            (3.0, 305, 10 * MS, None),
            (3.0, 200, 10 * MS, Some(1.5)),
            (0.1, 5, 10 * MS, None),
            (3.0, 0, 10 * MS, None),
        ] {
            assert_eq!(behind(seconds, busiest, interval), want, "{busiest}");
        }
        let far = slow(10 * MS, 1.5);
        assert!(far.degraded && far.text.ends_with("15 ms instead of 10 ms"));
        assert!(!slow(10 * MS, 1.1).degraded);
    }

    #[test]
    fn large_objects_at_a_large_interval() {
        let note = |interval, size: i64| {
            let mut profile = Profile::new(values("alloc"));
            for (stack, objects, bytes) in [("small", 7000, 700_000), ("large", 3, 3 * size)] {
                profile.add_stack(&[stack], &[objects, bytes]).unwrap();
            }
            let recorded = EventProfile {
                profile,
                event: "alloc".to_owned(),
                source: String::new(),
                interval,
                taken: 100,
                callers_unsure: false,
            };
            large_objects(&recorded)
                .unwrap()
                .map(|note| note.parameters["share"].as_f64())
        };
        assert_eq!(note(512 << 10, 100_000), Some(Some(0.3)));
        assert_eq!(note(512 << 10, 16_000), None);
        assert_eq!(note(128 << 10, 100_000), None);
    }

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

    #[test]
    fn stacks_that_were_not_walked_to_their_begin() {
        let note = |whole: i64, broken: i64, named: bool| {
            let mut profile = Profile::new(values("cpu"));
            let stacks = [
                (["[main]", "thread_start", "Job.run"], whole - broken),
                (["[main]", "break_interpreted", "Job.run"], broken / 2),
                (
                    ["[pool-N]", "unknown_Java", "break_of"],
                    broken - broken / 2,
                ),
            ];
            for (stack, count) in stacks {
                profile.add_stack(&stack, &[count, count * 1000]).unwrap();
            }
            let recorded = EventProfile {
                profile,
                event: "cpu".to_owned(),
                source: "perf_events".to_owned(),
                interval: 1000,
                taken: whole as u64,
                callers_unsure: false,
            };
            let note = super::broken(&recorded, named).unwrap();
            note.map(|note| (note.text, note.parameters["share"].as_f64()))
        };
        assert_eq!(note(100, 2, false), None);
        let (text, share) = note(100, 93, false).unwrap();
        assert!(text.starts_with("93 % of the stacks are broken: "));
        assert_eq!(share, Some(0.93));
        let (text, _) = note(100, 93, true).unwrap();
        assert!(text.starts_with("93 % of the stacks (cpu) are broken: "));
    }
}
