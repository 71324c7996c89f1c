//! What every target does: read, and when that works, write and read again: the totals are the same.

use flamegraph::{
    read, write, Format, Limits, Profile, ReadOptions, SymbolOptions, WriteFormat, WriteOptions,
};

/// Small limits: memory that grows beyond them is found soon.
pub fn options(format: Option<Format>) -> ReadOptions {
    let limits = Limits {
        text_bytes: 16 << 20,
        pprof_bytes: 16 << 20,
        perf_data_bytes: 16 << 20,
        speedscope_bytes: 16 << 20,
        name_bytes: 4 << 10,
        names_bytes: 1 << 20,
        cells: 1 << 18,
    };
    ReadOptions {
        limits,
        // A file must not make the fuzzer read the machine's own.
        symbols: SymbolOptions::none(),
        ..ReadOptions::of(format)
    }
}

/// Reads bytes as this format, or as what they look like.
pub fn read_as(bytes: &[u8], format: Option<Format>) {
    read_with(bytes, &options(format));
}

/// Reads bytes; an error is fine, a profile must survive being written.
pub fn read_with(bytes: &[u8], options: &ReadOptions) {
    let Ok(profile) = read(bytes, options) else {
        return;
    };
    for (written, back) in [
        (WriteFormat::Pprof, Format::Pprof),
        (WriteFormat::Speedscope, Format::Speedscope),
    ] {
        let copy = read(&bytes_of(&profile, written), &ReadOptions::of(Some(back)));
        let copy = copy.unwrap_or_else(|error| panic!("{written:?} does not come back: {error}"));
        assert_eq!(totals(&copy), totals(&profile), "{written:?}");
    }
    bytes_of(&profile, WriteFormat::Json);
    bytes_of(&profile, WriteFormat::Folded);
}

fn bytes_of(profile: &Profile, format: WriteFormat) -> Vec<u8> {
    let mut out = Vec::new();
    let written = write(profile, format, &mut out, &WriteOptions::default());
    written.unwrap_or_else(|error| panic!("{format:?}: {error}"));
    out
}

fn totals(profile: &Profile) -> Vec<i64> {
    let values = 0..profile.values().len();
    values
        .map(|value| profile.total(value).expect("it has this value"))
        .collect()
}
