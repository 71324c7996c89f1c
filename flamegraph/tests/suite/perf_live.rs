//! perf's pipe read as a stream, made by hand: waits, limits, selection by process.

use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use flamegraph::perf_data::{Counted, Finish, JitMap, JitMaps, Live, LiveLimits, Recorded, Wanted};
use flamegraph::SymbolOptions;

use crate::perf_maker::{event, record, text, wanted, words, Thread, USER};
use crate::support;

const KERNEL: u64 = -128i64 as u64;
const SECOND: u64 = 1_000_000_000;

/// cpu-clock is event 1, context-switches event 2.
pub fn stream(records: &[Vec<u8>]) -> Vec<u8> {
    let start = [b"PERFILE2".to_vec(), words(&[16]), event(0, 1), event(3, 2)];
    [start.concat(), records.concat()].concat()
}

const MAIN: Thread = Thread { pid: 7, tid: 7 };
const POOL: Thread = Thread { pid: 7, tid: 8 };
const OTHER: Thread = Thread { pid: 9, tid: 9 };

/// The thread runs again.
fn returns(thread: Thread, time: u64) -> Vec<u8> {
    record(14, 0, &thread.trailer(time))
}

pub fn finished(live: &mut Live, pid: Option<u32>, jit: &JitMaps) -> Recorded {
    let symbols = SymbolOptions::none();
    let finish = Finish {
        pid,
        symbols: &symbols,
        jit,
        cpu_nanoseconds: None,
    };
    live.finish(&finish).unwrap()
}

fn recorded(bytes: &[u8], pid: Option<u32>) -> Recorded {
    let mut live = Live::new(wanted(), LiveLimits::default());
    live.read(bytes).unwrap();
    finished(&mut live, pid, &JitMaps::new())
}

fn folded(recorded: &Recorded, event: usize, value: usize) -> String {
    support::folded(&recorded.events[event].profile, value)
}

/// Two threads of one process and one of another: a wait, a preemption, and a wait without an end.
pub fn story() -> Vec<Vec<u8>> {
    vec![
        MAIN.comm("main", 1),
        POOL.comm("pool-1-thread-2", 1),
        OTHER.comm("other", 1),
        MAIN.mmap(0x1000, 0x1000, "/bin/prog", 2),
        OTHER.mmap(0x1000, 0x1000, "/bin/else", 2),
        MAIN.mmap(0x10000, 0x10000, "//anon", 2),
        MAIN.sample(
            1,
            SECOND,
            100,
            &[KERNEL, 0xffffffff81000000, USER, 0x1800, 0x1900],
        ),
        POOL.sample(1, SECOND + 5, 200, &[USER, 0x1800]),
        POOL.sample(
            2,
            2 * SECOND,
            1,
            &[KERNEL, 0xffffffff81000000, USER, 0x1800],
        ),
        POOL.leaves(2 * SECOND + 10, false),
        returns(POOL, 3 * SECOND),
        record(68, 0, &[]),
        OTHER.sample(1, 3 * SECOND, 300, &[USER, 0x1800]),
        MAIN.sample(2, 4 * SECOND, 1, &[USER, 0x1804]),
        MAIN.leaves(4 * SECOND, true),
        returns(MAIN, 4 * SECOND + 77),
        POOL.sample(2, 5 * SECOND, 1, &[USER, 0x1808]),
        POOL.leaves(5 * SECOND, false),
        MAIN.sample(1, 5 * SECOND + 50, 100, &[USER, 0x10040, 0x1900]),
        record(2, 0, &words(&[1, 41])),
        record(13, 0, &words(&[12])),
    ]
}

#[test]
fn samples_count_by_group_and_period() {
    let recorded = recorded(&stream(&story()), Some(7));
    let names: Vec<&str> = recorded
        .events
        .iter()
        .map(|event| event.event.as_str())
        .collect();
    assert_eq!(names, ["cpu", "offcpu", "context-switches"]);
    assert_eq!(
        folded(&recorded, 0, 1),
        "[main];[prog];[perf-7.map] 100\n[main];[prog];[prog];[unknown]_[k] 100\n[pool-N-thread-N];[prog] 200\n"
    );
    let cpu = &recorded.events[0];
    assert_eq!((cpu.taken, &*cpu.source), (3, "cpu-clock"));
    let modules: Vec<_> = cpu.profile.modules().collect();
    assert_eq!(
        modules,
        [("[prog]", "prog")],
        "code made at run time has none"
    );
    assert_eq!((cpu.unknown.frames, cpu.unknown.unknown_frames), (6, 6));
    assert_eq!(cpu.unknown.modules["/bin/prog"], 4);
    assert_eq!(
        (recorded.lost, recorded.left_out, recorded.malformed),
        (41, 0, 0)
    );
    assert_eq!(
        folded(&recorded, 2, 0),
        "[main];[prog] 1\n[pool-N-thread-N];[prog] 1\n[pool-N-thread-N];[prog];[unknown]_[k] 1\n"
    );
}

#[test]
fn waits_last_until_the_thread_runs_or_the_recording_ends() {
    let recorded = recorded(&stream(&story()), None);
    let nanoseconds = SECOND - 10;
    assert_eq!(
        folded(&recorded, 1, 1),
        format!("[pool-N-thread-N];[other];[prog] 50\n[pool-N-thread-N];[other];[prog];[unknown]_[k] {nanoseconds}\n")
    );
    assert_eq!((recorded.events[1].taken, recorded.preempted), (2, 77));
}

/// perf calls events as it was asked for them; one that it calls otherwise is known by its plain name.
#[test]
fn events_of_one_name_differ_by_their_options() {
    let named = |id: u64, name: &str| record(78, 0, &[words(&[2, id]), text(name)].concat());
    let wanted = |perf: &str, name: &str| Wanted {
        event: perf.to_string(),
        perf: perf.to_string(),
        name: name.to_string(),
        counted: Counted::Count,
    };
    let asked = ["page-faults/period=1/", "page-faults/period=1/u"];
    for (called, taken) in [(asked, [2, 1]), (["page-faults", "page-faults:u"], [3, 3])] {
        let start = [b"PERFILE2".to_vec(), words(&[16]), event(2, 1), event(2, 2)];
        let records = [
            named(1, called[0]),
            named(2, called[1]),
            MAIN.sample(1, 10, 1, &[USER, 0x10]),
            MAIN.sample(1, 20, 1, &[USER, 0x10]),
            MAIN.sample(2, 30, 1, &[USER, 0x10]),
        ];
        let both = asked.map(|perf| wanted(perf, "page-faults")).to_vec();
        let mut live = Live::new(both, LiveLimits::default());
        live.read(&[start.concat(), records.concat()].concat()[..])
            .unwrap();
        let recorded = finished(&mut live, None, &JitMaps::new());
        let counts: Vec<u64> = recorded.events.iter().map(|event| event.taken).collect();
        assert_eq!(counts, taken, "{called:?}");
    }
}

#[test]
fn processes_are_separate() {
    let bytes = stream(&story());
    let mut live = Live::new(wanted(), LiveLimits::default());
    live.read(&bytes[..]).unwrap();
    for (pid, expected) in [(9, "[other];[else] 300\n"), (5, "")] {
        let recorded = finished(&mut live, Some(pid), &JitMaps::new());
        assert_eq!(folded(&recorded, 0, 1), expected);
    }
    assert_eq!(
        finished(&mut live, None, &JitMaps::new()).events[0].taken,
        4
    );
}

#[test]
fn a_recording_lasts_from_its_begin_to_its_end() {
    let lost = |time: u64| record(2, 0, &[words(&[1, 40]), MAIN.trailer(time)].concat());
    let records = [
        MAIN.sample(1, 10, 100, &[USER, 0x10]),
        POOL.leaves(20, false),
        lost(25),
        MAIN.sample(1, 40, 100, &[USER, 0x10]),
        returns(POOL, 50),
        lost(60),
        record(13, 0, &[words(&[80]), MAIN.trailer(0)].concat()),
    ];
    let read = |begin: u64, end: u64| {
        let mut live = Live::new(wanted(), LiveLimits::default());
        live.begin_by(Arc::new(AtomicU64::new(begin)));
        live.end_by(Arc::new(AtomicU64::new(end)));
        live.read(&stream(&records)[..]).unwrap();
        let recorded = finished(&mut live, None, &JitMaps::new());
        let waited = recorded.events[1].profile.total(1).unwrap();
        (recorded.events[0].taken, waited, recorded.lost)
    };
    assert_eq!(read(0, u64::MAX), (2, 30, 80));
    assert_eq!(read(0, 30), (1, 10, 40));
    assert_eq!(read(30, u64::MAX), (1, 20, 80));
    assert_eq!(read(55, u64::MAX).1, 0);
}

#[test]
fn code_made_at_run_time_is_named_by_its_map() {
    let map = "10000 30 Interpreter\n10030 20 int a.B.c(int)\n";
    let jit = JitMaps::from([(7, JitMap::text(map.as_bytes()).unwrap())]);
    let mut live = Live::new(wanted(), LiveLimits::default());
    live.read(&stream(&story())[..]).unwrap();
    let recorded = finished(&mut live, Some(7), &jit);
    assert!(folded(&recorded, 0, 1).contains("[main];[prog];a/B.c_[j] 100\n"));
    assert_eq!(recorded.events[0].unknown.unknown_frames, 5);
}

#[test]
fn a_cut_stream_keeps_its_samples() {
    let bytes = stream(&story());
    let mut live = Live::new(wanted(), LiveLimits::default());
    live.read(&bytes[..bytes.len() - 5]).unwrap();
    let recorded = finished(&mut live, None, &JitMaps::new());
    assert_eq!((recorded.events[0].taken, recorded.malformed), (4, 1));
    let mut none = Live::new(wanted(), LiveLimits::default());
    assert!(none.read(&b"perf: not found\n"[..]).is_err());
    assert!(finished(&mut none, None, &JitMaps::new()).events.is_empty());
}

/// Periods that are not CPU time are scaled to it, or refused.
#[test]
fn periods_of_other_events_are_scaled_to_the_cpu_time() {
    let wanted = vec![Wanted {
        event: "cpu".to_string(),
        perf: "context-switches".to_string(),
        name: "context-switches".to_string(),
        counted: Counted::CpuTime,
    }];
    let mut live = Live::new(wanted, LiveLimits::default());
    live.read(&stream(&story())[..]).unwrap();
    let symbols = SymbolOptions::none();
    let mut finish = Finish {
        pid: None,
        symbols: &symbols,
        jit: &JitMaps::new(),
        cpu_nanoseconds: None,
    };
    assert!(live.finish(&finish).is_err());
    finish.cpu_nanoseconds = Some(900);
    let recorded = live.finish(&finish).unwrap();
    assert_eq!(recorded.events[0].profile.total(1).unwrap(), 900);
}
