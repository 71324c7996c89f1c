#![no_main]

use flamegraph::{Format, PerfOptions, ReadOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    flamegraph_fuzz::read_as(bytes, Some(Format::PerfScript));
    let everything = ReadOptions {
        threads: flamegraph::Threads::Each,
        perf: PerfOptions {
            pid: true,
            tid: true,
            kernel: true,
            jit: true,
            addrs: true,
            event_filter: Some("cycles".to_string()),
        },
        ..flamegraph_fuzz::options(Some(Format::PerfScript))
    };
    flamegraph_fuzz::read_with(bytes, &everything);
});
