#![no_main]

use flamegraph::{read_jfr, Format, ReadOptions, Threads};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    flamegraph_fuzz::read_as(bytes, Some(Format::Jfr));
    let everything = ReadOptions {
        threads: Threads::Groups,
        estimate: true,
        off_cpu: true,
        ..flamegraph_fuzz::options(Some(Format::Jfr))
    };
    let _ = read_jfr(bytes, &everything);
});
