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
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    cplusplus(name).unwrap_or_else(|| name.to_string())
}

fn cplusplus(name: &str) -> Option<String> {
    use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
    let parsing = ParseOptions::default().recursion_limit(MOST_DEPTH);
    let writing = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .recursion_limit(MOST_DEPTH);
    // A compiler's clone (".isra.0") is no part of the mangled name.
    let symbol = Symbol::new_with_options(name, &parsing).ok()?;
    symbol.demangle_with_options(&writing).ok()
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
            ("_ZN12_GLOBAL__N_13hotIdEElT_RSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES1_St4lessIS7_ESaISt4pairIKS7_S1_EEE", "(anonymous namespace)::hot<double>"),
            ("_ZN1m4spin17h9ea29add01d503efE", "m::spin"),
            ("_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "std::rt::lang_start::{{closure}}"),
            ("_RNvC1m4spin", "m::spin"),
            ("_Zmalformed", "_Zmalformed"),
        ];
        for (mangled, name) in cases {
            assert_eq!(demangle(mangled), name);
        }
    }
}
