//! What recordings are read with: maps of compiled code, tables of symbols, rules of names.

use flamegraph::perf_data::{demangle, perf_map_at, symbols_at, JitMap};
use flamegraph::NameRules;

/// No frame's name is longer; bytes that are no text become three each.
const MOST_NAME: usize = 3 * 4096;

/// A map of compiled code, of either kind.
pub fn jit_map(bytes: &[u8]) {
    let maps = [JitMap::binary(bytes), JitMap::text(bytes)];
    for map in maps.iter().flatten() {
        for address in addresses(bytes) {
            let frames = map.find(address);
            assert!(frames.is_empty() || !map.is_empty());
            assert!(frames.iter().all(|(name, _)| !name.contains(';')));
            assert!(frames.iter().all(|(name, _)| name.len() <= MOST_NAME));
        }
    }
    if let ([_, Ok(map)], Some((start, last))) = (maps, last_entry(bytes)) {
        let named = perf_map_at(bytes, &[start, last]);
        for (address, name) in [start, last].into_iter().zip(named) {
            assert_eq!(map.find(address).len(), 1, "{address:x}");
            assert!(name.is_some(), "{address:x}");
        }
    }
}

/// Where the code of the last line of a text lies: nothing that came later covers it.
fn last_entry(bytes: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (start, rest) = text
        .trim_end_matches('\n')
        .rsplit('\n')
        .next()?
        .split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let (start, size) = (number(start)?, number(size)?);
    let last = start.checked_add(size.checked_sub(1)?)?;
    let is_told = !name.trim_end_matches('\r').is_empty() && last < u64::MAX;
    is_told.then_some((start, last))
}

/// As maps have them: no sign, and no more digits than an address needs.
fn number(written: &str) -> Option<u64> {
    let digits = written.strip_prefix("0x").unwrap_or(written);
    let is_number = digits.len() <= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(is_number.then_some(digits)?, 16).ok()
}

/// A file of symbols, or one of the two texts that have some.
pub fn symbols(bytes: &[u8]) {
    let mut addresses = addresses(bytes);
    let names = symbols_at(bytes, &addresses);
    let of_map = perf_map_at(bytes, &addresses);
    assert!(names
        .as_ref()
        .is_none_or(|names| names.len() == addresses.len()));
    // An address's name is the same whatever was asked before.
    addresses.reverse();
    let reversed = |mut names: Vec<Option<String>>| {
        names.reverse();
        names
    };
    assert_eq!(symbols_at(bytes, &addresses).map(reversed), names);
    assert_eq!(reversed(perf_map_at(bytes, &addresses)), of_map);
}

/// What a user may write about names: rules by which they are made canonical.
pub fn rules(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(rules) = NameRules::parse(&text) else {
        return;
    };
    let commented = NameRules::parse(&format!("# a comment\n{text}\n\n"));
    let commented = commented.expect("a comment is no rule");
    for name in [
        "a.B$$Lambda$12/0x0.c",
        "pool-1-thread-2",
        "[j]",
        "[pool-1 tid=7]",
        "",
    ] {
        assert_eq!(rules.canonical(name), commented.canonical(name));
        let thread = rules.canonical(&format!("[{name} tid=7]")).into_owned();
        assert_eq!(thread, format!("[{}]", rules.thread_group(name)));
    }
}

/// Names of functions as compilers write them, a line each.
pub fn mangled(bytes: &[u8]) {
    for name in String::from_utf8_lossy(bytes).lines() {
        let demangled = demangle(name);
        assert!(demangled.len() < 80 << 10);
        assert!(demangled.is_empty() == name.is_empty(), "{name:?}");
        let is_mangled = name.trim_start_matches('_').starts_with(['Z', 'R']);
        assert!(is_mangled || demangled == name, "{name:?}");
    }
}

/// The input itself names what is looked for in it.
fn addresses(bytes: &[u8]) -> Vec<u64> {
    let eights = bytes
        .chunks_exact(8)
        .filter_map(|eight| eight.try_into().ok());
    eights.map(u64::from_le_bytes).take(1000).collect()
}
