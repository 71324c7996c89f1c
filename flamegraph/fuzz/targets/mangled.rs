#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flamegraph_fuzz::run("mangled", bytes));
