//! Files that are not profiles, or profiles that cannot be read: what they look like, and the way to a profile.

use super::folded;
use crate::profile::{Error, Result};
use crate::source::HEAD_BYTES;

/// Where a mark stands.
enum At {
    /// At this byte of the file.
    Byte(usize),
    /// At the beginning of a line, after spaces; comment lines are searched, too.
    Line,
    /// Anywhere in the beginning of the file.
    Anywhere,
}

/// A mark of a file, what the file is, and what to do with it.
struct Mark {
    at: At,
    bytes: &'static [u8],
    is: &'static str,
    way_out: &'static str,
}

const fn mark(at: At, bytes: &'static [u8], is: &'static str, way_out: &'static str) -> Mark {
    Mark {
        at,
        bytes,
        is,
        way_out,
    }
}

const UNPACK: &str = "unpack it (gzip and zstd are unpacked by hprofiler)";
const SPARK: &str = "give it to `hprofiler spark`";
const COLLAPSED: &str = "write it with -o collapsed or -o jfr";
const SPEEDSCOPE: &str = "open it in speedscope and export it";
const THE_RECORDING: &str = "give the recording itself";
const GO_PPROF: &str = "take it without debug=1";
const THE_PROFILE: &str = "give the profile that it was made of";
const NOT_STACKS: &str = "it has no stacks with counts";
const METRICS: &str = "metrics (OpenMetrics, as of Prometheus)";

/// Binary files, by their magic numbers. None of them begins like a format that is read.
#[rustfmt::skip]
const BINARY: &[Mark] = &[
    mark(At::Byte(0), b"PK\x03\x04", "a zip archive", UNPACK),
    mark(At::Byte(0), b"PK\x05\x06", "an empty zip archive", UNPACK),
    mark(At::Byte(0), b"\xfd7zXZ\0", "compressed with xz", UNPACK),
    mark(At::Byte(0), b"BZh", "compressed with bzip2", UNPACK),
    mark(At::Byte(0), b"\x04\x22\x4d\x18", "compressed with lz4", UNPACK),
    mark(At::Byte(0), b"LZ4Block", "compressed with lz4, as Spark's event logs are", SPARK),
    mark(At::Byte(0), b"\xff\x06\0\0sNaPpY", "compressed with snappy", UNPACK),
    mark(At::Byte(0), b"\x82SNAPPY\0", "compressed with snappy, as Spark's event logs are", SPARK),
    mark(At::Byte(0), b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    mark(At::Byte(0), b"Rar!\x1a\x07", "a rar archive", UNPACK),
    mark(At::Byte(0), b"\x1f\x9d", "compressed with compress", UNPACK),
    mark(At::Byte(257), b"ustar", "a tar archive", UNPACK),
    mark(At::Byte(0), b"JAVA PROFILE 1.0", "a heap dump of a JVM (hprof)", NOT_STACKS),
    mark(At::Byte(0), b"PERFFILE", "a perf.data file of the first version (before Linux 2.6.33)", "convert it with its perf: perf script"),
    mark(At::Byte(0), b"ELIFFREP", "a perf.data file of the first version (before Linux 2.6.33)", "convert it with its perf: perf script"),
    mark(At::Byte(0), b"SIMPLEPERF", "a report of simpleperf", "convert its perf.data with pprof_proto_generator.py"),
    mark(At::Byte(0), b"\x7fELF", "a program, library or core dump (ELF)", NOT_STACKS),
    mark(At::Byte(0), b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program", NOT_STACKS),
    mark(At::Byte(0), b"\xcf\xfa\xed\xfe", "a Mach-O program", NOT_STACKS),
    mark(At::Byte(0), b"MZ\x90\0", "a Windows program", NOT_STACKS),
    mark(At::Byte(0), b"\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "a CPU profile of gperftools", "convert it: pprof -proto PROGRAM FILE"),
    mark(At::Byte(0), b"\0\0\0\0\x03\0\0\0\0\0\0\0", "a CPU profile of gperftools", "convert it: pprof -proto PROGRAM FILE"),
    mark(At::Byte(0), b"go 1.", "an execution trace of Go", "convert it: go tool trace -pprof=sched FILE"),
    mark(At::Byte(0), b"Nettrace", "a trace of .NET", "convert it: dotnet-trace convert --format speedscope"),
    mark(At::Byte(0), b"\xfb)\x03", "a profile of Python's cProfile", "it has callers and callees, but no stacks"),
    mark(At::Byte(0), b"memray\0", "a recording of memray", NOT_STACKS),
    mark(At::Byte(0), b"\x17\x08\x44tracing", "a recording of trace-cmd", "record with perf"),
    mark(At::Byte(0), b"SQLite format 3\0", "a SQLite database", NOT_STACKS),
    mark(At::Byte(0), b"PAR1", "a Parquet file", NOT_STACKS),
    mark(At::Byte(0), b"\x89PNG", "a picture (PNG)", THE_PROFILE),
    mark(At::Byte(0), b"%PDF-", "a PDF document", THE_PROFILE),
];

/// JSON, from the more special to the more general.
#[rustfmt::skip]
const JSON: &[Mark] = &[
    mark(At::Anywhere, b"\"Event\":\"SparkListener", "an event log of Spark", SPARK),
    mark(At::Anywhere, b"\"traceEvents\"", "a trace for Chrome (JSON)", SPEEDSCOPE),
    mark(At::Anywhere, b"\"callFrame\"", "a CPU profile of Chrome or Node.js (JSON)", SPEEDSCOPE),
    mark(At::Anywhere, b"\"snapshot\"", "a heap snapshot of V8 (JSON)", NOT_STACKS),
    mark(At::Anywhere, b"\"threadDump\"", "a thread dump (JSON)", NOT_STACKS),
    mark(At::Anywhere, b"\"jdk.", "the JSON of `jfr print`", THE_RECORDING),
    mark(At::Anywhere, b"\"resourceProfiles\"", "an OTLP profile (JSON)", "write it as protobuf"),
    mark(At::Anywhere, b"\"flamebearer\"", "a flame graph of Pyroscope (JSON)", "export it as pprof"),
    mark(At::Anywhere, b"{\"values\": [{\"name\":", "a call tree that hprofiler wrote (JSON)", THE_PROFILE),
    mark(At::Anywhere, b"{\"values\":[{\"name\":", "a call tree that hprofiler wrote (JSON)", THE_PROFILE),
    mark(At::Anywhere, b"\"ph\":", "a trace for Chrome (JSON)", SPEEDSCOPE),
    mark(At::Anywhere, b"\"ph\" :", "a trace for Chrome (JSON)", SPEEDSCOPE),
    mark(At::Anywhere, b"", "JSON of an unknown kind", THE_PROFILE),
];

#[rustfmt::skip]
const MARKUP: &[Mark] = &[
    mark(At::Anywhere, b"data-inverted=\"", "a picture that hprofiler drew (SVG)", THE_PROFILE),
    mark(At::Anywhere, b"<svg", "a picture (SVG)", THE_PROFILE),
    mark(At::Anywhere, b"<span>hprofiler", "a page that hprofiler wrote (HTML)", "give the profiles of its run folder"),
    mark(At::Anywhere, b"<html", "a page (HTML)", THE_PROFILE),
    mark(At::Anywhere, b"<HTML", "a page (HTML)", THE_PROFILE),
    mark(At::Anywhere, b"", "XML or HTML of an unknown kind", THE_PROFILE),
];

/// Other text. Each mark is one that no stack begins with.
#[rustfmt::skip]
const TEXT: &[Mark] = &[
    mark(At::Line, b"# TYPE ", METRICS, NOT_STACKS),
    mark(At::Line, b"# HELP ", METRICS, NOT_STACKS),
    mark(At::Line, b"Full thread dump ", "a thread dump of a JVM", NOT_STACKS),
    mark(At::Line, b"--- Execution profile ---", "the text output of async-profiler", COLLAPSED),
    mark(At::Line, b"goroutine profile: total ", "a text profile of Go", GO_PPROF),
    mark(At::Line, b"heap profile: ", "a text profile of Go or gperftools", GO_PPROF),
    mark(At::Line, b"threadcreate profile: total ", "a text profile of Go", GO_PPROF),
    mark(At::Line, b"--- contention:", "a text profile of Go", GO_PPROF),
    mark(At::Line, b"--- mutex:", "a text profile of Go", GO_PPROF),
    mark(At::Line, b"# Total Lost Samples:", "the text of `perf report`", "give perf.data itself, or the text of `perf script`"),
    mark(At::Line, b"# Overhead ", "the text of `perf report`", "give perf.data itself, or the text of `perf script`"),
    mark(At::Line, b"Event Type     ", "the summary of a recording (`jfr summary`)", THE_RECORDING),
    mark(At::Line, b"jdk.ActiveSetting {", "the text of `jfr print`", THE_RECORDING),
    mark(At::Line, b"jdk.ExecutionSample {", "the text of `jfr print`", THE_RECORDING),
    mark(At::Line, b"num     #instances", "a class histogram of a JVM", NOT_STACKS),
    mark(At::Line, b"# A fatal error has been detected by the Java Runtime", "a crash report of a JVM", NOT_STACKS),
    mark(At::Line, b"Time and Allocation Profiling Report", "a profile of GHC", "convert it: ghc-prof-flamegraph"),
    mark(At::Line, b"Flat profile:", "the text of gprof", "it has callers and callees, but no stacks"),
    mark(At::Line, b"# callgrind format", "a profile of callgrind", "it has callers and callees, but no stacks"),
    mark(At::Line, b"CPU     ID                    FUNCTION:NAME", "the output of DTrace", "fold it: stackcollapse.pl FILE"),
    mark(At::Line, b"Analysis of sampling ", "the output of macOS' sample", "fold it: stackcollapse-sample.awk FILE"),
    mark(At::Line, b"ncalls  tottime", "the text of Python's cProfile", "it has callers and callees, but no stacks"),
];

/// What most stacks look like in a text that is not folded text, although numbers end its lines.
type Look = (fn(&[u8]) -> bool, &'static str);

const LOOKS: &[Look] = &[
    (is_member, "JSON of an unknown kind"),
    (is_labelled, METRICS),
    (is_key, "keys and values, as in YAML"),
    (is_request, "a log of requests"),
    (is_dated, "a log"),
    (is_row, "a table of numbers"),
];

/// Refuses a file whose magic number is known.
pub(super) fn refuse_binary(head: &[u8]) -> Result<()> {
    refuse(BINARY, head)
}

/// Refuses a file that is certainly no folded text. No other format recognised it.
pub(super) fn refuse_text(head: &[u8]) -> Result<()> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let text = head.trim_ascii_start();
    if is_json(text) {
        return refuse(JSON, text);
    }
    if is_markup(text) {
        return refuse(MARKUP, text);
    }
    refuse(TEXT, text)?;
    refuse_lines(head)?;
    if head[..head.len().min(4096)].contains(&0) {
        let reason = "binary data of an unknown kind".to_string();
        return Err(Error::Foreign(reason));
    }
    Ok(())
}

fn refuse(marks: &[Mark], head: &[u8]) -> Result<()> {
    let found = marks.iter().find(|mark| match mark.at {
        At::Byte(place) => head
            .get(place..)
            .is_some_and(|rest| rest.starts_with(mark.bytes)),
        At::Line => {
            let mut lines = head.split_inclusive(|&byte| byte == b'\n');
            lines.any(|line| line.trim_ascii_start().starts_with(mark.bytes))
        }
        At::Anywhere => memchr::memmem::find(head, mark.bytes).is_some(),
    });
    found.map_or(Ok(()), |Mark { is, way_out, .. }| {
        Err(Error::Foreign(format!("{is}: {way_out}")))
    })
}

/// Refuses a text most lines of which look like something else than stacks of several frames.
fn refuse_lines(head: &[u8]) -> Result<()> {
    let lines = folded::lines(head, head.len() < HEAD_BYTES);
    let stacks: Vec<&[u8]> = lines.map(|line| line.stack.trim_ascii()).collect();
    let is_most = |looks: fn(&[u8]) -> bool| {
        let found = stacks
            .iter()
            .filter(|stack| !stack.contains(&b';') && looks(stack));
        2 * found.count() > stacks.len()
    };
    let found = LOOKS.iter().find(|(looks, _)| is_most(*looks));
    found.map_or(Ok(()), |(_, is)| {
        Err(Error::Foreign(format!("{is}: {NOT_STACKS}")))
    })
}

/// `"hitCount":`
fn is_member(stack: &[u8]) -> bool {
    stack.starts_with(b"\"") && stack.ends_with(b"\":")
}

/// `requests{code="200"}`
fn is_labelled(stack: &[u8]) -> bool {
    stack.ends_with(b"\"}") && memchr::memmem::find(stack, b"=\"").is_some()
}

/// `port:`
fn is_key(stack: &[u8]) -> bool {
    stack.ends_with(b":")
}

/// `::1 - - [10/Oct/2000:13:55:36] "GET / HTTP/1.1" 200`
fn is_request(stack: &[u8]) -> bool {
    memchr::memmem::find(stack, b" HTTP/").is_some_and(|at| stack[at..].contains(&b'"'))
}

/// `2026-11-28 took`
fn is_dated(stack: &[u8]) -> bool {
    let digit = |at: usize| stack.get(at).is_some_and(u8::is_ascii_digit);
    let dash = |at: usize| stack.get(at) == Some(&b'-');
    [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(digit) && dash(4) && dash(7)
}

/// Nothing but numbers, or a name and several of them: `1 0 0`, `eth0: 12 3 0`.
fn is_row(stack: &[u8]) -> bool {
    let is_number = |word: &[u8]| word.iter().all(|byte| b"0123456789.,-%".contains(byte));
    let mut words = stack
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let first = words.next().is_some_and(is_number);
    let (mut count, mut all) = (0, true);
    for word in words {
        count += 1;
        all &= is_number(word);
    }
    all && (count >= 3 || first)
}

/// An object, or an array of objects. A stack may begin with a frame in brackets: `{main}`, `[thread]`.
fn is_json(text: &[u8]) -> bool {
    match text.split_first() {
        Some((b'{', inner)) => matches!(inner.trim_ascii_start(), [b'"' | b'}', ..]),
        Some((b'[', inner)) => matches!(inner.trim_ascii_start(), [b'{', rest @ ..]
            if matches!(rest.trim_ascii_start(), [b'"', ..])),
        _ => false,
    }
}

/// A stack may begin with a frame in angle brackets: `<module>`, `<init>`.
fn is_markup(text: &[u8]) -> bool {
    let lower = text[..text.len().min(16)].to_ascii_lowercase();
    [&b"<?xml"[..], b"<!doctype", b"<!--", b"<html", b"<svg"]
        .iter()
        .any(|begin| lower.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use crate::formats::{read, ReadOptions};

    #[test]
    fn a_file_that_is_no_profile_is_named() {
        let tar = [&[b'x'; 257][..], b"ustar\0"].concat();
        let gperftools = [&[0; 8][..], &[3], &[0; 15], b"\x10\x27\0\0"].concat();
        let cases: [(&[u8], &str); 21] = [
            (b"PK\x03\x04\x14\0", "a zip archive: unpack it"),
            (b"\xfd7zXZ\0\0", "compressed with xz: "),
            (b"BZh91AY", "compressed with bzip2: "),
            (b"\x04\x22\x4d\x18d@", "compressed with lz4: "),
            (&tar, "a tar archive: "),
            (b"JAVA PROFILE 1.0.2\0", "a heap dump of a JVM (hprof): "),
            (b"PERFFILE\x68\0", "a perf.data file of the first version"),
            (b"\x7fELF\x02", "a program, library or core dump (ELF): "),
            (&gperftools, "a CPU profile of gperftools: convert it"),
            (b"\0\x01\x02\x03\x04", "binary data of an unknown kind"),
            (
                b"{\"Event\":\"SparkListenerLogStart\"}\n",
                "an event log of Spark: give it to `hprofiler spark`",
            ),
            (
                b"{\n \"nodes\": [{\"callFrame\": 5",
                "a CPU profile of Chrome",
            ),
            (b"[ {\"ph\": \"B\"} ]", "a trace for Chrome (JSON): "),
            (b"{\"name\": 1}\n{\"a\": 2}\n", "JSON of an unknown kind: "),
            (b"<?xml version=\"1.0\"?>\n<svg>", "a picture (SVG): "),
            (b"<!DOCTYPE html><html>", "a page (HTML): "),
            (
                b"2026-11-28 10:00:00\nFull thread dump OpenJDK 64-Bit",
                "a thread dump of a JVM: ",
            ),
            (
                b"goroutine profile: total 7\n4 @ 0x1 2\n",
                "a text profile of Go: ",
            ),
            (
                b"# To display\n# Samples: 12\n# Overhead  Command\n 1.0% a\n",
                "the text of `perf report`: ",
            ),
            (
                b"\n Version: 2.1\n Chunks: 2\n\n Event Type       Count\n jdk.X 3\n",
                "the summary of a recording (`jfr summary`): ",
            ),
            (
                b"--- Execution profile ---\nTotal samples : 26\n",
                "the text output of async-profiler: ",
            ),
        ];
        for (bytes, expected) in cases {
            let error = read(bytes, &ReadOptions::default()).err().unwrap();
            assert_eq!(error.code(), "foreign", "{error}");
            let expected = format!("not a profile that can be read, but {expected}");
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn lines_that_end_with_numbers_are_not_always_stacks() {
        for (text, expected) in [
            ("# TYPE a counter\na_total{code=\"200\"} 1027\n", "metrics "),
            (
                "a_total{code=\"200\"} 1027\nb_total{code=\"200\"} 3\n",
                "metrics ",
            ),
            (
                "::1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 2326\n",
                "a log of requests: ",
            ),
            ("2026-11-28 10:00:00 INFO took 35\n", "a log: "),
            (
                "server:\n  port: 8080\n  threads: 4\n",
                "keys and values, as in YAML: ",
            ),
            (
                "\"hitCount\": 5\n\"hitCount\": 6\n",
                "JSON of an unknown kind: ",
            ),
            (
                " r  b swpd\n 1  0  0 3254 86\n 2  0  0 3254 86\n",
                "a table of numbers: ",
            ),
            (
                "    lo: 11296 12 0 0 0 0\n  eth0: 12 3 0 0 0 0\n",
                "a table of numbers: ",
            ),
        ] {
            let error = read(text.as_bytes(), &ReadOptions::default())
                .err()
                .unwrap();
            let expected = format!("not a profile that can be read, but {expected}");
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn stacks_that_begin_with_a_bracket_are_folded_text() {
        for text in [
            "{main};f 1\n",
            "{closure};f 1\n",
            "[thread 1];{\"f\"} 1\n",
            "[{f}] 1\n",
            "[\"main\" tid=1];f 1\n",
            "<module>;f 1\n",
            "<init> 1\n",
            "#<Class:A>;f 1\n",
            "@[main];f 1\n",
            "memray;main 1\n",
            "std::vector<a, b>::push_back 1\n",
            "java 17.0 1\n",
            "port: 8080;f 1\n",
            " 1\n",
        ] {
            let profile = read(text.as_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(profile.total(0).unwrap(), 1, "{text}");
        }
    }
}
