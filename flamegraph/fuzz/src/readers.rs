//! Whole files, by format.

use flamegraph::{
    read, read_jfr, write, Format, Limits, PerfOptions, Profile, ReadOptions, SymbolOptions,
    Threads, WriteFormat, WriteOptions,
};

pub fn jfr(bytes: &[u8]) {
    read_as(bytes, Some(Format::Jfr));
    let everything = ReadOptions {
        threads: Threads::Groups,
        estimate: true,
        off_cpu: true,
        ..options(Some(Format::Jfr))
    };
    let _ = read_jfr(bytes, &everything);
}

pub fn compact(bytes: &[u8]) {
    read_as(bytes, Some(Format::Compact));
}

pub fn pprof(bytes: &[u8]) {
    read_as(bytes, Some(Format::Pprof));
    let threads = ReadOptions {
        threads: Threads::Groups,
        ..options(Some(Format::Pprof))
    };
    let _ = read(bytes, &threads);
}

pub fn perf_data(bytes: &[u8]) {
    read_as(bytes, Some(Format::PerfData));
}

pub fn folded(bytes: &[u8]) {
    read_as(bytes, Some(Format::Folded));
}

pub fn detected(bytes: &[u8]) {
    read_as(bytes, None);
}

pub fn speedscope(bytes: &[u8]) {
    read_as(bytes, Some(Format::Speedscope));
}

pub fn perf_script(bytes: &[u8]) {
    read_as(bytes, Some(Format::PerfScript));
    let everything = ReadOptions {
        threads: Threads::Each,
        perf: PerfOptions {
            pid: true,
            tid: true,
            kernel: true,
            jit: true,
            addrs: true,
            event_filter: Some("cycles".to_string()),
        },
        ..options(Some(Format::PerfScript))
    };
    read_with(bytes, &everything);
}

/// Small limits: memory that grows beyond them is found soon.
fn options(format: Option<Format>) -> ReadOptions {
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
fn read_as(bytes: &[u8], format: Option<Format>) {
    read_with(bytes, &options(format));
}

/// Reads bytes; an error is fine, a profile must survive being written.
fn read_with(bytes: &[u8], options: &ReadOptions) {
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
