//! Formats in and out: what is recognised, what is kept, what is refused.

use flamegraph::{read, Format, Limits, Profile, ReadOptions, ValueType, WriteFormat};

use crate::support::{detected, folded, gunzip, gzip, written};

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
fn text_that_begins_like_pprof_is_text() {
    let text = b"recv;read;hive.exec;recv;read 749\norg.apache.spar\x1bk.Executor;Main.main;html.parse 1\n";
    assert_eq!(detected(text).unwrap().total(0).unwrap(), 750);
    // Two samples, and nothing else: neither a zero nor a value in front.
    let error = detected(b"\x12\x02\x10\x01\x12\x02\x10\x01").err().unwrap();
    assert!(error.starts_with("pprof: "), "{error}");
}

#[test]
fn a_profile_is_recognised_by_its_beginning() {
    let whole = written(&sample(), WriteFormat::Pprof);
    let plain = gunzip(&whole);
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
            gzip(bytes),
            zst(bytes),
            [zst(b""), zst(bytes)].concat(),
        ] {
            let profile = detected(&form).unwrap();
            assert_eq!(folded(&profile, 0), expected);
        }
    }
}

#[test]
fn text_in_utf_16_is_read_compressed_or_not() {
    let text = "\u{feff}main;ä 5\r\nmain;b 3\r\n";
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [gzip(&utf16), utf16] {
        let profile = detected(&bytes).unwrap();
        assert_eq!(folded(&profile, 0), "main;b 3\nmain;ä 5\n");
    }
}

#[test]
fn a_named_format_is_not_detected() {
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
    }
    let huge_window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00];
    assert!(detected(&huge_window).err().unwrap().contains("window"));
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

#[test]
fn the_error_of_unknown_input_lists_the_formats() {
    let error = detected(b"hello\n").err().unwrap().to_string();
    assert!(
        error.starts_with("folded text, line 1: not a stack and a count"),
        "{error}"
    );
    assert!(
        error.contains("formats that can be read are jfr, perf-data, "),
        "{error}"
    );
    let named = read(b"hello\n", &ReadOptions::of(Some(Format::Folded)));
    let error = named.err().unwrap().to_string();
    assert!(!error.contains("formats"), "{error}");
}

#[test]
fn options_of_other_formats_are_refused() {
    type Set = fn(&mut ReadOptions);
    let perf = b"java 1 2.5: 10 cycles:\n\tff f+0x1 (/x)\n\n";
    let refused = |bytes: &[u8], set: Set| {
        let mut options = ReadOptions::default();
        set(&mut options);
        read(bytes, &options)
            .err()
            .map_or(String::new(), |error| error.to_string())
    };
    let cases: [(&str, Set); 4] = [
        ("time", |options| options.time = Some((0.0, 1.0))),
        ("estimate", |options| options.estimate = true),
        ("off-cpu", |options| options.off_cpu = true),
        ("kernel", |options| options.perf.kernel = true),
    ];
    for (number, (name, set)) in cases.into_iter().enumerate() {
        let error = refused(b"a 1\n", set);
        let expected = format!("the option {name} is for ");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.ends_with(" only, and this is folded"), "{error}");
        let error = refused(perf, set);
        let only = error.ends_with("jfr only, and this is perf-script");
        assert_eq!(only, number < 3, "{error}");
    }
}
