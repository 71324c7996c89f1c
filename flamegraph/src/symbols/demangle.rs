//! Turns mangled names into those in the source.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// A name longer than this stays as it is, in bytes.
const MOST_MANGLED: usize = 8 << 10;
/// Longer results are not used: back references can double a name every few letters.
const MOST_WRITTEN: usize = 64 << 10;
/// How deep the demangler of C++ may go.
const MOST_DEPTH: u32 = 96;

/// The demangled name without parameters and return type, as perf writes it; Rust's without the hash.
pub fn demangle(name: &str) -> String {
    let mangled = ["_Z", "__Z", "_R", "__R"];
    if name.len() > MOST_MANGLED || !mangled.iter().any(|start| name.starts_with(start)) {
        return name.to_string();
    }
    // Suffixes from the linker (`.cold`, `.llvm.1`) are not part of a name in Rust's newer mangling.
    let whole = match name.split_once('.') {
        Some((whole, _)) if name.starts_with("_R") => whole,
        _ => name,
    };
    let demangled = match rustc_demangle::try_demangle(whole) {
        Ok(rust) => Bounded::written(|out| write!(out, "{rust:#}")),
        Err(_) => cplusplus(name),
    };
    // `_ZNE` names nothing.
    let named = demangled.filter(|demangled| !demangled.is_empty());
    named.unwrap_or_else(|| name.to_string())
}

/// A text of at most `MOST_WRITTEN` bytes.
struct Bounded(String);

impl Bounded {
    /// None if the text would be longer.
    fn written(write: impl FnOnce(&mut Self) -> fmt::Result) -> Option<String> {
        let mut out = Self(String::new());
        write(&mut out).ok().map(|()| out.0)
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MOST_WRITTEN {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The kind of a compiler's thunk (`_ZThn8_...`, `_ZTv0_n24_...`) and the mangled function that it calls.
fn thunk(name: &str) -> Option<(&'static str, String)> {
    let (called, offsets, rest) = if let Some(rest) = name.strip_prefix("_ZTh") {
        ("non-virtual thunk to", 1, rest)
    } else {
        ("virtual thunk to", 2, name.strip_prefix("_ZTv")?)
    };
    let function = rest.splitn(offsets + 1, '_').nth(offsets)?;
    Some((called, format!("_Z{function}")))
}

fn cplusplus(name: &str) -> Option<String> {
    if let Some((called, function)) = thunk(name) {
        // perf leaves the parameters here; the folder cuts them.
        let function = written(&function, &DemangleOptions::new())?;
        return Some(format!("{called} {function}"));
    }
    // A compiler's clone (".isra.0") is not a part of the mangled name.
    let short = DemangleOptions::new().no_params().no_return_type();
    let written = written(name, &short)?;
    Some(without_qualifiers(name, with_short_arguments(&written)))
}

fn written(name: &str, options: &DemangleOptions) -> Option<String> {
    let parsing = ParseOptions::default().recursion_limit(MOST_DEPTH);
    let symbol = Symbol::new_with_options(name, &parsing).ok()?;
    let options = options.recursion_limit(MOST_DEPTH);
    Bounded::written(|out| symbol.structured_demangle(out, &options))
}

/// Arguments of templates as perf writes them: `8u`, not `(unsigned int)8`, and nothing for an empty list.
fn with_short_arguments(written: &str) -> String {
    const SUFFIXES: [(&str, &str); 5] = [
        ("(unsigned int)", "u"),
        ("(unsigned long)", "ul"),
        ("(long)", "l"),
        ("(unsigned long long)", "ull"),
        ("(long long)", "ll"),
    ];
    let mut written = without_empty_ends(written);
    for (cast, suffix) in SUFFIXES {
        let mut from = 0;
        while let Some(at) = written[from..].find(cast).map(|at| at + from) {
            let number = written[at + cast.len()..].trim_start_matches('-');
            let end = number.trim_start_matches(|digit: char| digit.is_ascii_digit());
            from = at + cast.len();
            if end.len() < number.len() {
                written.insert_str(written.len() - end.len(), suffix);
                written.replace_range(at..from, "");
                from = at;
            }
        }
    }
    written
}

/// Removes commas at the end of argument lists, which empty packs leave.
fn without_empty_ends(written: &str) -> String {
    let mut out = String::with_capacity(written.len());
    for piece in written.split_inclusive('>') {
        let list = piece.strip_suffix('>');
        out.push_str(list.unwrap_or(piece));
        if list.is_some() {
            out.truncate(out.trim_end_matches(", ").len());
            out.push('>');
        }
    }
    out
}

/// Removes a method's qualifiers (`const`, `&`), which follow its parameters.
fn without_qualifiers(mangled: &str, mut written: String) -> String {
    let qualified = ["_ZNK", "_ZNV", "_ZNR", "_ZNO", "_ZZ"];
    if qualified.iter().any(|start| mangled.starts_with(start)) {
        while let Some(shorter) = [" const", " volatile", " &&", " &"]
            .iter()
            .find_map(|end| written.strip_suffix(end))
        {
            written.truncate(shorter.len());
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_read_as_they_were_written() {
        let cases = [
            ("main", "main"),
            ("_ZN2ns1V2opERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPFliE", "ns::V::op"),
            ("_ZNK2ns1VltERKS0_", "ns::V::operator<"),
            ("_ZNK2ns1V3getEv", "ns::V::get"),
            ("_ZN1aILm256ELj8ELln5EE1fEv", "a<256ul, 8u, -5l>::f"),
            ("_ZN1bIiJEE1fEv", "b<int>::f"),
            ("_ZThn8_N2ns1V3getEi", "non-virtual thunk to ns::V::get(int)"),
            ("_ZTv0_n24_N2ns1V3getEv", "virtual thunk to ns::V::get()"),
            ("_ZN12_GLOBAL__N_13hotIdEElT_RSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES1_St4lessIS7_ESaISt4pairIKS7_S1_EEE", "(anonymous namespace)::hot<double>"),
            ("_ZN1m4spin17h9ea29add01d503efE", "m::spin"),
            ("_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "std::rt::lang_start::{{closure}}"),
            ("_RNvC1m4spin", "m::spin"),
            ("_RNvC1m4spin.cold", "m::spin"),
            ("_Zmalformed", "_Zmalformed"),
            ("_ZNE", "_ZNE"),
        ];
        for (mangled, name) in cases {
            assert_eq!(demangle(mangled), name);
        }
    }

    #[test]
    fn what_doubles_and_doubles_stays_as_it_is() {
        // Each list of arguments repeats the previous one sixty times.
        let list = |before: usize| format!("S0_I{}E", format!("S{before}_").repeat(60));
        let lists: String = (1..9).map(list).collect();
        for name in [
            format!("_Z1fI1pIiiE{lists}Evv"),
            format!("_ZThn8_1fI1pIiiE{lists}Evv"),
        ] {
            assert!(name.len() < super::MOST_MANGLED);
            assert_eq!(demangle(&name), name);
        }
        let once = format!("_Z1fI1pIiiE{}Evv", list(1));
        assert!(demangle(&once).starts_with("f<p<int, int>, p<p<int, int>, p<int, int>"));
    }

    #[test]
    fn empty_ends_of_lists() {
        for (written, want) in [
            ("a<b, >", "a<b>"),
            ("a<, , >::f<c, >", "a<>::f<c>"),
            ("a, b", "a, b"),
            ("operator->, >x", "operator->>x"),
        ] {
            assert_eq!(super::without_empty_ends(written), want);
        }
    }
}
