//! Modules of functions: read where a format has them, kept by operations, and not part of the frames.

use flamegraph::{
    read, Diff, Format, Kind, MeanMerger, Merger, NameRules, Profile, ReadOptions, ViewerWriter,
    WriteFormat,
};

use crate::support::{body, inflated, written};

/// Frames of a library, of the kernel, of compiled code, and unknown ones.
const SCRIPT: &str = "\
java 7/8 1.000000: 1 cpu-clock:
\tffffffff81 do_read_fault+0x1 ([kernel.kallsyms])
\tffffffffc0 ext4_read+0x1 ([ext4])
\t7f01 __libc_read+0x1 (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t7f02 Lcom/acme/Job;::run+0x1 (/tmp/perf-7.map)
\t7f03 [unknown] (/opt/acme/libacme.so (deleted))
\t7f04 [unknown] ([unknown])

";

fn script(text: &str) -> Profile {
    read(text.as_bytes(), &ReadOptions::of(Some(Format::PerfScript))).unwrap()
}

/// A function of these modules.
fn one(name: &str, modules: &[&str]) -> Profile {
    let lines = modules.iter().map(|module| {
        format!("native 7/8 1.000000: 1 cpu-clock:\n\t7f01 {name}+0x1 ({module})\n\n")
    });
    script(&lines.collect::<String>())
}

fn modules(profile: &Profile) -> Vec<(&str, &str)> {
    profile.modules().collect()
}

fn back(profile: &Profile, format: WriteFormat) -> Profile {
    read(&written(profile, format), &ReadOptions::default()).unwrap()
}

const EXPECTED: [(&str, &str); 4] = [
    ("[libacme.so (deleted)]", "libacme.so"),
    ("__libc_read", "libc.so.6"),
    ("do_read_fault", "[kernel.kallsyms]"),
    ("ext4_read", "[ext4]"),
];

#[test]
fn modules_of_perf_script() {
    let profile = script(SCRIPT);
    assert_eq!(modules(&profile), EXPECTED);
    assert_eq!(
        profile.module_of("__libc_read", Kind::Plain),
        Some("libc.so.6")
    );
    assert_eq!(profile.module_of("__libc_read", Kind::Kernel), None);
}

#[test]
fn formats_that_keep_modules() {
    let profile = script(SCRIPT);
    for format in [WriteFormat::Compact, WriteFormat::Pprof] {
        let copy = back(&profile, format);
        assert_eq!(modules(&copy), EXPECTED, "{format:?}");
        assert_eq!(written(&copy, format), written(&profile, format));
    }
    let json = String::from_utf8(written(&profile, WriteFormat::Json)).unwrap();
    assert!(json.contains(r#"{"name":"__libc_read","kind":"plain","module":"libc.so.6","self":"#));
    assert!(json.contains(r#"{"name":"[unknown]","kind":"plain","self":"#));
    let folded = written(&profile, WriteFormat::Folded);
    let plain = read(&folded, &ReadOptions::default()).unwrap();
    assert!(modules(&plain).is_empty());
    assert_eq!(written(&plain, WriteFormat::Folded), folded);
}

#[test]
fn without_modules_nothing_is_written() {
    let profile = script(SCRIPT);
    let text = written(&profile, WriteFormat::Folded);
    let plain = read(&text, &ReadOptions::default()).unwrap();
    let content = |profile| body(&written(profile, WriteFormat::Compact));
    // What is read of older files: all but what stands at the end.
    assert!(
        content(&profile).starts_with(&content(&plain)) && content(&profile) != content(&plain)
    );
    let json = written(&plain, WriteFormat::Json);
    assert!(!String::from_utf8_lossy(&json).contains("module"));
}

#[test]
fn sums_means_and_differences_keep_all_modules() {
    let (ours, theirs) = (
        one("f", &["/b/libc.so.6"]),
        one("f", &["/a/libm.so.6", "[vdso]"]),
    );
    let expected = [("f", "[vdso], libc.so.6, libm.so.6")];
    for (first, second) in [(&ours, &theirs), (&theirs, &ours)] {
        let mut sum = first.clone();
        sum.merge(second).unwrap();
        assert_eq!(modules(&sum), expected);
        assert_eq!(sum.node_count(), ours.node_count(), "no part of the frame");
        let mut merger = Merger::new();
        let mut mean = MeanMerger::new();
        for profile in [first, second] {
            merger.add(profile.clone()).unwrap();
            mean.add(profile).unwrap();
        }
        assert_eq!(modules(&merger.finish().unwrap().unwrap()), expected);
        assert_eq!(modules(&mean.finish().unwrap()), expected);
        let diff = Diff::of(first, second, 0, true).unwrap();
        assert_eq!(modules(diff.tree()), expected);
    }
    let many = one("f", &["/a", "/b", "/c", "/d"]);
    assert_eq!(modules(&many), [("f", "several modules")]);
    assert_eq!(
        modules(&back(&many, WriteFormat::Pprof)),
        [("f", "several modules")]
    );
}

#[test]
fn canonical_names_of_unpacked_libraries() {
    let numbered = [
        "/tmp/libnetty_epoll_x86_641234567890123456789.so",
        "/tmp/snappy-1.1.10-0b9c5e0e-8f7a-4c8e-9d55-0a1b2c3d4e5f-libsnappyjava.so",
        "/usr/lib/libstdc++.so.6.0.30",
    ];
    let profile = one("f", &numbered).canonical(NameRules::builtin()).unwrap();
    let expected = "libnetty_epoll_x86_N.so, libstdc++.so.6.0.30, snappy-1.1.10-N-libsnappyjava.so";
    assert_eq!(modules(&profile), [("f", expected)]);
    // A function that is renamed takes its module along.
    let renamed = one("a$$Lambda$1/2", &["/lib/x.so"]);
    let renamed = renamed.canonical(NameRules::builtin()).unwrap();
    assert_eq!(modules(&renamed), [("a$$Lambda", "x.so")]);
}

/// One name in the kernel, in a library, and as a method of Java's.
const BOTH_WORLDS: &str = "\
java 7/8 1.000000: 1 cpu-clock:
\tffffffffc0 run+0x1 ([zstd])
\t7f01 run+0x1 (/opt/libx.so)
\t7f03 run+0x1 (/tmp/perf-7.map)

";

#[test]
fn modules_by_kind_of_frame() {
    let mut options = ReadOptions::of(Some(Format::PerfScript));
    (options.perf.kernel, options.perf.jit) = (true, true);
    let profile = read(BOTH_WORLDS.as_bytes(), &options).unwrap();
    let expected = [("run", "libx.so"), ("run", "[zstd]")];
    for format in [WriteFormat::Compact, WriteFormat::Pprof] {
        let copy = back(&profile, format);
        assert_eq!(modules(&copy), expected, "{format:?}");
        for (kind, module) in [
            (Kind::Plain, Some("libx.so")),
            (Kind::Kernel, Some("[zstd]")),
            (Kind::Jit, None),
            (Kind::Inlined, None),
            (Kind::Waker, None),
        ] {
            assert_eq!(copy.module_of("run", kind), module, "{format:?} {kind:?}");
        }
    }
    let json = String::from_utf8(written(&profile, WriteFormat::Json)).unwrap();
    for part in [
        r#"{"name":"run","kind":"jit","self""#,
        r#"{"name":"run","kind":"plain","module":"libx.so","self""#,
        r#"{"name":"run","kind":"kernel","module":"[zstd]","self""#,
    ] {
        assert!(json.contains(part), "{json}");
    }
    let mut page = ViewerWriter::new();
    page.add(&profile, 0, None).unwrap();
    let mut out = Vec::new();
    page.finish(&mut out).unwrap();
    // Names are java, run.
    let expected = b"\x02\x07libx.so\x06[zstd]\x02\x00\x01\x02\x00\x02";
    assert!(inflated(&out).ends_with(expected));
}

#[test]
fn hostile_names_of_modules_are_text() {
    for module in ["<img onerror=x>", "a\"b\\c", "x\u{202e}y", "a, b"] {
        let profile = one("f", &[module]);
        assert_eq!(modules(&profile), [("f", module)]);
        for format in [WriteFormat::Compact, WriteFormat::Pprof] {
            assert_eq!(modules(&back(&profile, format)), [("f", module)]);
        }
        let json = written(&profile, WriteFormat::Json);
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let frame = &json["root"]["children"][0]["children"][0];
        assert_eq!(frame["module"], module);
    }
}
