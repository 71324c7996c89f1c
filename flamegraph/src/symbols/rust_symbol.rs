//! Partly demangled Rust symbols: `_$LT$T$u20$as$u20$a..B$GT$::f::h0123456789abcdef`.

use std::borrow::Cow;

/// `::h` and 16 hexadecimal digits; the colons may be missing.
const HASH_BYTES: usize = 17;

/// Removes the hash and decodes the escapes; other symbols stay unchanged.
pub(crate) fn demangled(symbol: &[u8]) -> Cow<'_, [u8]> {
    let Some(split) = symbol.len().checked_sub(HASH_BYTES) else {
        return Cow::Borrowed(symbol);
    };
    let (path, hash) = symbol.split_at(split);
    if hash[0] != b'h' || !hash[1..].iter().all(u8::is_ascii_hexdigit) {
        return Cow::Borrowed(symbol);
    }
    let path = path.strip_suffix(b"::").unwrap_or(path);
    let path = if path.starts_with(b"_$") {
        &path[1..]
    } else {
        path
    };
    spelled_out(path)
}

fn spelled_out(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b'$') && !path.windows(2).any(|pair| pair == b"..") {
        return Cow::Borrowed(path);
    }
    let (mut out, mut rest) = (Vec::with_capacity(path.len()), path);
    while let Some(&first) = rest.first() {
        if let Some(after) = rest.strip_prefix(b"..") {
            out.extend_from_slice(b"::");
            rest = after;
        } else if first != b'$' {
            out.push(first);
            rest = &rest[1..];
        } else if let Some((character, after)) = escape(rest) {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = after;
        } else {
            out.extend_from_slice(rest);
            break;
        }
    }
    Cow::Owned(out)
}

/// The character of an escape at the beginning, and the rest of the text.
fn escape(text: &[u8]) -> Option<(char, &[u8])> {
    let end = text.iter().skip(1).take(8).position(|&byte| byte == b'$')? + 1;
    let character = match &text[1..end] {
        b"SP" => '@',
        b"BP" => '*',
        b"RF" => '&',
        b"LT" => '<',
        b"GT" => '>',
        b"LP" => '(',
        b"RP" => ')',
        b"C" => ',',
        [b'u', code @ ..] => {
            let code = u32::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()?;
            char::from_u32(code).filter(|character| !character.is_control())?
        }
        _ => return None,
    };
    Some((character, &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    #[test]
    fn half_demangled_symbols_are_finished() {
        let cases = [
            (
                "std::fs::File::open::hb90e1c1c787080f0",
                "std::fs::File::open",
            ),
            (
                "_$LT$std..fs..ReadDir$u20$as$u20$Iterator$GT$::next::hc14f1750ca79129b",
                "<std::fs::ReadDir as Iterator>::next",
            ),
            (
                "a::_$u7b$$u7b$closure$u7d$$u7d$::h6e849b55a66fcd85",
                "a::_{{closure}}",
            ),
            ("a$odd::h6e849b55a66fcd85", "a$odd"),
            ("_ZN4testE", "_ZN4testE"),
            ("a::habc", "a::habc"),
        ];
        for (symbol, expected) in cases {
            let found = super::demangled(symbol.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected);
        }
    }
}
