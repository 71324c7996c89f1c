#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agent::fuzz::run("recording", bytes));
