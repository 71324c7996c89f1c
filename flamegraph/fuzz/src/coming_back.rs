//! A profile that was read is written and read again: it has to be the same, name by name.

use flamegraph::{
    read, write, Format, Labels, Profile, ReadOptions, Threads, WriteFormat, WriteOptions,
};

/// What pprof calls the thread of a sample: a label of the whole profile that is called so cannot be told from it.
const THREAD: &str = "thread";

/// Writes the profile in every format that can be read, and reads it.
pub fn comes_back(profile: &Profile) {
    for (format, back) in [
        (WriteFormat::Pprof, Format::Pprof),
        (WriteFormat::Speedscope, Format::Speedscope),
        (WriteFormat::Compact, Format::Compact),
    ] {
        let written = written(profile, format, &WriteOptions::default());
        let copy = copy(&written, back, Threads::Off);
        same(&copy, profile, format);
        if format == WriteFormat::Compact {
            // Nodes may have other numbers now. The same profile is written as the same bytes.
            assert_eq!(
                self::written(&copy, format, &WriteOptions::default()),
                written
            );
        }
    }
    written(profile, WriteFormat::Json, &WriteOptions::default());
    threads_come_back(profile);
}

/// With threads as labels: they can be had again, or left out.
fn threads_come_back(profile: &Profile) {
    let options = WriteOptions {
        thread_label: true,
        ..WriteOptions::default()
    };
    let written = written(profile, WriteFormat::Pprof, &options);
    let off = copy(&written, Format::Pprof, Threads::Off);
    let without = profile.without_threads().expect("stacks add up");
    same(&off, &without, WriteFormat::Pprof);
    if !profile.labels().contains_key(THREAD) {
        let each = copy(&written, Format::Pprof, Threads::Each);
        same(&each, profile, WriteFormat::Pprof);
    }
}

fn copy(written: &[u8], format: Format, threads: Threads) -> Profile {
    let options = ReadOptions {
        threads,
        ..ReadOptions::of(Some(format))
    };
    let copy = read(written, &options);
    copy.unwrap_or_else(|error| panic!("{format:?} does not come back: {error}"))
}

/// Both have the same values, labels, modules and stacks.
fn same(copy: &Profile, profile: &Profile, format: WriteFormat) {
    assert_eq!(copy.values(), profile.values(), "{format:?}");
    assert_eq!(labels(copy, format), labels(profile, format), "{format:?}");
    for value in 0..profile.values().len() {
        let (ours, theirs) = (stacks(profile, value), stacks(copy, value));
        let shown = String::from_utf8_lossy;
        assert!(
            ours == theirs,
            "{format:?}, value {value}: {:?} became {:?}",
            shown(&ours),
            shown(&theirs)
        );
        assert_eq!(
            copy.total(value).expect("it has this value"),
            profile.total(value).expect("it has this value"),
            "{format:?}"
        );
    }
}

/// As the format can carry them: pprof has no empty text, and reads a number.
fn labels(profile: &Profile, format: WriteFormat) -> Labels {
    let mut labels = profile.labels().clone();
    if format == WriteFormat::Pprof {
        labels.remove(THREAD);
        let empty = labels.values_mut().filter(|value| value.is_empty());
        empty.for_each(|value| value.push('0'));
    }
    labels
}

fn stacks(profile: &Profile, value: usize) -> Vec<u8> {
    let options = WriteOptions {
        value: Some(value),
        ..WriteOptions::default()
    };
    written(profile, WriteFormat::Folded, &options)
}

fn written(profile: &Profile, format: WriteFormat, options: &WriteOptions) -> Vec<u8> {
    let mut out = Vec::new();
    let written = write(profile, format, &mut out, options);
    written.unwrap_or_else(|error| panic!("{format:?}: {error}"));
    out
}
