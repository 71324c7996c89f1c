//! Formats in and out: what is recognised, what is kept, what is refused.

#![cfg(feature = "formats")]

use flamegraph::{
    read, write, Format, Limits, Profile, ReadOptions, Threads, ValueType, WriteFormat,
    WriteOptions,
};

fn detected(bytes: &[u8]) -> Result<Profile, String> {
    read(bytes, &ReadOptions::default()).map_err(|error| error.to_string())
}

fn written(profile: &Profile, format: WriteFormat) -> Vec<u8> {
    let mut out = Vec::new();
    write(profile, format, &mut out, &WriteOptions::default()).unwrap();
    out
}

fn folded(profile: &Profile, value: usize) -> String {
    let mut out = Vec::new();
    profile.write_folded(&mut out, value, true).unwrap();
    String::from_utf8(out).unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut out, bytes).unwrap();
    out.finish().unwrap()
}

/// Zstandard frames whose blocks are not compressed, without a checksum.
fn zst(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    let mut blocks: Vec<&[u8]> = bytes.chunks(100_000).collect();
    blocks.push(b"");
    for (number, block) in blocks.iter().enumerate() {
        let last = u32::from(number + 1 == blocks.len());
        let header = (block.len() as u32) << 3 | last;
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.extend_from_slice(block);
    }
    out
}

fn sample() -> Profile {
    let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
    profile
        .add_stack(&["main", "a.B.c_[j]", "read_[k]"], &[3, 30])
        .unwrap();
    profile.add_stack(&["main", "a.B.c_[0]"], &[0, 7]).unwrap();
    profile.add_stack(&["thread 1"], &[1, 0]).unwrap();
    profile.set_label("host", "h 1");
    profile
}

#[test]
fn text_with_control_characters_is_text() {
    for control in (1..0x20u8).filter(|byte| !b"\n\r\t".contains(byte)) {
        for first in 0x21..0x7f {
            let text = [
                first, b'a', b'i', b'n', control, b';', b'b', b' ', b'3', b'\n',
            ];
            let profile = detected(&text).unwrap();
            assert_eq!(profile.total(0).unwrap(), 3, "{text:?}");
        }
    }
}

#[test]
fn a_profile_is_recognised_by_its_beginning() {
    let whole = written(&sample(), WriteFormat::Pprof);
    let mut plain = Vec::new();
    let mut gzip = flate2::read::MultiGzDecoder::new(&whole[..]);
    std::io::Read::read_to_end(&mut gzip, &mut plain).unwrap();
    for end in 3..plain.len() {
        let error = detected(&plain[..end]).err().unwrap_or_default();
        assert!(
            error.is_empty() || error.starts_with("pprof: "),
            "{end}: {error}"
        );
    }
    // Some writers put the strings first.
    let (samples, strings): (Vec<u8>, Vec<u8>) = (b"\x0a\x04\x08\x01\x10\x02".to_vec(), {
        let texts = ["", "samples", "count"].map(|text| {
            let mut field = vec![0x32, text.len() as u8];
            field.extend(text.bytes());
            field
        });
        texts.concat()
    });
    let turned = [strings, samples].concat();
    assert_eq!(detected(&turned).unwrap().values(), [ValueType::samples()]);
}

#[test]
fn each_format_is_recognised_plain_and_compressed() {
    let perf = "java 1 2.5: 10 cycles:\n\tff f+0x1 (/x)\n\n".as_bytes();
    let texts: [(&[u8], &str); 4] = [
        (b"a;b 3\n", "a;b 3\n"),
        (perf, "java;f 10\n"),
        (
            &written(&sample(), WriteFormat::Pprof),
            &folded(&sample(), 0),
        ),
        (
            &written(&sample(), WriteFormat::Speedscope),
            &folded(&sample(), 0),
        ),
    ];
    for (bytes, expected) in texts {
        for form in [
            bytes.to_vec(),
            gz(bytes),
            zst(bytes),
            [zst(b""), zst(bytes)].concat(),
        ] {
            let profile = detected(&form).unwrap();
            assert_eq!(folded(&profile, 0), expected);
        }
    }
}

#[test]
fn the_caller_may_know_better() {
    let options = ReadOptions::of(Some(Format::Folded));
    let profile = read(b"java 1 2.5: 10 cycles: 3\n", &options).unwrap();
    assert_eq!(folded(&profile, 0), "java 1 2.5: 10 cycles: 3\n");
    assert_eq!(
        Format::all()
            .map(|format| format.name().parse().unwrap())
            .collect::<Vec<Format>>(),
        Format::all().collect::<Vec<_>>()
    );
}

#[test]
fn zstd_bombs_and_damage_are_errors() {
    let limits = Limits {
        text_bytes: 1000,
        ..Limits::default()
    };
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    // One block that says: a space, a million times.
    let bomb = [
        &[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58][..],
        &(100_000u32 << 3 | 3).to_le_bytes()[..3],
        b"a",
    ]
    .concat();
    let error = read(&bomb, &options).err().unwrap().to_string();
    assert_eq!(error, "bytes of folded text: more than 1000");
    let whole = zst(b"a;b 1\n");
    for end in 4..whole.len() {
        let error = detected(&whole[..end]).err().unwrap();
        assert!(error.starts_with("zstd: "), "{end}: {error}");
        assert!(error.contains(" at byte "), "{end}: {error}");
    }
    let huge_window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00];
    assert!(detected(&huge_window).err().unwrap().contains("window"));
}

const FRAMES: &str =
    r#""shared":{"frames":[{"name":"a"},{"name":"b_[j]","file":"x","line":3},{"name":"\u0063"}]}"#;

fn speedscope(profiles: &str) -> Result<Profile, String> {
    let schema = "https://www.speedscope.app/file-format-schema.json";
    detected(format!(r#"{{"$schema":"{schema}",{FRAMES},"profiles":[{profiles}]}}"#).as_bytes())
}

#[test]
fn speedscope_files_of_others_are_read() {
    let sampled = r#"{"type":"sampled","name":"t1","unit":"milliseconds","startValue":0,"endValue":3,
        "samples":[[0,1],[0],[],[2]],"weights":[1.5,1,0.5,0]}"#;
    let evented = r#"{"type":"evented","name":"t2","unit":"seconds","startValue":10,"endValue":14,"events":[
        {"type":"O","frame":0,"at":10.5},{"type":"O","frame":2,"at":11},{"type":"C","frame":2,"at":12.25},
        {"type":"C","frame":0,"at":13},{"type":"O","frame":1,"at":13.5}]}"#;
    let counts = r#"{"type":"sampled","name":"n","unit":"none","startValue":0,"endValue":3,"samples":[[1]],"weights":[3]}"#;
    let profile = speedscope(&[sampled, evented, counts].join(",")).unwrap();
    let time = ValueType::new("time", "nanoseconds");
    assert_eq!(profile.values(), [time, ValueType::samples()]);
    assert_eq!(
        folded(&profile, 0),
        " 500000\na 1251000000\na;b_[j] 1500000\na;c 1250000000\nb_[j] 500000000\n"
    );
    assert_eq!(folded(&profile, 1), "b_[j] 3\n");
}

#[test]
fn fractions_of_weights_are_not_lost() {
    let sampled = |weights: &str| {
        let samples = vec!["[0]"; weights.split(',').count()].join(",");
        speedscope(&format!(
            r#"{{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":9,
                "samples":[{samples}],"weights":[{weights}]}}"#
        ))
    };
    for (weights, total) in [
        ("1.5,1.5", 3),
        ("0.25,0.25,0.25,0.25", 1),
        ("0.5,0.0,0.0,1", 2),
        ("0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1", 1),
        ("0.49999999999999994,0.5,0.0", 1),
        ("9007199254740993,0.5", 9_007_199_254_740_994),
    ] {
        let profile = sampled(weights).unwrap();
        assert_eq!(profile.total(0).unwrap(), total, "{weights}");
    }
    assert!(sampled("0.5,-1.5").is_err());
}

#[test]
fn speedscope_profiles_of_threads_can_be_told_apart() {
    let one = r#"{"type":"sampled","name":"main","unit":"none","startValue":0,"endValue":1,"samples":[[0]],"weights":[1]}"#;
    let text = format!(r#"{{"profiles":[{one}],{FRAMES}}}"#);
    let options = ReadOptions {
        threads: Threads::Each,
        ..ReadOptions::default()
    };
    assert_eq!(
        folded(&read(text.as_bytes(), &options).unwrap(), 0),
        "[main];a 1\n"
    );
}

#[test]
fn what_a_speedscope_file_lies_about_is_named() {
    let sampled = |samples: &str, weights: &str| {
        format!(
            r#"{{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":0,"samples":{samples},"weights":{weights}}}"#
        )
    };
    let evented = |events: &str| {
        format!(
            r#"{{"type":"evented","name":"t","unit":"none","startValue":0,"endValue":9,"events":[{events}]}}"#
        )
    };
    let cases = [
        (
            sampled("[[3]]", "[1]"),
            "sample 0: frame 3 does not exist (there are 3)",
        ),
        (
            sampled("[[0],[0]]", "[1]"),
            "sample 1: there is no weight for it",
        ),
        (sampled("[[0]]", "[1,2]"), "1 weights more than samples"),
        (
            sampled("[[0]]", "[-1]"),
            "sample 0: samples (count): -1 is negative",
        ),
        (
            sampled("[[0]]", "[1e30]"),
            "sample 0: 1e30 does not fit in 64 bits",
        ),
        (
            sampled("[[0.5]]", "[1]"),
            "sample 0: 0.5 is not a frame's number",
        ),
        (
            sampled("[0]", "[1]"),
            "sample 0: 0 where an array should be",
        ),
        (
            sampled("[[0]]", "[\"1\"]"),
            "sample 0: \"1\" where a number should be",
        ),
        (
            evented(r#"{"type":"C","frame":0,"at":1}"#),
            "event 0: frame 0 closes and none is open",
        ),
        (
            evented(r#"{"type":"O","frame":0,"at":2},{"type":"C","frame":0,"at":1}"#),
            "event 1: 1 comes after 2",
        ),
        (
            evented(r#"{"type":"O","frame":0,"at":2},{"type":"C","frame":1,"at":3}"#),
            "event 1: frame 1 closes while 0 is open",
        ),
        (
            evented(r#"{"type":"O","frame":0,"at":20}"#),
            "endValue: 9 comes after 20",
        ),
        (
            evented(r#"{"type":"O","frame":9,"at":2}"#),
            "event 0: frame 9 does not exist (there are 3)",
        ),
        (
            evented(r#"{"type":"O","frame":"x","at":2}"#),
            "invalid type: string \"x\", expected u32",
        ),
        (
            r#"{"type":"heap","name":"t","unit":"none"}"#.to_string(),
            "unknown type \"heap\"",
        ),
        (
            r#"{"type":"sampled","name":"t","unit":"parsec"}"#.to_string(),
            "unknown unit \"parsec\"",
        ),
    ];
    for (profile, expected) in cases {
        let error = speedscope(&profile).err().unwrap();
        assert_eq!(
            error,
            format!("speedscope: profiles: profile 0 (t): {expected}")
        );
    }
    let error = detected(b"{\"$schema\": 1, \"shared\": [}").err().unwrap();
    assert!(error.contains("at line 1 column"), "{error}");
}

#[test]
fn deep_stacks_and_nesting_do_not_matter() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    let deep: Vec<String> = (0..100_000)
        .map(|depth| format!("f{}", depth % 7))
        .collect();
    profile.add_stack(&deep, &[1]).unwrap();
    let json = String::from_utf8(written(&profile, WriteFormat::Json)).unwrap();
    assert_eq!(json.matches("\"children\"").count(), 100_001);
    let back = detected(&written(&profile, WriteFormat::Speedscope)).unwrap();
    assert_eq!(folded(&back, 0), folded(&profile, 0));
    let nested = format!("{{\"shared\":{}", "[".repeat(100_000));
    assert!(detected(nested.as_bytes()).is_err());
}

#[test]
fn a_profile_always_has_a_value() {
    let empty = [
        "# cmdline : /usr/bin/perf record\n",
        r#"{"shared":{"frames":[]},"profiles":[]}"#,
        "a 1 2.5: PERF_RECORD_COMM: a:1/1\n\n",
        "",
    ];
    for text in empty {
        let profile = detected(text.as_bytes()).unwrap();
        assert_eq!(profile.values(), [ValueType::samples()], "{text}");
        assert!(profile.is_empty());
    }
}

/// It is cut off before its first event, and lies in a file: those are not read as streams are.
#[test]
fn a_perf_data_file_without_events_has_a_value() {
    let path = std::env::temp_dir().join(format!("hprofiler-cut-{}.data", std::process::id()));
    std::fs::write(&path, b"PERFILE2\x10\0\0\0\0\0\0\0").unwrap();
    let profile = flamegraph::read_path(&path, &ReadOptions::default());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(profile.unwrap().values(), [ValueType::samples()]);
}

#[test]
fn events_that_become_one_name_are_one_value() {
    let text =
        b"a 1 2.5: x\xff:\n\t1 f (/x)\n\na 1 2.6: x\xfe:\n\t1 f (/x)\n\na 1 2.7: y:\n\t1 f (/x)\n";
    let profile = detected(text).unwrap();
    assert_eq!(profile.values().len(), 2);
    assert_eq!(folded(&profile, 0), "a;f 2\n");
}

#[test]
fn what_is_no_profile_is_told_what_would_be_one() {
    let error = detected(b"<html>\n").err().unwrap().to_string();
    assert!(
        error.starts_with("folded text, line 1: not a stack and a count"),
        "{error}"
    );
    assert!(
        error.contains("formats that can be read are jfr, perf-data, "),
        "{error}"
    );
    let named = read(b"<html>\n", &ReadOptions::of(Some(Format::Folded)));
    let error = named.err().unwrap().to_string();
    assert!(!error.contains("formats"), "{error}");
}

#[test]
fn what_stands_behind_compressed_data_is_a_warning() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    profile.add_stack(&["a"], &[1]).unwrap();
    let plain = written(&profile, WriteFormat::Folded);
    for (name, mut bytes) in [("gzip", gz(&plain)), ("zstd", zst(&plain))] {
        assert!(detected(&bytes).unwrap().warnings().is_empty());
        bytes.extend_from_slice(b"-- signature --");
        let read = detected(&bytes).unwrap();
        assert_eq!(folded(&read, 0), "a 1\n");
        let warning =
            format!("{name}: 15 bytes behind the compressed data are no part of it: ignored");
        assert_eq!(read.warnings(), [warning]);
    }
}

#[test]
fn options_of_other_formats_are_refused() {
    type Set = fn(&mut ReadOptions);
    let perf = b"java 1 2.5: 10 cycles:\n\tff f+0x1 (/x)\n\n";
    let refused = |bytes: &[u8], set: Set| {
        let mut options = ReadOptions::default();
        set(&mut options);
        let read = read(bytes, &options);
        read.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let cases: [(&str, Set); 9] = [
        ("time", |options| options.time = Some((0.0, 1.0))),
        ("estimate", |options| options.estimate = true),
        ("off-cpu", |options| options.off_cpu = true),
        ("pid", |options| options.perf.pid = true),
        ("tid", |options| options.perf.tid = true),
        ("kernel", |options| options.perf.kernel = true),
        ("jit", |options| options.perf.jit = true),
        ("addrs", |options| options.perf.addrs = true),
        ("event-filter", |options| {
            options.perf.event_filter = Some("cycles".to_string());
        }),
    ];
    for (number, (name, set)) in cases.into_iter().enumerate() {
        let error = refused(b"a 1\n", set);
        let expected = format!("the option {name} is for ");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.ends_with(" only, and this is folded"), "{error}");
        let error = refused(perf, set);
        assert_eq!(
            error.ends_with("jfr only, and this is perf-script"),
            number < 3,
            "{error}"
        );
    }
}

#[test]
fn an_event_that_there_is_not_is_told_those_there_are() {
    let text = b"java 1 2.5: 10 cycles:u:\n\tff f (/x)\n\njava 1 2.6: 10 faults:\n\tff f (/x)\n\n";
    let mut options = ReadOptions::default();
    options.perf.event_filter = Some("cache".to_string());
    let error = read(text, &options).err().unwrap();
    assert!(error.is_usage());
    assert_eq!(
        error.to_string(),
        "no event \"cache\" in this recording; there are: cycles:u, faults"
    );
    options.perf.event_filter = Some("cycles".to_string());
    assert_eq!(read(text, &options).unwrap().total(0).unwrap(), 10);
}

#[test]
fn an_absurd_period_is_malformed_and_the_rest_counts() {
    let text = b"java 1 2.5: 9223372036854775808 cycles:\n\tff f (/x)\n\njava 1 2.6: 10 cycles:\n\tff g (/x)\n\n";
    let profile = detected(text).unwrap();
    assert_eq!(
        (folded(&profile, 0).as_str(), profile.malformed_lines()),
        ("java;g 10\n", 1)
    );
}

#[test]
fn values_that_are_alike_stay_apart() {
    let mut profile = Profile::new(vec![ValueType::samples(), ValueType::samples()]);
    profile.add_stack(&["a"], &[1, 2]).unwrap();
    let back = detected(&written(&profile, WriteFormat::Speedscope)).unwrap();
    assert_eq!(
        (folded(&back, 0), folded(&back, 1)),
        ("a 1\n".into(), "a 2\n".into())
    );
}
