//! Where threads begin: a stack that does not reach so far is broken.

/// Functions in which a thread, or a program, starts.
const BEGINS: &[&str] = &[
    "_start",
    "_start_c",
    "start",
    "start_c11",
    "start_thread",
    "thread_start",
    "thread_native_entry",
    "main",
    "clone",
    "clone3",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.rt0_go",
    "runtime.mcall",
    "runtime.systemstack",
];

/// The files in which most of them are, mostly without a symbol.
const HOMES: &[&str] = &[
    "libc.so",
    "libc-",
    "libpthread",
    "ld-musl-",
    "ld-linux",
    "ld-2.",
];

/// Whether the outermost user frame of a stack is where a thread begins. A frame without a symbol in the C library
/// is, if it called something: only there does a walk along frame pointers end up in that library.
pub(super) fn is_begin(symbol: Option<&str>, module: &str, has_callee: bool) -> bool {
    let file = module.rsplit('/').next().unwrap_or(module);
    match symbol {
        Some(symbol) => {
            let plain = symbol
                .split(['@', '.'])
                .next()
                .unwrap_or(symbol)
                .trim_start_matches('_');
            let whole = symbol.trim_end_matches(".abi0");
            let known = |begin: &&str| begin.trim_start_matches('_') == plain || **begin == *whole;
            BEGINS.iter().any(known) || plain.starts_with("libc_start")
        }
        None => has_callee && HOMES.iter().any(|home| file.starts_with(home)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_begin_in_few_places() {
        let begins = [
            (Some("__libc_start_call_main"), "/lib/libc.so.6", true),
            (
                Some("__libc_start_main@@GLIBC_2.34"),
                "/lib/libc.so.6",
                true,
            ),
            (Some("__clone3"), "/lib/libc.so.6", true),
            (Some("_start"), "/bin/x", false),
            (Some("runtime.goexit.abi0"), "/bin/go", true),
            (None, "/usr/lib/libc.so.6", true),
        ];
        for (symbol, module, has_callee) in begins {
            assert!(is_begin(symbol, module, has_callee), "{symbol:?} {module}");
        }
        let others = [
            (Some("read"), "/lib/libc.so.6", true),
            (Some("work"), "/bin/x", true),
            (None, "/usr/lib/libc.so.6", false),
            (None, "[unknown]", true),
        ];
        for (symbol, module, has_callee) in others {
            assert!(!is_begin(symbol, module, has_callee), "{symbol:?} {module}");
        }
    }
}
