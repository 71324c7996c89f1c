//! The program of all targets. `FUZZ_TARGET=hsperf hprofiler-agent-fuzz FILE` runs one of them with one input.
#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<String> =
    LazyLock::new(|| std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names the target"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agent::fuzz::run(&TARGET, bytes));
