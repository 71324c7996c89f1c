//! Names as a person wrote them.

/// A name longer than this stays as it is: demangling can make it far longer still.
const MOST_MANGLED: usize = 8 << 10;
/// How deep the demangler of C++ may go.
const MOST_DEPTH: u32 = 96;

/// The name without its mangling, without parameters and return type as perf writes it; Rust's without hash.
pub(crate) fn demangle(name: &str) -> String {
    let mangled = ["_Z", "__Z", "_R", "__R"];
    if name.len() > MOST_MANGLED || !mangled.iter().any(|start| name.starts_with(start)) {
        return name.to_string();
    }
    // What the linker appends (`.cold`, `.llvm.1`) is no part of a name in Rust's newer mangling.
    let whole = match name.split_once('.') {
        Some((whole, _)) if name.starts_with("_R") => whole,
        _ => name,
    };
    if let Ok(rust) = rustc_demangle::try_demangle(whole) {
        return format!("{rust:#}");
    }
    cplusplus(name).unwrap_or_else(|| name.to_string())
}

/// The function a compiler's adapter (`_ZThn8_...`, `_ZTv0_n24_...`) leads to, mangled, and what it is called.
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
        let symbol = cpp_demangle::Symbol::new(function.as_str()).ok()?;
        // perf leaves the parameters here; the folder cuts them.
        return Some(format!("{called} {}", symbol.demangle().ok()?));
    }
    use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
    let parsing = ParseOptions::default().recursion_limit(MOST_DEPTH);
    let writing = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .recursion_limit(MOST_DEPTH);
    // A compiler's clone (".isra.0") is no part of the mangled name.
    let symbol = Symbol::new_with_options(name, &parsing).ok()?;
    let written = symbol.demangle_with_options(&writing).ok()?;
    Some(without_qualifiers(name, with_short_arguments(written)))
}

/// Arguments of templates as perf writes them: `8u`, not `(unsigned int)8`, and nothing for an empty list.
fn with_short_arguments(mut written: String) -> String {
    const SUFFIXES: [(&str, &str); 5] = [
        ("(unsigned int)", "u"),
        ("(unsigned long)", "ul"),
        ("(long)", "l"),
        ("(unsigned long long)", "ull"),
        ("(long long)", "ll"),
    ];
    while let Some(at) = written.find(", >") {
        written.replace_range(at..at + 2, "");
    }
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

/// What stands behind the parameters of a method (`const`, `&`) goes as they did.
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
        ];
        for (mangled, name) in cases {
            assert_eq!(demangle(mangled), name);
        }
    }
}
