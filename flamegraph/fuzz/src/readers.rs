//! Whole files, by format.

use std::io::Write;

use flamegraph::{
    read, read_jfr, Format, Limits, PerfOptions, Profile, ReadOptions, SymbolOptions, ThreadDumps,
    Threads,
};

use flate2::{write::ZlibEncoder, Compression};

use super::coming_back::comes_back;

pub fn jfr(bytes: &[u8]) {
    read_as(bytes, Some(Format::Jfr));
    let everything = ReadOptions {
        threads: Threads::Groups,
        estimate: true,
        off_cpu: true,
        times: true,
        ..options(Some(Format::Jfr))
    };
    let Ok(recording) = read_jfr(bytes, &everything) else {
        return;
    };
    let values = recording.profile.values().len();
    for sampled in &recording.sampled {
        assert!(sampled.count < values);
        assert!(sampled.amount.is_none_or(|amount| amount < values));
        let wanted: Vec<usize> = [Some(sampled.count), sampled.amount]
            .into_iter()
            .flatten()
            .collect();
        let timed = recording
            .profile
            .select_timed(&wanted, sampled.times.as_ref());
        comes_back(&timed.expect("it has these values"));
    }
    comes_back(&recording.profile);
}

/// Reads the bytes as they are, and as a magic number with the plain body: few changed bodies can be inflated.
pub fn compact(bytes: &[u8]) {
    read_compact(bytes);
    if let Some((magic, body)) = bytes.split_at_checked(4) {
        let mut packed = ZlibEncoder::new(magic.to_vec(), Compression::none());
        packed.write_all(body).expect("memory can be written");
        read_compact(&packed.finish().expect("memory can be written"));
    }
}

fn read_compact(bytes: &[u8]) {
    let options = options(Some(Format::Compact));
    read_with(bytes, &options);
    let Ok(profile) = read(bytes, &options) else {
        return;
    };
    if let Some(times) = profile.times() {
        let middle = times.start.saturating_add(1_000_000);
        let halves = [(i64::MIN, middle), (middle, i64::MAX)];
        let halves = halves.map(|(from, to)| profile.in_range(from, to).expect("it has times"));
        for value in 0..profile.values().len() {
            let total = |profile: &Profile| profile.total(value).expect("it has this value");
            let sum = total(&halves[0]) + total(&halves[1]);
            assert!(sum == total(&profile) || sum == 0, "{sum}");
        }
    }
}

pub fn pprof(bytes: &[u8]) {
    read_as(bytes, Some(Format::Pprof));
    let threads = ReadOptions {
        threads: Threads::Groups,
        ..options(Some(Format::Pprof))
    };
    read_with(bytes, &threads);
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

pub fn async_html(bytes: &[u8]) {
    read_as(bytes, Some(Format::AsyncHtml));
}

pub fn firefox(bytes: &[u8]) {
    read_as(bytes, Some(Format::Firefox));
    let threads = ReadOptions {
        threads: Threads::Each,
        ..options(Some(Format::Firefox))
    };
    read_with(bytes, &threads);
}

pub fn otlp(bytes: &[u8]) {
    read_as(bytes, Some(Format::Otlp));
    let threads = ReadOptions {
        threads: Threads::Groups,
        ..options(Some(Format::Otlp))
    };
    read_with(bytes, &threads);
}

/// As a profile, and thread by thread.
pub fn thread_dump(bytes: &[u8]) {
    read_as(bytes, Some(Format::ThreadDump));
    let mut dumps = ThreadDumps::default();
    let Ok(read) = dumps.read(bytes) else {
        return;
    };
    for one in read.iter().flat_map(|dump| &dump.threads) {
        assert!(dumps.stack(one.stack).is_ok());
        let group = dumps.group(one.group).expect("a thread has a group");
        assert!(group.waiter.above as usize <= group.frames.len());
        let counts = [(one.group, one.thread.name.as_str(), 1)];
        let profile = dumps.profile(&counts).expect("it has this group");
        assert_eq!(profile.total(0).expect("it has a value"), 1);
    }
    for dump in &read {
        let owners = dump.owners.iter().flatten();
        owners.for_each(|&owner| assert!(owner < dump.threads.len()));
    }
}

pub fn jemalloc(bytes: &[u8]) {
    read_as(bytes, Some(Format::Jemalloc));
}

pub fn bpf(bytes: &[u8]) {
    read_as(bytes, Some(Format::Bpftrace));
    read_as(bytes, Some(Format::Bcc));
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
        chunk_bytes: 16 << 20,
        name_bytes: 4 << 10,
        names_bytes: 1 << 20,
        cells: 1 << 18,
        rows: 1 << 16,
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
    if let Ok(profile) = read(bytes, options) {
        comes_back(&profile);
    }
}
