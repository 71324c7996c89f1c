#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| flamegraph_fuzz::read_as(bytes, None));
