//! What recordings are read with: perf's stream, maps of compiled code, tables of symbols, rules of names.

use flamegraph::perf_data::{
    demangle, symbols_at, Counted, Finish, JitMap, JitMaps, Live, LiveLimits, Wanted,
};
use flamegraph::{NameRules, SymbolOptions};

/// Small, so that memory that grows beyond them is found soon.
const LIMITS: LiveLimits = LiveLimits {
    nodes: 1 << 12,
    places: 1 << 12,
    threads: 1 << 8,
    mappings: 1 << 10,
    waiting_bytes: 1 << 20,
    cells: 1 << 20,
    seconds: 1 << 10,
};

pub fn perf_live(bytes: &[u8]) {
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
    let mut live = Live::new(wanted.to_vec(), LIMITS);
    let _ = live.read(bytes);
    let _ = live.finish(&Finish {
        pid: None,
        symbols: &SymbolOptions::none(),
        jit: &JitMaps::new(),
        cpu_nanoseconds: Some(1_000_000),
        end: None,
    });
}

pub fn jit_map(bytes: &[u8]) {
    for map in [JitMap::binary(bytes), JitMap::text(bytes)]
        .into_iter()
        .flatten()
    {
        for address in addresses(bytes) {
            let frames = map.find(address);
            assert!(frames.iter().all(|(name, _)| !name.contains(';')));
        }
    }
}

pub fn symbols(bytes: &[u8]) {
    let addresses = addresses(bytes);
    if let Some(names) = symbols_at(bytes, &addresses) {
        assert_eq!(names.len(), addresses.len());
    }
}

/// Rules by which names are made canonical, as a user may write them.
pub fn rules(bytes: &[u8]) {
    let Ok(rules) = NameRules::parse(&String::from_utf8_lossy(bytes)) else {
        return;
    };
    for name in ["a.B$$Lambda$12/0x0.c", "pool-1-thread-2", "[j]", ""] {
        rules.canonical(name);
    }
}

/// Names of functions as compilers write them, a line each.
pub fn mangled(bytes: &[u8]) {
    for name in String::from_utf8_lossy(bytes).lines() {
        assert!(demangle(name).len() < 80 << 10);
    }
}

/// The input itself names what is looked for in it.
fn addresses(bytes: &[u8]) -> Vec<u64> {
    let eights = bytes
        .chunks_exact(8)
        .filter_map(|eight| eight.try_into().ok());
    eights.map(u64::from_le_bytes).take(1000).collect()
}
