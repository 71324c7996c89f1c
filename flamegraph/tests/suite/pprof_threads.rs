//! Threads as labels of pprof's samples: written, read back, left out.

use flamegraph::{read, write, Format, Profile, ReadOptions, Threads, WriteFormat, WriteOptions};

use crate::pprof_maker::bytes;
use crate::support::text;

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
    text(&profile)
}

#[test]
fn threads_come_back_on_request() {
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
fn threads_that_cannot_be_labels_stay_frames() {
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

#[test]
fn labels_of_a_sample_are_limited() {
    let texts = ["", "samples", "count", "thread", "main"];
    let thread = bytes(3, &[1 << 3, 3, 2 << 3, 4]);
    let message = |labels: usize| {
        let sample = [&[2 << 3, 1][..], &thread.repeat(labels)].concat();
        let mut message = bytes(1, &[1 << 3, 1, 2 << 3, 2]);
        message.extend(bytes(2, &sample));
        texts
            .iter()
            .for_each(|text| message.extend(bytes(6, text.as_bytes())));
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
