//! Symbols listed as text: perf maps and `/proc/kallsyms`.

use crate::symbols::table::{Binding, Ends, Symbols};

/// Most bytes of such a text.
pub(crate) const MOST_TEXT: u64 = 512 << 20;

/// A `/tmp/perf-PID.map`: `start size name` in hexadecimal on each line. Malformed lines are skipped. The later of two
/// entries for one address counts, because the earlier code was discarded.
pub(crate) fn perf_map(text: &[u8]) -> Symbols {
    let mut entries: Vec<(u64, u64, &[u8])> = lines(text).filter_map(map_entry).collect();
    // Stable: the later of two entries with the same start stays later.
    entries.sort_by_key(|&(start, _, _)| start);
    let mut symbols = Symbols::new();
    for (place, &(start, size, name)) in entries.iter().enumerate() {
        let replaced = entries.get(place + 1).is_some_and(|next| next.0 == start);
        if !replaced {
            symbols.add(start, size, name, Binding::Global);
        }
    }
    symbols.finish(Ends::Given);
    symbols
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', text).chain(std::iter::once(text.len()));
    ends.map(move |end| {
        let line = &text[start..end];
        start = end + 1;
        line
    })
}

pub(crate) fn map_entry(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (start, rest) = hex(line)?;
    let (size, name) = hex(rest)?;
    (!name.is_empty()).then_some((start, size, name))
}

/// A hexadecimal number, with or without `0x`, and the text after the following space.
fn hex(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let (mut number, mut count) = (0u64, 0);
    for &byte in digits.iter().take(17) {
        let digit = match byte {
            b' ' if count > 0 => return Some((number, &digits[count + 1..])),
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return None,
        };
        if count == 16 {
            return None;
        }
        number = number << 4 | u64::from(digit);
        count += 1;
    }
    None
}

/// `/proc/kallsyms`; `None` when the addresses are hidden (`kernel.kptr_restrict`).
pub(crate) fn kallsyms(text: &[u8]) -> Option<Symbols> {
    let mut symbols = Symbols::new();
    for line in lines(text) {
        let Some((address, [kind, b' ', name @ ..])) = hex(line) else {
            continue;
        };
        let binding = match kind {
            b'W' | b'w' => Binding::Weak,
            b'T' | b'D' | b'B' => Binding::Global,
            b't' | b'd' | b'b' => Binding::Local,
            _ => continue,
        };
        if address == 0 || name.starts_with(b"$") {
            continue;
        }
        symbols.add(address, 0, name, binding);
    }
    symbols.finish(Ends::Kallsyms);
    (symbols.len() > 0).then_some(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(symbols: &mut Symbols, address: u64) -> Option<String> {
        symbols.find(address).map(|number| symbols.name(number))
    }

    #[test]
    fn a_perf_map_is_read_line_by_line() {
        let text = b"7f10 20 Interpreter\n\n0x7f30 0x8 java.lang.String java.lang.String.trim()\nnonsense\n7f40 zz a\n7f30 8 newer\n7f50 0 empty\n";
        let mut symbols = perf_map(text);
        assert_eq!(named(&mut symbols, 0x7f0f), None);
        assert_eq!(named(&mut symbols, 0x7f2f).as_deref(), Some("Interpreter"));
        assert_eq!(named(&mut symbols, 0x7f37).as_deref(), Some("newer"));
        assert_eq!(named(&mut symbols, 0x7f38), None);
        assert_eq!(named(&mut symbols, 0x7f50), None);
    }

    #[test]
    fn kernel_symbols_end_where_the_next_one_starts() {
        let text = b"ffffffff81000000 T _stext\nffffffff81000000 T start\nffffffff81000100 t do_it\nffffffff81000200 A abs\nffffffffa0000010 t hook\t[net]\n";
        let mut symbols = kallsyms(text).unwrap();
        assert_eq!(
            named(&mut symbols, 0xffffffff810000ff).as_deref(),
            Some("start")
        );
        assert_eq!(
            named(&mut symbols, 0xffffffff81000200).as_deref(),
            Some("do_it")
        );
        assert_eq!(named(&mut symbols, 0xffffffff90000000), None);
        assert_eq!(
            named(&mut symbols, 0xffffffffa0000011).as_deref(),
            Some("hook\t[net]")
        );
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        assert!(kallsyms(b"0000000000000000 T _text\n0000000000000000 t f\n").is_none());
    }
}
