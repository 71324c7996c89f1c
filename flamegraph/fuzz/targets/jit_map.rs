#![no_main]

use flamegraph::perf_data::JitMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for map in [JitMap::binary(bytes), JitMap::text(bytes)]
        .into_iter()
        .flatten()
    {
        let addresses = bytes
            .chunks_exact(8)
            .filter_map(|eight| eight.try_into().ok());
        for address in addresses.map(u64::from_le_bytes).take(1000) {
            let frames = map.find(address);
            assert!(frames.iter().all(|(name, _)| !name.contains(';')));
        }
    }
});
