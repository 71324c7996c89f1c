#![no_main]

use flamegraph::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| flamegraph_fuzz::read_as(bytes, Some(Format::Compact)));
