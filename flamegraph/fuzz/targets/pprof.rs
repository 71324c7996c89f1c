#![no_main]

use flamegraph::{read, Format, ReadOptions, Threads};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    flamegraph_fuzz::read_as(bytes, Some(Format::Pprof));
    let threads = ReadOptions {
        threads: Threads::Groups,
        ..flamegraph_fuzz::options(Some(Format::Pprof))
    };
    let _ = read(bytes, &threads);
});
