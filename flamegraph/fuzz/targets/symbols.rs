#![no_main]

use flamegraph::perf_data::symbols_at;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let eights = bytes
        .chunks_exact(8)
        .filter_map(|eight| eight.try_into().ok());
    let addresses: Vec<u64> = eights.map(u64::from_le_bytes).take(1000).collect();
    if let Some(names) = symbols_at(bytes, &addresses) {
        assert_eq!(names.len(), addresses.len());
    }
});
