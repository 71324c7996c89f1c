//! Threads as labels of pprof's samples: written, read back, left out.

use flamegraph::{read, write, Format, Profile, ReadOptions, Threads, WriteFormat, WriteOptions};

const TEXT: &str = "[pool-1-thread-1];run;work 3\n[pool-1-thread-2];run;work 4\n[pool-1-thread-2];run;[x] 1\nmain 2\n";

fn profile() -> Profile {
    let mut profile = read(TEXT.as_bytes(), &ReadOptions::default()).unwrap();
    profile.set_label("host", "h1");
    profile
}

fn pprof(profile: &Profile) -> Vec<u8> {
    let options = WriteOptions {
        thread_label: true,
        ..WriteOptions::default()
    };
    let mut out = Vec::new();
    write(profile, WriteFormat::Pprof, &mut out, &options).unwrap();
    out
}

fn folded(bytes: &[u8], threads: Threads) -> String {
    let options = ReadOptions {
        threads,
        ..ReadOptions::default()
    };
    let profile = read(bytes, &options).unwrap();
    assert_eq!(profile.labels()["host"], "h1");
    assert_eq!(profile.labels().len(), 1);
    let mut out = Vec::new();
    profile.write_folded(&mut out, 0, true).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn threads_come_back_as_they_are_asked_for() {
    let bytes = pprof(&profile());
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&folded(&bytes, Threads::Each)), sorted(TEXT));
    assert_eq!(
        sorted(&folded(&bytes, Threads::Groups)),
        [
            "[pool-N-thread-N];run;[x] 1",
            "[pool-N-thread-N];run;work 7",
            "main 2"
        ]
    );
    assert_eq!(
        folded(&bytes, Threads::Off),
        "main 2\nrun;[x] 1\nrun;work 7\n"
    );
}

#[test]
fn one_thread_alone_is_no_label_of_the_whole() {
    let mut profile = read(b"[main];a 1\n", &ReadOptions::default()).unwrap();
    profile.set_label("host", "h1");
    assert_eq!(folded(&pprof(&profile), Threads::Off), "a 1\n");
    assert_eq!(folded(&pprof(&profile), Threads::Each), "[main];a 1\n");
}

#[test]
fn a_thread_s_own_samples_keep_their_place() {
    let mut profile = read(b"[main] 2\n[main];a 1\n", &ReadOptions::default()).unwrap();
    profile.set_label("host", "h1");
    assert_eq!(
        folded(&pprof(&profile), Threads::Each),
        "[main] 2\n[main];a 1\n"
    );
    let options = ReadOptions::default();
    let off = read(&pprof(&profile), &options).unwrap();
    assert_eq!(off.total(0).unwrap(), 3);
}

#[test]
fn what_no_label_can_say_stays_a_frame() {
    for text in [
        "[[a]];run 1\n",
        "[];run 1\n",
        "[kernel]_[k];run 1\n",
        "[a];run 1\n",
    ] {
        let mut profile = read(text.as_bytes(), &ReadOptions::default()).unwrap();
        profile.set_label("host", "h1");
        assert_eq!(folded(&pprof(&profile), Threads::Each), text);
    }
}

/// A field of a protobuf message that has a length.
fn piece(field: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len() & 0x7f).unwrap() | 0x80;
    let more = u8::try_from(content.len() >> 7).unwrap();
    [&[field << 3 | 2, length, more], content].concat()
}

#[test]
fn a_sample_with_labels_without_end_is_refused_at_once() {
    let texts = ["", "samples", "count", "thread", "main"];
    let thread = piece(3, &[1 << 3, 3, 2 << 3, 4]);
    let message = |labels: usize| {
        let sample = [&[2 << 3, 1][..], &thread.repeat(labels)].concat();
        let mut message = piece(1, &[1 << 3, 1, 2 << 3, 2]);
        message.extend(piece(2, &sample));
        texts
            .iter()
            .for_each(|text| message.extend(piece(6, text.as_bytes())));
        message
    };
    let options = ReadOptions::of(Some(Format::Pprof));
    assert!(read(&message(256), &options).is_ok());
    let refused = read(&message(257), &options).err().unwrap();
    assert!(
        refused.to_string().contains("more than 256 labels"),
        "{refused}"
    );
}

/// Fields of one sample with value 1, by what stands behind one another.
fn sample(fields: &[&[u8]]) -> Vec<u8> {
    piece(2, &fields.concat())
}

#[test]
fn labels_count_wherever_they_stand_in_a_sample() {
    let texts = [
        "", "samples", "count", "thread", "main", "other", "host", "h1",
    ];
    let main = piece(3, &[1 << 3, 3, 2 << 3, 4]);
    let other = piece(3, &[1 << 3, 3, 2 << 3, 5]);
    let host = piece(3, &[1 << 3, 6, 2 << 3, 7]);
    let value = &[2 << 3, 1][..];
    let mut message = piece(1, &[1 << 3, 1, 2 << 3, 2]);
    for fields in [
        &[value, &host, &main][..],
        &[value, &host, &main],
        &[&host, &main, value],
        &[&host, &main, value],
        &[value, &host],
        &[value],
        &[value],
        &[value, &main, &host],
        &[&main, value, &host],
        &[value, &host, &other],
        &[&host, &other, value],
    ] {
        message.extend(sample(fields));
    }
    for text in texts {
        message.extend(piece(6, text.as_bytes()));
    }
    let options = ReadOptions {
        threads: Threads::Each,
        ..ReadOptions::default()
    };
    let profile = read(&message, &options).unwrap();
    assert!(profile.labels().is_empty(), "two samples have none");
    let mut out = Vec::new();
    profile.write_folded(&mut out, 0, true).unwrap();
    assert_eq!(out, b" 3\n[main] 6\n[other] 2\n");
}

#[test]
fn a_thread_is_known_after_more_labels_than_are_remembered() {
    let mut message = piece(1, &[1 << 3, 1, 2 << 3, 2]);
    let threads = [4, 5].map(|name| piece(3, &[1 << 3, 3, 2 << 3, name]));
    for number in 0..140_000_u32 {
        // As a span's number that each sample has.
        let digits = [number & 0x7f, number >> 7 & 0x7f, number >> 14].map(|bits| bits as u8);
        let span = [
            1 << 3,
            6,
            3 << 3,
            digits[0] | 0x80,
            digits[1] | 0x80,
            digits[2],
        ];
        message.extend(sample(&[
            &threads[(number % 2) as usize],
            &piece(3, &span),
            &[2 << 3, 1],
        ]));
    }
    for text in ["", "samples", "count", "thread", "main", "other", "span"] {
        message.extend(piece(6, text.as_bytes()));
    }
    let options = ReadOptions {
        threads: Threads::Each,
        ..ReadOptions::default()
    };
    let profile = read(&message, &options).unwrap();
    let mut out = Vec::new();
    profile.write_folded(&mut out, 0, true).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "[main] 70000\n[other] 70000\n"
    );
}
