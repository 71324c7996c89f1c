//! JFR recordings made by hand: every encoding, several chunks, and damage.

use flamegraph::{read, read_jfr, Limits, Profile, ReadOptions, Threads};

use crate::jfr_maker::*;
use crate::support;

fn options(threads: bool) -> ReadOptions {
    let threads = if threads { Threads::Each } else { Threads::Off };
    ReadOptions {
        threads,
        ..ReadOptions::default()
    }
}

fn folded(profile: &Profile, value: &str) -> String {
    support::folded(profile, profile.value_named(value).unwrap())
}

#[test]
fn both_chunks_count_in_every_value() {
    let profile = read(&recording(), &options(false)).unwrap();
    assert_eq!(
        folded(&profile, "samples"),
        "[unknown] 2\ndemo/Main.café_[j];demo/Main.hі_[i];leaf_[k] 4\n"
    );
    assert_eq!(
        folded(&profile, "cpu").lines().next(),
        Some("[unknown] 2000")
    );
    assert_eq!(folded(&profile, "wall_samples"), "demo/Main.café_[0] 2\n");
    assert_eq!(
        folded(&profile, "alloc_space"),
        "demo/Main.café_[0];demo.Thing[][]_[i] 8192\n"
    );
    assert_eq!(folded(&profile, "delay"), "demo/Main.café_[0] 1000\n");
    assert!(profile.warnings().is_empty());
}

#[test]
fn the_class_of_a_native_function_is_its_library() {
    // Written again: the last text of a number counts.
    let in_library = |library| {
        let library = checkpoint(&[pool(12, &[(6, text(library))])]);
        let parts = [Metadata::event(CLASSES), samples(), constants(), library];
        read(&chunk(&parts), &options(false)).unwrap()
    };
    for (library, module) in [("libdemo.so", "libdemo.so"), ("vdso", "[vdso]")] {
        let with = in_library(library);
        assert_eq!(with.modules().collect::<Vec<_>>(), [("leaf", module)]);
    }
    let without = read(&whole_chunk(), &options(false)).unwrap();
    assert_eq!(without.modules().count(), 0);
    let with = in_library("libdemo.so");
    assert_eq!(folded(&with, "samples"), folded(&without, "samples"));
}

#[test]
fn chunks_before_a_large_one_are_kept() {
    let chunk = whole_chunk();
    let size = chunk.len() as u64;
    let mut larger = chunk.clone();
    larger[8..16].copy_from_slice(&(size + 1).to_be_bytes());
    larger.push(0);
    let both = [chunk.clone(), larger].concat();
    let read_within = |bytes: &[u8], chunk_bytes| {
        let limits = Limits {
            chunk_bytes,
            ..Limits::default()
        };
        let options = ReadOptions {
            limits,
            ..options(true)
        };
        read(bytes, &options)
    };
    let kept = read_within(&both, size).unwrap();
    let alone = read_within(&chunk, size).unwrap();
    assert_eq!(folded(&kept, "samples"), folded(&alone, "samples"));
    assert!(kept.warnings()[0].contains("bytes of a chunk"));
    assert!(alone.warnings().is_empty() && read_within(&chunk, size - 1).is_err());
}

#[test]
fn threads_are_roots() {
    let profile = read(&recording(), &options(true)).unwrap();
    assert_eq!(
        folded(&profile, "wall_samples"),
        "[tid=8];demo/Main.café_[0] 2\n"
    );
    assert_eq!(
        folded(&profile, "contentions"),
        "[wörker 1 tid=1234];demo/Main.café_[0] 2\n"
    );
}

#[test]
fn samples_are_counted() {
    let recording = read_jfr(&recording()[..], &options(false)).unwrap();
    let taken: Vec<(&str, u64, u64)> = recording
        .sampled
        .iter()
        .map(|sampled| {
            let name = &recording.profile.values()[sampled.count].name;
            (&**name, sampled.taken, sampled.last / 1_000_000_000)
        })
        .collect();
    let expected = [
        ("samples", 6, 2),
        ("wall_samples", 2, 0),
        ("alloc_objects", 2, 0),
        ("contentions", 2, 0),
    ];
    assert_eq!(taken, expected);
    assert_eq!((recording.lost, recording.engine), (0, None));
}

#[test]
fn estimated_objects_and_frames_of_waits() {
    let wanted = ReadOptions {
        estimate: true,
        off_cpu: true,
        threads: Threads::Groups,
        ..ReadOptions::default()
    };
    let profile = read(&recording(), &wanted).unwrap();
    assert_eq!(
        folded(&profile, "alloc_objects"),
        "[wörker N];demo/Main.café_[0];demo.Thing[][]_[i] 512\n"
    );
    assert_eq!(
        folded(&profile, "offcpu_samples"),
        "[unknown thread];[other];demo/Main.café_[0] 2\n"
    );
    assert_eq!(
        folded(&profile, "wall_samples"),
        "[unknown thread];demo/Main.café_[0] 2\n"
    );
}

#[test]
fn a_span_of_time_has_its_samples_only() {
    let late = ReadOptions {
        time: Some((1.5, f64::INFINITY)),
        ..ReadOptions::default()
    };
    let profile = read(&recording(), &late).unwrap();
    assert_eq!(profile.values().len(), 2);
    assert_eq!(profile.total(0).unwrap(), 2);
}

/// A chunk that async-profiler was told to take these things for, with these samples.
fn told(samples: &[u8]) -> Vec<u8> {
    let setting = |(id, name, value): &(u64, &str, &str)| {
        event(32, &[numbers(&[0, *id]), text(name), text(value)].concat())
    };
    let settings = [
        (33, "event", "cpu"),
        (30, "interval", "1000"),
        (30, "wall", "5000"),
        (31, "alloc", "0"),
        (31, "live", "true"),
        (5000, "lock", "10000"),
        (34, "nativemem", "1024"),
    ];
    let settings: Vec<u8> = settings.iter().flat_map(setting).collect();
    let classes = format!("{CLASSES}33 jdk.ActiveRecording\n");
    let parts = [
        Metadata::event(&classes),
        settings,
        samples.to_vec(),
        constants(),
    ];
    chunk(&parts)
}

#[test]
fn events_without_samples_have_values() {
    let options = ReadOptions {
        off_cpu: true,
        ..options(false)
    };
    let with_all = read(&told(&samples()), &options).unwrap();
    let with_one = event(30, &numbers(&[1_000, 9, 1, 1]));
    let mut sum = read(&told(&with_one), &options).unwrap();
    let names: Vec<&str> = sum.values().iter().map(|value| &*value.name).collect();
    let expected = "samples cpu wall_samples wall offcpu_samples offcpu alloc_objects alloc_space \
                    inuse_objects inuse_space contentions delay native_allocs native_space";
    assert_eq!(names.join(" "), expected);
    assert_eq!(sum.total(sum.value_named("delay").unwrap()).unwrap(), 0);
    let taken = read_jfr(&told(&with_one)[..], &options).unwrap().sampled[4].taken;
    assert_eq!(taken, 0);
    sum.merge(&with_all).unwrap();
    assert_eq!(folded(&sum, "delay"), "demo/Main.café_[0] 500\n");
    let nothing = read(&told(&[]), &options).unwrap();
    assert_eq!(nothing.values(), sum.values());
}

#[test]
fn an_unfinished_chunk_is_left_out_with_a_warning() {
    let unfinished = [header(0), Metadata::event(CLASSES), samples()].concat();
    let profile = read(
        &[whole_chunk(), unfinished.clone()].concat(),
        &options(false),
    )
    .unwrap();
    assert_eq!(profile.total(0).unwrap(), 3);
    let place = whole_chunk().len();
    let said = format!("JFR recording, byte {place}: the chunk was never finished and has no names; it was left out");
    assert_eq!(profile.warnings(), [said]);
    assert!(profile.is_incomplete());
    let error = read(&unfinished, &options(false))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("JFR recording, byte 0: the chunk was never finished"),
        "{error}"
    );
}

#[test]
fn a_recording_cut_anywhere_gives_what_is_complete() {
    let (recording, first) = (recording(), whole_chunk().len());
    for end in 4..recording.len() {
        match read(&recording[..end], &options(true)) {
            Ok(profile) if end == first => assert!(profile.warnings().is_empty()),
            Ok(profile) => assert!(!profile.warnings().is_empty(), "cut at {end}"),
            Err(error) => assert!(end < first, "cut at {end}: {error}"),
        }
        if end >= first {
            let profile = read(&recording[..end], &options(false)).unwrap();
            assert!(
                profile
                    .total(profile.value_named("samples").unwrap())
                    .unwrap()
                    >= 3
            );
        }
    }
}

#[test]
fn types_within_themselves_are_refused() {
    const ENDLESS: &str = "2 int\n20 test.A a:20 b:20[]\n21 test.B a:22 b:22 c:22[]\n\
                           22 test.C a:21[] b:21 c:21\n23 test.D empty:24[]\n24 test.E\n";
    for class in [20, 21, 22, 23] {
        let pools = checkpoint(&[pool(class, &[(1, vec![0xff; 64])])]);
        let recording = chunk(&[Metadata::event(ENDLESS), pools]);
        let profile = read(&recording, &options(false)).unwrap();
        assert!(
            profile.warnings()[0].contains("damaged checkpoints"),
            "{:?}",
            profile.warnings()
        );
        assert!(profile.is_empty());
    }
}

#[test]
fn sums_that_do_not_fit_are_an_error() {
    let large = event(31, &numbers(&[1, 9, 2, 2, 16, i64::MAX as u64 >> 1]));
    let recording = chunk(&[Metadata::event(CLASSES), large.repeat(3), constants()]);
    let error = read(&recording, &options(false)).err().unwrap().to_string();
    assert_eq!(
        error,
        "JFR recording, byte 0: in the chunk: alloc_space (bytes): the sum does not fit in 64 bits"
    );
}

/// Above a megabyte a second thread decodes.
#[test]
fn a_large_chunk_is_read_as_a_small_one() {
    let filler = event(9999, &vec![0; 1 << 20]);
    let parts = [Metadata::event(CLASSES), samples(), filler, constants()];
    let (small, large) = (whole_chunk(), chunk(&parts));
    for threads in [false, true] {
        let wanted = ReadOptions {
            off_cpu: true,
            estimate: true,
            ..options(threads)
        };
        let [small, large] = [&small, &large].map(|bytes| read(bytes, &wanted).unwrap());
        assert_eq!(small.values(), large.values());
        for value in small.values() {
            let name = &value.name;
            assert_eq!(folded(&small, name), folded(&large, name), "{name}");
        }
    }
}

/// A chunk of an async-profiler before 3.0, which sampled this event every millisecond.
fn of_old_profiler(sampled: &str) -> Vec<u8> {
    let setting =
        |id, name, value: &str| event(32, &[numbers(&[0, id]), text(name), text(value)].concat());
    let classes = format!("{CLASSES}33 jdk.ActiveRecording\n");
    chunk(&[
        Metadata::event(&classes),
        setting(33, "event", sampled),
        setting(30, "interval", "1000000"),
        event(30, &numbers(&[1_000, 9, 1, 1])),
        event(30, &numbers(&[1_000, 9, 1, 2])),
        without_default_state(),
    ])
}

/// The constants, without the state that only async-profiler since 3.0 has.
fn without_default_state() -> Vec<u8> {
    let mut constants = constants();
    let known = b"STATE_DEFAULT";
    let place = constants
        .windows(known.len())
        .position(|text| text == known);
    constants[place.unwrap()..][..known.len()].copy_from_slice(b"STATE_RUNNING");
    constants
}

#[test]
fn before_state_default_the_setting_says_what_samples_are() {
    let cases = [
        ("cpu", "samples (count), cpu (nanoseconds)", 2_000_000),
        ("itimer", "samples (count), cpu (nanoseconds)", 2_000_000),
        (
            "wall",
            "wall_samples (count), wall (nanoseconds)",
            2_000_000,
        ),
        ("cache-misses", "cache-misses (count)", 2),
    ];
    for (sampled, values, total) in cases {
        let profile = read(&of_old_profiler(sampled), &options(false)).unwrap();
        assert_eq!(profile.value_list(), values);
        let last = profile.values().len() - 1;
        assert_eq!(profile.total(last).unwrap(), total, "{sampled}");
    }
}

/// A chunk of the JDK with events of these classes.
fn of_jdk(classes: &str, events: &[Vec<u8>]) -> Vec<u8> {
    let classes = format!("{CLASSES}40 jdk.GarbageCollection startTime:3\n{classes}");
    let metadata = Metadata::event(&classes);
    chunk(&[metadata, events.concat(), without_default_state()])
}

#[test]
fn each_chunk_has_the_clock_of_who_wrote_it() {
    let engine = [numbers(&[0, 33]), text("engine"), text("ctimer")].concat();
    let classes = format!("{CLASSES}33 jdk.ActiveRecording\n");
    let at = |mut chunk: Vec<u8>, nanoseconds: u64, ticks: u64| {
        chunk[32..40].copy_from_slice(&nanoseconds.to_be_bytes());
        chunk[48..56].copy_from_slice(&ticks.to_be_bytes());
        chunk
    };
    let of_profiler = |ticks| {
        let sample = event(30, &numbers(&[ticks, 9, 1, 1]));
        let parts = [
            Metadata::event(&classes),
            event(32, &engine),
            sample,
            constants(),
        ];
        chunk(&parts)
    };
    const SECOND: u64 = 1_000_000_000;
    let recording = [
        at(of_jdk("", &[]), 100 * SECOND, 7),
        // Its ticks are of another origin; the clock is set back before its second chunk.
        at(of_profiler(5_002 * SECOND), 101 * SECOND, 5_001 * SECOND),
        at(of_profiler(5_005 * SECOND), 60 * SECOND, 5_004 * SECOND),
    ]
    .concat();
    let of_second = |second: f64| {
        let options = ReadOptions {
            time: Some((second, second + 1.0)),
            ..options(false)
        };
        let profile = read(&recording, &options).unwrap();
        profile.total(0).unwrap()
    };
    let found = [0.5, 1.5, 3.5, 4.5].map(of_second);
    assert_eq!(found, [0, 1, 0, 1]);
}

/// Operations that take time, and DataDog's samples; `weight` is a float.
const OTHERS: &str = "\
41 jdk.SocketRead startTime:3 duration:3 eventThread:10* stackTrace:14* host:4 bytesRead:3
42 jdk.FileWrite startTime:3 duration:3 eventThread:10* stackTrace:14* path:4 bytesWritten:3
43 jdk.JavaMonitorWait startTime:3 duration:3 eventThread:10* stackTrace:14* monitorClass:11*
44 jdk.ThreadSleep startTime:3 duration:3 eventThread:10* stackTrace:14* time:3
45 jdk.OldObjectSample startTime:3 eventThread:10* stackTrace:14* objectSize:3
46 datadog.ExecutionSample startTime:3 eventThread:10* stackTrace:14* state:17* weight:3
47 datadog.MethodSample startTime:3 eventThread:10* stackTrace:14* state:17* weight:3
48 datadog.ObjectSample startTime:3 eventThread:10* stackTrace:14* objectClass:11* size:3 weight:5
49 datadog.Other startTime:3 eventThread:10* stackTrace:14*
50 jdk.ThreadStart startTime:3 eventThread:10* stackTrace:14*
";

#[test]
fn operations_and_samples_of_datadog_are_values() {
    let setting = |id, value| {
        event(
            32,
            &[numbers(&[0, id]), text("interval"), text(value)].concat(),
        )
    };
    let named = |kind, before: &[u64], name, bytes| {
        event(
            kind,
            &[numbers(before), text(name), numbers(&[bytes])].concat(),
        )
    };
    let object = [numbers(&[1, 9, 2, 2, 100]), 2.5f32.to_be_bytes().to_vec()].concat();
    let events = [
        setting(46, "1000"),
        setting(47, "5000"),
        named(41, &[1, 300, 9, 2], "host", 4096),
        named(42, &[1, 200, 9, 2], "path", 512),
        event(43, &numbers(&[1, 70, 9, 2, 2])),
        event(44, &numbers(&[1, 60, 9, 2, 9])),
        event(45, &numbers(&[1, 9, 2, 48])),
        event(46, &numbers(&[1, 9, 2, 1, 3])),
        event(47, &numbers(&[1, 9, 2, 1, 2])),
        event(48, &object).repeat(2),
        event(49, &numbers(&[1, 9, 2])).repeat(1234),
        event(49, &numbers(&[1, 9, 0])),
        event(50, &numbers(&[1, 9, 2])),
    ];
    let profile = read(&of_jdk(OTHERS, &events), &options(false)).unwrap();
    let totals: Vec<(&str, i64)> = (profile.values().iter().enumerate())
        .map(|(value, meaning)| (&*meaning.name, profile.total(value).unwrap()))
        .collect();
    let expected = [
        ("samples", 3),
        ("cpu", 3_000),
        ("wall_samples", 2),
        ("wall", 10_000),
        ("alloc_objects", 5),
        ("alloc_space", 500),
        ("contentions", 0),
        ("delay", 0),
        ("socket_operations", 1),
        ("socket_time", 300),
        ("socket_bytes", 4096),
        ("file_operations", 1),
        ("file_time", 200),
        ("file_bytes", 512),
        ("waits", 1),
        ("wait_time", 70),
        ("sleeps", 1),
        ("sleep_time", 60),
        ("old_objects", 1),
        ("old_space", 48),
    ];
    assert_eq!(totals, expected);
    let stack = "demo/Main.café_[0]";
    assert_eq!(folded(&profile, "socket_bytes"), format!("{stack} 4096\n"));
    assert_eq!(
        folded(&profile, "wait_time"),
        format!("{stack};demo.Thing[][]_[i] 70\n")
    );
    let said = ["1,234 events datadog.Other are not read"];
    assert_eq!(profile.warnings(), said);
}

#[test]
fn what_the_jdk_can_record_has_values_without_events() {
    let classes = OTHERS.lines().next().unwrap();
    let wait = event(5000, &numbers(&[1_000, 500, 9, 2, 0]));
    let one = read(&of_jdk(classes, &[wait]), &options(false)).unwrap();
    let mut sum = read(&of_jdk(classes, &[]), &options(false)).unwrap();
    let expected = "samples (count), alloc_objects (count), alloc_space (bytes), \
                    contentions (count), delay (nanoseconds), socket_operations (count), \
                    socket_time (nanoseconds), socket_bytes (bytes)";
    assert_eq!(sum.value_list(), expected);
    sum.merge(&one).unwrap();
    assert_eq!(folded(&sum, "delay"), "demo/Main.café_[0] 500\n");
    let other = read(&of_jdk(OTHERS, &[]), &options(false)).unwrap();
    assert!(sum.merge(&other).is_err());
}

const OF_JDK: &str = "\
34 jdk.ObjectAllocationSample startTime:3 eventThread:10* stackTrace:14* objectClass:11* weight:3
35 jdk.ThreadStart startTime:3 thread:10*
36 jdk.JVMInformation startTime:3 jvmVersion:4
";

/// A sample of allocations, a microsecond after the recording began.
fn allocated(thread: u64, weight: u64) -> Vec<u8> {
    event(34, &numbers(&[1_000, thread, 2, 2, weight]))
}

#[test]
fn the_first_allocations_of_a_thread_are_those_before_the_recording() {
    const VIRTUAL: u64 = 7;
    let thread = [numbers(&[0, 0]), text("v"), numbers(&[22])].concat();
    let threads = checkpoint(&[pool(10, &[(VIRTUAL, thread)])]);
    let start = event(35, &numbers(&[500, 9]));
    let left_out = |bytes: &str, samples: &str| {
        format!(
            "{bytes} of {samples} jdk.ObjectAllocationSample are left out: the first sample of a thread also \
             weighs what the thread allocated before the recording"
        )
    };
    type Chunks<'a> = &'a [&'a [Vec<u8>]];
    let cases: [(Chunks, i64, String); 5] = [
        (
            &[&[allocated(9, 5_000), allocated(9, 10)]],
            10,
            left_out("5.0 kB", "1 sample"),
        ),
        (
            &[&[allocated(9, 5_000_000), allocated(8, 100), start.clone()]],
            5_000_000,
            left_out("0.1 kB", "1 sample"),
        ),
        (&[&[start, allocated(9, 5_000)]], 5_000, String::new()),
        // The next chunk knows the threads of this one.
        (
            &[
                &[allocated(9, 5_000_000), allocated(8, 100)],
                &[allocated(9, 10), allocated(8, 20)],
            ],
            30,
            left_out("5.0 MB", "2 samples"),
        ),
        // Nothing allocates more than 10 bytes in a nanosecond.
        (
            &[&[
                threads,
                allocated(VIRTUAL, 9_000),
                allocated(VIRTUAL, 11_000),
            ]],
            9_000,
            left_out("11.0 kB", "1 sample"),
        ),
    ];
    for (chunks, bytes, warning) in cases {
        let chunks = chunks.iter().map(|events| of_jdk(OF_JDK, events));
        let recording: Vec<u8> = chunks.flatten().collect();
        let profile = read(&recording, &options(false)).unwrap();
        let space = profile.value_named("alloc_space").unwrap();
        assert_eq!(profile.total(space).unwrap(), bytes);
        assert_eq!(profile.warnings().join("\n"), warning);
        assert!(!profile.is_incomplete(), "no allocation is missing");
    }
}

#[test]
fn throttled_allocations_have_rough_shares() {
    let start = event(35, &numbers(&[500, 9]));
    let even = [vec![start], vec![allocated(9, 100); 100]].concat();
    let throttled = [even.clone(), vec![allocated(9, 10_000); 20]].concat();
    for (events, points) in [(even, 0), (throttled, 32)] {
        let profile = read(&of_jdk(OF_JDK, &events), &options(false)).unwrap();
        assert_eq!(profile.alloc_share_error(), points);
    }
}

#[test]
fn cpu_samples_of_a_jdk_up_to_24_skip_stubs() {
    let sample = event(30, &numbers(&[1_000, 9, 1, 2]));
    let jvm = |version: &str| {
        let version = format!("OpenJDK 64-Bit Server VM ({version}) for linux-amd64 JRE");
        event(36, &[numbers(&[0]), text(&version)].concat())
    };
    for (events, skips) in [
        (vec![jvm("17.0.15+6-Debian"), sample.clone()], true),
        (vec![jvm("24.0.1+9"), sample.clone()], true),
        (vec![jvm("25+36-LTS"), sample.clone()], false),
        (vec![sample], true),
        // Without CPU samples there are no shares of them.
        (vec![jvm("17.0.15+6")], false),
    ] {
        let profile = read(&of_jdk(OF_JDK, &events), &options(false)).unwrap();
        assert_eq!(profile.skips_stubs(), skips);
    }
}
