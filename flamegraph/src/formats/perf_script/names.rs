//! Names frames from the output of `perf script`, by the rules of stackcollapse-perf.pl.

use crate::formats::options::PerfOptions;

/// A line of a stack: `address symbol+0xoffset (module)`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StackLine<'a> {
    pub(crate) address: &'a [u8],
    /// Without its offset; a space if there is no symbol.
    pub(crate) symbol: &'a [u8],
    pub(crate) module: &'a [u8],
}

const UNKNOWN: &[u8] = b"[unknown]";
/// Most inlined frames of one symbol: a name of arrows alone would be a deep stack.
pub(crate) const MOST_INLINED: usize = 64;

/// Puts the annotated name of one frame into a buffer.
pub(crate) struct Names<'a> {
    pub(crate) options: &'a PerfOptions,
    /// The command's name starts with `java`.
    pub(crate) java: bool,
}

impl Names<'_> {
    /// Calls `found` with the name of each frame of a line, callers first. A map of JIT code writes inlined methods
    /// after their caller: `caller->inlined->innermost`. Elsewhere an arrow is part of the name (`operator->`).
    pub(crate) fn each<E>(
        &self,
        line: &StackLine<'_>,
        mut found: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut name = Vec::new();
        let (mut rest, mut inlined) = (Some(line.symbol), false);
        let has_inlined = is_jit(line.module);
        while let Some(symbols) = rest {
            let arrow = memchr::memmem::find(symbols, b"->").filter(|_| has_inlined);
            let symbol = &symbols[..arrow.unwrap_or(symbols.len())];
            rest = arrow.map(|arrow| &symbols[arrow + 2..]);
            // Nothing follows an arrow at the end.
            if inlined && symbol.is_empty() && rest.is_none() {
                break;
            }
            name.clear();
            self.put(symbol, line, &mut name);
            self.annotate(line.module, inlined, &mut name);
            found(&name)?;
            inlined = true;
        }
        Ok(())
    }

    fn put(&self, symbol: &[u8], line: &StackLine<'_>, name: &mut Vec<u8>) {
        if symbol == UNKNOWN {
            self.put_unknown(line, name);
        } else {
            name.extend_from_slice(symbol);
        }
        for byte in name.iter_mut().filter(|byte| **byte == b';') {
            *byte = b':';
        }
        name.truncate(without_arguments(name));
        if self.java && name.first() == Some(&b'L') && name.contains(&b'/') {
            name.remove(0);
        }
    }

    /// Without a symbol the name is the module, with the address if requested.
    fn put_unknown(&self, line: &StackLine<'_>, name: &mut Vec<u8>) {
        let module = match line.module {
            UNKNOWN => &b"unknown"[..],
            path => path.rsplit(|&byte| byte == b'/').next().unwrap_or(path),
        };
        name.push(b'[');
        name.extend_from_slice(module);
        if self.options.addrs {
            name.extend_from_slice(b" <");
            name.extend_from_slice(line.address);
            name.push(b'>');
        }
        name.push(b']');
    }

    fn annotate(&self, module: &[u8], inlined: bool, name: &mut Vec<u8>) {
        let suffix: &[u8] = if inlined {
            b"_[i]"
        } else if self.options.kernel && is_kernel(module) {
            b"_[k]"
        } else if self.options.jit && is_jit(module) {
            b"_[j]"
        } else {
            return;
        };
        if memchr::memmem::find(name, suffix).is_none() {
            name.extend_from_slice(suffix);
        }
    }
}

/// The length of a name without its argument list.
///
/// Nested brackets (templates, closures) are not an argument list, nor are Go's receivers (`http.(*Client).Do`) and
/// C++'s anonymous namespaces.
fn without_arguments(name: &[u8]) -> usize {
    let mut depth = 0i64;
    for (at, &byte) in name.iter().enumerate() {
        match byte {
            b'<' | b'{' | b'[' => depth += 1,
            b'>' if at > 0 && name[at - 1] == b'-' => {}
            b'>' | b'}' | b']' | b')' => depth -= 1,
            b'(' => {
                let receiver = at > 0 && name[at - 1] == b'.';
                let namespace = name[at..].starts_with(b"(anonymous namespace)");
                if depth == 0 && !receiver && !namespace {
                    return at;
                }
                depth += 1;
            }
            _ => {}
        }
    }
    name.len()
}

/// `[kernel.kallsyms]`, a module such as `[nf_conntrack]` or `x.ko`, or a `vmlinux` of any version.
fn is_kernel(module: &[u8]) -> bool {
    let version = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let image = memchr::memmem::rfind(module, b"vmlinux");
    let is_image = image.is_some_and(|at| module[at..].iter().all(version));
    (module.starts_with(b"[") || module.ends_with(b".ko") || is_image) && module != UNKNOWN
}

/// A perf map, or a file that perf made from a JIT dump.
fn is_jit(module: &[u8]) -> bool {
    let map = module.starts_with(b"/tmp/perf-") && module.ends_with(b".map");
    let dump = memchr::memmem::find(module, b"/jitted-").is_some() && module.ends_with(b".so");
    map || dump
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(symbol: &str, module: &str, options: &PerfOptions, java: bool) -> Vec<String> {
        let (symbol, module) = (symbol.as_bytes(), module.as_bytes());
        let line = StackLine {
            address: b"7f",
            symbol,
            module,
        };
        let mut all = Vec::new();
        let taken = Names { options, java }.each(&line, |name| {
            all.push(String::from_utf8_lossy(name).into_owned());
            Ok::<(), ()>(())
        });
        assert!(taken.is_ok());
        all
    }

    #[test]
    fn argument_lists_go_and_what_looks_like_one_stays() {
        let cases = [
            (
                "go/build.(*importReader).readByte",
                "go/build.(*importReader).readByte",
            ),
            ("foo<Vec::<usize>>(Vec<usize>)", "foo<Vec::<usize>>"),
            (".run()V", ".run"),
            (
                "std::function<void (int)>::operator(int)",
                "std::function<void (int)>::operator",
            ),
            ("{lambda(int)#2}::operator()", "{lambda(int)#2}::operator"),
            ("(anonymous namespace)::bar()", "(anonymous namespace)::bar"),
            ("a;b", "a:b"),
        ];
        for (symbol, expected) in cases {
            assert_eq!(
                names(symbol, "x", &PerfOptions::default(), false),
                [expected]
            );
        }
    }

    #[test]
    fn unknown_symbols_are_named_by_module_and_address() {
        let plain = PerfOptions::default();
        let addrs = PerfOptions {
            addrs: true,
            ..PerfOptions::default()
        };
        assert_eq!(names("[unknown]", "/lib/x.so", &plain, false), ["[x.so]"]);
        assert_eq!(
            names("[unknown]", "/x.so (deleted)", &plain, false),
            ["[x.so (deleted)]"]
        );
        assert_eq!(
            names("[unknown]", "[unknown]", &plain, false),
            ["[unknown]"]
        );
        assert_eq!(
            names("[unknown]", "/lib/x.so", &addrs, false),
            ["[x.so <7f>]"]
        );
        assert_eq!(
            names("[unknown]", "[unknown]", &addrs, false),
            ["[unknown <7f>]"]
        );
    }

    #[test]
    fn arrows_of_cplusplus_and_rust_belong_to_the_name() {
        for symbol in [
            "std::unique_ptr<Row>::operator->",
            "<fn() -> i32 as core::ops::function::FnOnce<()>>::call_once",
            "Ref::operator->*",
        ] {
            for module in ["/usr/lib/x.so", "[kernel.kallsyms]", "[unknown]"] {
                let found = names(symbol, module, &PerfOptions::default(), false);
                assert_eq!(found, [symbol], "{module}");
            }
        }
        let arguments = "Ref::operator->(int)";
        let found = names(arguments, "x", &PerfOptions::default(), false);
        assert_eq!(found, ["Ref::operator->"]);
    }

    #[test]
    fn java_signatures_are_condensed_in_java_only() {
        let symbol = "Lorg/a/B;.call(Lorg/a/C;)Ljava/lang/Object;";
        assert_eq!(
            names(symbol, "x", &PerfOptions::default(), true),
            ["org/a/B:.call"]
        );
        assert_eq!(
            names(symbol, "x", &PerfOptions::default(), false),
            ["Lorg/a/B:.call"]
        );
        assert_eq!(
            names("LoopNode", "x", &PerfOptions::default(), true),
            ["LoopNode"]
        );
    }

    #[test]
    fn annotations_say_where_a_frame_ran() {
        let all = PerfOptions {
            kernel: true,
            jit: true,
            ..PerfOptions::default()
        };
        for module in [
            "[kernel.kallsyms]",
            "[nf]",
            "/m/x.ko",
            "/boot/vmlinux-5.4.1_x",
        ] {
            assert_eq!(names("f", module, &all, false), ["f_[k]"], "{module}");
        }
        for module in ["/tmp/perf-12.map", "/x/jitted-12-3.so"] {
            assert_eq!(names("f", module, &all, false), ["f_[j]"], "{module}");
            assert_eq!(names("f_[j]", module, &all, false), ["f_[j]"], "{module}");
        }
        for module in ["[unknown]", "/lib/x.so", "/boot/vmlinux (x)"] {
            assert_eq!(names("f", module, &all, false), ["f"], "{module}");
        }
        let inlined = names("a->b->c", "/tmp/perf-12.map", &all, false);
        assert_eq!(inlined, ["a_[j]", "b_[i]", "c_[i]"]);
    }
}
