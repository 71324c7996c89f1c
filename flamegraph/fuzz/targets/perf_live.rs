#![no_main]

use flamegraph::perf_data::{Counted, Finish, JitMaps, Live, LiveLimits, Wanted};
use flamegraph::SymbolOptions;
use libfuzzer_sys::fuzz_target;

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

fuzz_target!(|bytes: &[u8]| {
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
});
