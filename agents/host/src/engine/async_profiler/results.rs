//! What async-profiler wrote, as profiles of one event each.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use flamegraph::{read_jfr, Error, Limits, Profile, ReadOptions, Recording, Threads, ValueType};

use super::jvm::Jvm;
use super::plan::{Choice, Plan};
use crate::engine::api::{share, EventProfile, Folded, Note, Raw, Stopped};
use crate::resources::limits;
use crate::wire::outcome::{Code, Failure};

/// The largest recording that is read, in bytes. It is read chunk by chunk.
const MAX_RECORDING: u64 = 2 << 30;
/// The largest chunk, which is held in memory. The profiler was told to write chunks of 8 MiB.
const MAX_CHUNK: u64 = 64 << 20;
/// Bytes of names that may be made of a recording.
const MOST_NAMES: usize = 64 << 20;
/// The part of the agent's memory for names, where that is less.
const NAMES_PART: u64 = 8;
/// The largest recording that is sent as it is.
const MAX_RAW: u64 = 512 << 20;
/// What a chunk of a recording begins with: four letters, the version, and its size.
const CHUNK_HEAD: usize = 16;
/// No chunk is smaller than its whole header. The recording is the JVM's user's: it may say anything of itself.
const MIN_CHUNK: u64 = 68;
/// More chunks are not looked at; the profiler writes one in 5 s, or in 8 MiB.
const MOST_CHUNKS: usize = 1 << 16;
/// Warnings of one recording that are told.
const MOST_WARNINGS: usize = 3;

/// The sampler of wall-clock time may fall behind by these factors before it is corrected, and the result degraded.
const BEHIND: f64 = 1.02;
const FAR_BEHIND: f64 = 1.2;
/// The depth of outermost frames: above them are the groups of threads.
const BELOW_THREADS: u32 = 2;
/// Of fewer samples of a thread nothing is said.
const FEW: f64 = 20.0;

/// The profiles of the plan's events. `used`: what recorded the event that took the profiler's only `event=`;
/// `seconds`: how long the profiler sampled.
pub fn fold(
    jvm: &Jvm,
    stopped: Stopped,
    plan: &Plan,
    used: &Choice,
    seconds: f64,
) -> Result<Folded, Failure> {
    let (recording, cut) = read(jvm, stopped, plan.events.len())?;
    let mut folded = of_recording(&recording, stopped, plan, used, seconds)?;
    folded.notes.extend(cut);
    Ok(folded)
}

/// The same of a recording that was read.
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
    let profiles = plan
        .events
        .iter()
        .map(|event| one(recording, event, plan, used));
    let profiles: Result<Vec<EventProfile>, Error> = profiles.collect();
    let mut profiles = profiles.map_err(unreadable)?;
    if stopped == Stopped::Early {
        notes.push(early(&profiles));
    }
    let interval = plan.interval("wall");
    let behind = match stopped {
        Stopped::AsTold => behind(seconds, recording.wall_busiest, interval),
        // What the sampler had not written yet is lost, and tells nothing of how fast it was.
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

/// Stacks whose outermost frame is where the profiler could walk no further. `named`: there are other events besides.
fn broken(recorded: &EventProfile, named: bool) -> flamegraph::Result<Option<Note>> {
    let nodes = recorded.profile.nodes(0)?;
    let ends = nodes.filter(|node| node.depth == BELOW_THREADS && is_end_of_walk(node.name));
    let broken: i64 = ends.map(|node| node.total_value).sum();
    let percent = share(broken as u64, recorded.profile.total(0)? as u64);
    let of = match named {
        true => format!(" ({})", recorded.event),
        false => String::new(),
    };
    Ok(percent.map(|percent| {
        Note::plain(format!(
            "{percent} of the stacks{of} are broken: async-profiler could not walk them to where their threads begin (as where a method of theirs was once recorded as an event, which changes its class)"
        ))
    }))
}

/// What async-profiler calls a frame from which it knows no caller.
fn is_end_of_walk(name: &str) -> bool {
    name.starts_with("break_") || name.starts_with("not_walkable_") || name == "unknown_Java"
}

/// The profiler's own time limit goes by the clock that people set.
fn early(profiles: &[EventProfile]) -> Note {
    let seconds = profiles.iter().map(|recorded| recorded.timeline.len());
    let seconds = seconds.max().unwrap_or(0);
    Note::of(Failure::new(
        format!("the profiler ended early, in second {seconds}: the host's clock was set forward, the host slept, or somebody else stopped it"),
        "record again",
    ).coded(Code::ProfilerEnded))
}

/// By what factor a wall-clock sample stands for more than its interval (nanoseconds): of a thread that lived
/// throughout, which JVMs always have, one should have been taken each interval.
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

/// What was recorded, and what is to be said where that is not all.
fn read(jvm: &Jvm, stopped: Stopped, events: usize) -> Result<(Recording, Option<Note>), Failure> {
    let (file, size) = jvm
        .recording(MAX_RECORDING)
        .map_err(|error| match stopped {
            Stopped::AsTold | Stopped::Early => Failure::new(
                format!("the profiler's output is missing: {error}"),
                "check whether the disk is full",
            )
            .coded(Code::OutputMissing),
            Stopped::WithTheProcess => killed(),
        })?;
    let within = jvm.limits();
    let options = wanted(Limits {
        cells: within.cells(events),
        names_bytes: MOST_NAMES.min(within.memory_part(NAMES_PART) as usize),
        ..Limits::default()
    });
    let end = readable(&file, size);
    if end == 0 && size > 0 {
        return Err(within.too_large(&large_chunk()));
    }
    match read_jfr(within.reading(file.take(end)), &options) {
        Err(Error::Empty(_)) if stopped == Stopped::WithTheProcess => Err(killed()),
        Err(Error::Io(error)) => Err(limits::unread(&error)),
        Err(error @ Error::Limit { .. }) => Err(within.too_large(&error.to_string())),
        read => {
            let cut = (end < size).then(|| Note::of(within.too_large(&large_chunk())));
            Ok((read.map_err(unreadable)?, cut))
        }
    }
}

/// What is made of a recording, whatever was recorded.
pub fn wanted(limits: Limits) -> ReadOptions {
    ReadOptions {
        threads: Threads::Groups,
        estimate: true,
        off_cpu: true,
        limits,
        ..ReadOptions::default()
    }
}

fn large_chunk() -> String {
    format!(
        "a piece of it, and what follows, is larger than {} MiB, or none that a profiler writes",
        MAX_CHUNK >> 20
    )
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

/// How far a recording is to be read: up to a chunk that would take more memory than ours do. The last one may have
/// no size, or a wrong one, if it was never finished.
fn readable(file: &File, size: u64) -> u64 {
    let mut at = 0;
    for _ in 0..MOST_CHUNKS {
        if size - at <= MAX_CHUNK {
            return size;
        }
        let mut head = [0; CHUNK_HEAD];
        if file.read_exact_at(&mut head, at).is_err() {
            return at;
        }
        let [.., a, b, c, d, e, f, g, h] = head;
        match u64::from_be_bytes([a, b, c, d, e, f, g, h]) {
            chunk @ MIN_CHUNK..=MAX_CHUNK => at += chunk,
            _ => return at,
        }
    }
    at
}

/// One event's profile, which is empty where there was none.
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
    let (profile, timeline) = match found {
        Ok(found) => {
            let sampled = recording.sampled.iter();
            let sampled = sampled.filter(|sampled| found.first() == Some(&sampled.count));
            let timeline = sampled.flat_map(|sampled| sampled.timeline.clone());
            (whole.select(&found)?, timeline.collect())
        }
        Err(_) => (Profile::new(wanted), Vec::new()),
    };
    let source = plan.source(event, used);
    Ok(EventProfile {
        profile,
        event: event.to_owned(),
        source,
        interval: plan.interval(event),
        taken: timeline.iter().sum(),
        timeline,
    })
}

/// The values of an event's profile.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Where reading ends of a file with chunks of these sizes by their own word, and really.
    fn end(name: &str, chunks: &[(u64, u64)]) -> u64 {
        let path = std::env::temp_dir().join(format!("hprofiler-{name}-{}", std::process::id()));
        let mut file = File::create_new(&path).unwrap();
        std::fs::remove_file(path.clone()).unwrap();
        let mut size = 0;
        for (told, real) in chunks {
            let head = [&b"FLR\0\0\x02\0\0"[..], &told.to_be_bytes()].concat();
            file.write_all_at(&head, size).unwrap();
            size += real;
        }
        file.set_len(size).unwrap();
        file.flush().unwrap();
        let file = File::open(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&file)
        ));
        readable(&file.unwrap(), size)
    }

    #[test]
    fn no_chunk_is_larger_than_memory() {
        const M: u64 = 1 << 20;
        for (name, chunks, want) in [
            ("small", vec![(9 * M, 9 * M); 20], 180 * M),
            (
                "unfinished",
                vec![(60 * M, 60 * M), (1024 * M, 9 * M)],
                69 * M,
            ),
            ("huge", vec![(9 * M, 9 * M), (900 * M, 900 * M)], 9 * M),
            ("endless", vec![(0, 100 * M)], 0),
            ("none", vec![(9 * M, 9 * M), (8, 8), (M, 100 * M)], 9 * M),
            (
                "least",
                vec![(68, 68), (9 * M, 9 * M), (900 * M, 900 * M)],
                9 * M + 68,
            ),
        ] {
            assert_eq!(end(name, &chunks), want, "{name}");
        }
    }

    #[test]
    fn no_more_chunks_are_looked_at_than_are_written() {
        let chunks = vec![(100, 100); MOST_CHUNKS + 1];
        let rest = (MAX_CHUNK + 1, MAX_CHUNK + 1);
        let end = end("many", &[&chunks[..], &[rest]].concat());
        assert_eq!(end, 100 * MOST_CHUNKS as u64);
    }

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
    fn stacks_that_were_not_walked_to_their_begin() {
        let told = |whole: i64, broken: i64, named: bool| {
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
                timeline: Vec::new(),
            };
            let note = super::broken(&recorded, named).unwrap();
            note.map_or(String::new(), |note| note.text)
        };
        assert_eq!(told(100, 2, false), "");
        assert!(told(100, 93, false).starts_with("93 % of the stacks are broken: "));
        assert!(told(100, 93, true).starts_with("93 % of the stacks (cpu) are broken: "));
    }

    #[test]
    fn values_of_events() {
        assert_eq!(
            values("page-faults"),
            [ValueType::new("page-faults", "count")]
        );
        assert_eq!(values("lock")[1], ValueType::new("delay", "nanoseconds"));
    }
}
