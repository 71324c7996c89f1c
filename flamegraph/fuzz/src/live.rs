//! perf's stream, with what it is made a profile by: a process, a begin and an end, a map of compiled code.

use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use flamegraph::perf_data::{
    Counted, Finish, JitMap, JitMaps, Live, LiveLimits, Recorded, RecordedEvent, Wanted,
};
use flamegraph::SymbolOptions;

use super::coming_back::comes_back;

/// Small, so that memory that grows beyond them is found soon.
const LIMITS: LiveLimits = LiveLimits {
    nodes: 1 << 12,
    places: 1 << 12,
    threads: 1 << 8,
    mappings: 1 << 10,
    waiting_bytes: 1 << 20,
    cells: 1 << 20,
};

/// Behind these letters of an input stand a process, a begin and an end, and then the process's map.
const ASKED: &[u8] = b"HPROFASK";
const KALLSYMS: &[u8] =
    b"ffffffff81000000 T _text\nffffffff81000040 t schedule\nffffffffa0000000 t hook\t[net]\n";

/// What stands behind the stream in an input.
struct Asked {
    pid: u32,
    begin: Option<u64>,
    end: Option<u64>,
    jit: JitMaps,
}

/// A stream of perf's, and perhaps what is asked of it.
pub fn perf_live(bytes: &[u8]) {
    let place = bytes.windows(ASKED.len()).position(|at| at == ASKED);
    let (stream, asked) = bytes.split_at(place.unwrap_or(bytes.len()));
    let asked = Asked::of(asked.get(ASKED.len()..).unwrap_or_default());
    let mut live = Live::new(wanted(), LIMITS);
    if let Some(begin) = asked.begin {
        live.begin_by(Arc::new(AtomicU64::new(begin)));
    }
    if let Some(end) = asked.end {
        live.end_by(Arc::new(AtomicU64::new(end)));
    }
    live.keep_times(1 << 12, (asked.begin.unwrap_or(0), 1), None);
    let _ = live.read(stream);
    let symbols = SymbolOptions {
        kallsyms_text: Some(Arc::from(KALLSYMS)),
        ..SymbolOptions::none()
    };
    let finish = |pid| Finish {
        pid,
        symbols: &symbols,
        jit: &asked.jit,
        cpu_nanoseconds: Some(1_000_000),
    };
    let all = live.finish(&finish(None));
    let one = live.finish(&finish(Some(asked.pid)));
    if let (Ok(all), Ok(one)) = (all, one) {
        keeps_its_word(&all);
        keeps_its_word(&one);
        is_part(&one, &all);
    }
}

fn wanted() -> Vec<Wanted> {
    let wanted = [
        ("cpu-clock", Counted::CpuTime),
        ("page-faults", Counted::Count),
        ("context-switches", Counted::OffCpu),
    ];
    let wanted = wanted.map(|(perf, counted)| Wanted {
        event: perf.to_string(),
        perf: format!("{perf}/period=1/"),
        name: perf.to_string(),
        counted,
    });
    wanted.to_vec()
}

impl Asked {
    /// Numbers of four, eight and eight bytes, of which 0 is none, and a map of either kind.
    fn of(mut bytes: &[u8]) -> Asked {
        let mut number = |size: usize| {
            let (digits, rest) = bytes.split_at(size.min(bytes.len()));
            bytes = rest;
            let mut eight = [0; 8];
            eight[..digits.len()].copy_from_slice(digits);
            u64::from_le_bytes(eight)
        };
        let (pid, begin, end) = (number(4) as u32, number(8), number(8));
        let map = JitMap::binary(bytes).or_else(|_| JitMap::text(bytes));
        Asked {
            pid,
            begin: (begin > 0).then_some(begin),
            end: (end > 0).then_some(end),
            jit: map.into_iter().map(|map| (pid, map)).collect(),
        }
    }
}

/// The numbers of a recording fit one another, and its profiles can be sent.
fn keeps_its_word(recorded: &Recorded) {
    for event in &recorded.events {
        assert!(event.broken <= event.taken);
        let unknown = &event.unknown;
        assert_eq!(unknown.samples, event.taken);
        assert!(unknown.leaf_samples <= unknown.samples);
        assert!(unknown.unknown_frames <= unknown.frames);
        assert_eq!(
            unknown.modules.values().sum::<u64>(),
            unknown.unknown_frames
        );
        if event.profile.values().len() == 2 {
            assert_eq!(total(event), event.taken);
        }
        let times = event.profile.times().expect("they are kept");
        let timed: u64 = times.rows().iter().map(|row| u64::from(row.samples)).sum();
        assert_eq!(timed, event.taken);
        comes_back(&event.profile);
    }
}

fn total(event: &RecordedEvent) -> u64 {
    let total = event.profile.total(0).expect("it has values");
    u64::try_from(total).expect("no total is negative")
}

/// One process has no more of anything than all of them.
fn is_part(one: &Recorded, all: &Recorded) {
    assert_eq!(one.events.len(), all.events.len());
    for (one, all) in one.events.iter().zip(&all.events) {
        assert!(one.taken <= all.taken);
        assert!(one.broken <= all.broken);
        assert!(one.unknown.frames <= all.unknown.frames);
        assert!(total(one) <= total(all));
    }
}
