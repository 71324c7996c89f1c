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
const LOG: &str = "a log";
const NUMBERS: &str = "a table of numbers";

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
    mark(At::Anywhere, b"\"hprofiler\": \"", "the run.json of a run", "give the folder, or a profile in it such as cluster/cpu.pb.gz"),
    mark(At::Anywhere, b"\"Event\":\"SparkListener", "an event log of Spark", SPARK),
    mark(At::Anywhere, b"\"traceEvents\"", "a trace for Chrome (JSON)", SPEEDSCOPE),
    mark(At::Anywhere, b"\"callFrame\"", "a CPU profile of Chrome or Node.js (JSON)", SPEEDSCOPE),
    mark(At::Anywhere, b"\"snapshot\"", "a heap snapshot of V8 (JSON)", NOT_STACKS),
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
    mark(At::Anywhere, b"name=\"generator\" content=\"hprofiler\"", "a page that hprofiler wrote (HTML)", THE_PROFILE),
    mark(At::Anywhere, b"<html", "a page (HTML)", THE_PROFILE),
    mark(At::Anywhere, b"<HTML", "a page (HTML)", THE_PROFILE),
    mark(At::Anywhere, b"", "XML or HTML of an unknown kind", THE_PROFILE),
];

/// Other text. Each mark is one that no stack begins with.
#[rustfmt::skip]
const TEXT: &[Mark] = &[
    mark(At::Line, b"# TYPE ", METRICS, NOT_STACKS),
    mark(At::Line, b"# HELP ", METRICS, NOT_STACKS),
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
    (is_request, "a log of requests"),
    (is_stamped, LOG),
    (is_dated, LOG),
    (has_level, LOG),
    (is_listed, "a list or table, as in Markdown"),
    (is_row, NUMBERS),
    (is_key, "keys and values, as in YAML or INI"),
    (is_sentence, "sentences, a log or a table"),
];

/// The levels of log lines.
const LEVELS: [&[u8]; 8] = [
    b"TRACE", b"DEBUG", b"INFO", b"NOTICE", b"WARN", b"WARNING", b"ERROR", b"FATAL",
];

/// From so many lines on, it is strange if none has a stack of several frames.
const MANY: usize = 10;

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

/// Refuses a text most lines of which look like something else than stacks.
fn refuse_lines(head: &[u8]) -> Result<()> {
    let stacks = stacks(head);
    let flat =
        |looks: fn(&[u8]) -> bool| move |stack: &[u8]| !stack.contains(&b';') && looks(stack);
    let found = LOOKS
        .iter()
        .find(|(looks, _)| is_most(&stacks, flat(*looks)));
    let is = match found {
        Some((_, is)) => is,
        None if is_most(&stacks, is_stamped) => LOG,
        None if has_columns(&stacks) => NUMBERS,
        None => return Ok(()),
    };
    Err(Error::Foreign(format!("{is}: {NOT_STACKS}")))
}

/// What is strange in a text that was not refused, and may be folded text all the same.
pub(super) fn doubt(head: &[u8]) -> Option<String> {
    let stacks = stacks(head);
    let flat = !stacks.iter().any(|stack| stack.contains(&b';'));
    let looks = match flat {
        true if is_most(&stacks, |stack| plain_words(stack) > 2) => "its lines look like sentences",
        true if stacks.len() >= MANY => "no line has a stack of several frames",
        false if is_most(&stacks, is_spaced) => "its lines look like sentences",
        _ => return None,
    };
    Some(format!("read as folded text, but {looks}"))
}

/// The stacks of the beginning of a text.
fn stacks(head: &[u8]) -> Vec<&[u8]> {
    let lines = folded::lines(head, head.len() < HEAD_BYTES);
    lines.map(|line| line.stack.trim_ascii()).collect()
}

fn is_most(stacks: &[&[u8]], looks: impl Fn(&[u8]) -> bool) -> bool {
    2 * stacks.iter().filter(|stack| looks(stack)).count() > stacks.len()
}

/// `"hitCount":`
fn is_member(stack: &[u8]) -> bool {
    stack.starts_with(b"\"") && stack.ends_with(b"\":")
}

/// `requests{code="200"}`
fn is_labelled(stack: &[u8]) -> bool {
    stack.ends_with(b"\"}") && memchr::memmem::find(stack, b"=\"").is_some()
}

/// `port:`, `port =`, `numpy >=`, `a, b,`, `TCP: inuse 7 orphan`
fn is_key(stack: &[u8]) -> bool {
    let last = words(stack).last().unwrap_or_default();
    let first = words(stack).next().unwrap_or_default();
    let is_sign = |byte: &u8| b"=<>~!:|&+-*/".contains(byte);
    stack.ends_with(b":")
        || (first.ends_with(b":") && !first.ends_with(b"::"))
        || (stack.ends_with(b",") && !stack.ends_with(b"operator,"))
        || (last.len() < stack.len() && last.iter().all(is_sign))
}

/// `- item`, `1. item`, `## Title`, `| a | b`
fn is_listed(stack: &[u8]) -> bool {
    let first = words(stack).next().unwrap_or_default();
    let number = first
        .strip_suffix(b".")
        .or_else(|| first.strip_suffix(b")"));
    let is_mark = first.iter().all(|byte| b"#*-+>|".contains(byte))
        || number.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
    first.len() < stack.len() && is_mark || memchr::memmem::find(stack, b" | ").is_some()
}

/// `::1 - - [10/Oct/2000:13:55:36] "GET / HTTP/1.1" 200`
fn is_request(stack: &[u8]) -> bool {
    memchr::memmem::find(stack, b" HTTP/").is_some_and(|at| stack[at..].contains(&b'"'))
}

/// `2026-11-28 took`
fn is_dated(stack: &[u8]) -> bool {
    date_end(stack).is_some()
}

/// Begins with the time of day, maybe after a date, or with seconds in brackets: `10:00:00.5 INFO`, `Nov 28 10:00:00
/// host`, `[2026-11-28T10:00:00Z] took`, `[   12.345678] usb`, `[0.123s][gc] Pause`, `I1128 10:00:00 took`.
fn is_stamped(stack: &[u8]) -> bool {
    let inner = stack.trim_ascii_start();
    let bracketed = inner.strip_prefix(b"[");
    let rest = bracketed.unwrap_or(inner);
    if let (Some(seconds), Some(end)) = (bracketed, memchr::memchr(b']', rest)) {
        let seconds = seconds[..end].trim_ascii();
        let digits = seconds.strip_suffix(b"s").unwrap_or(seconds);
        let is_decimal = digits.contains(&b'.')
            && digits
                .iter()
                .all(|byte| byte.is_ascii_digit() || *byte == b'.');
        if is_decimal && rest.len() > end + 1 {
            return true;
        }
    }
    let after_date = date_end(rest).map(|end| &rest[end..]);
    let time = after_date.map_or(rest, |rest| {
        rest.strip_prefix(b"T").unwrap_or(rest).trim_ascii_start()
    });
    fits(time, b"dd:dd:dd")
}

/// Where a date ends with which a line begins.
fn date_end(line: &[u8]) -> Option<usize> {
    let numeric = [
        &b"dddd-dd-dd"[..],
        b"dddd/dd/dd",
        b"dd/dd/dddd",
        b"dd.dd.dddd",
        b"dd/dd/dd",
    ];
    if let Some(date) = numeric.into_iter().find(|date| fits(line, date)) {
        return Some(date.len());
    }
    if line.first().is_some_and(|byte| b"IWEF".contains(byte)) && fits(&line[1..], b"dddd dd:dd") {
        return Some(5);
    }
    // `Nov 28`, `Fri Nov  8`, `28/Nov/2026:`
    let is_month = |word: &[u8]| MONTHS.contains(&word);
    let mut from = 0;
    for word in words(line).take(3) {
        let begin = from + memchr::memmem::find(&line[from..], word)?;
        from = begin + word.len();
        let Some(month) = line.get(begin..begin + 3).filter(|word| is_month(word)) else {
            continue;
        };
        let day = line[begin + month.len()..].trim_ascii_start();
        let digits = day.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_day = word.len() == 3 && (1..=2).contains(&digits);
        return is_day.then(|| line.len() - day.len() + digits);
    }
    None
}

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Whether a line begins like this pattern, in which `d` is a digit.
fn fits(line: &[u8], pattern: &[u8]) -> bool {
    let fits = |(byte, wanted): (&u8, &u8)| match wanted {
        b'd' => byte.is_ascii_digit(),
        _ => byte == wanted,
    };
    line.len() >= pattern.len() && line.iter().zip(pattern).all(fits)
}

/// `[INFO] took`, `ERROR: took`, `INFO:root:took`
fn has_level(stack: &[u8]) -> bool {
    let begin = stack.strip_prefix(b"[").unwrap_or(stack);
    LEVELS.iter().any(|level| {
        let rest = begin.strip_prefix(*level).unwrap_or_default();
        matches!(rest, [b' ' | b':' | b']' | b'\t', _, ..])
    })
}

/// Nothing but numbers, or a name and several of them: `1 0 0`, `eth0: 12 3 0`.
fn is_row(stack: &[u8]) -> bool {
    let mut words = words(stack);
    let first = words.next().is_some_and(is_number);
    let (mut count, mut all) = (0, true);
    for word in words {
        count += 1;
        all &= is_number(word);
    }
    all && (count >= 3 || first)
}

fn is_number(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_digit) && word.iter().all(|byte| b"0123456789.,-%".contains(byte))
}

fn words(stack: &[u8]) -> impl Iterator<Item = &[u8]> {
    stack
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// Columns between semicolons, half of them numbers, as many on each line: `a;60;100`.
fn has_columns(stacks: &[&[u8]]) -> bool {
    let columns = |stack: &[u8]| stack.split(|&byte| byte == b';').count();
    let same = stacks
        .windows(2)
        .all(|pair| columns(pair[0]) == columns(pair[1]));
    let is_row = |stack: &[u8]| {
        let numbers = stack
            .split(|&byte| byte == b';')
            .filter(|column| is_number(column.trim_ascii()));
        let numbers = numbers.count();
        numbers >= 2 && 2 * numbers >= columns(stack) && numbers < columns(stack)
    };
    same && is_most(stacks, is_row)
}

/// `task 1 finished in`, `-rw-r--r-- 1 root root 6984 Nov 28 20:18`. Names of threads and programs are `VM Periodic
/// Task Thread`.
fn is_sentence(stack: &[u8]) -> bool {
    let plain = plain_words(stack);
    let is_name = |word: &[u8]| word.first().is_some_and(u8::is_ascii_uppercase);
    let names = words(stack).filter(|word| is_name(word)).count();
    let numbers = words(stack).skip(1).filter(|word| is_number(word)).count();
    (plain >= 4 && names < plain) || (plain == 3 && numbers > 0)
}

/// How many words a name has, besides what is in brackets; 0 if it has marks of code: `a::b`, `f(int)`, `A<B>`,
/// `A$1`, `A#b`.
fn plain_words(stack: &[u8]) -> usize {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let (mut depth, mut count, mut before) = (0u32, 0, b' ');
    for (at, &byte) in stack.iter().enumerate() {
        let is_code = match byte {
            b'(' | b'<' | b'[' | b'{' | b'#' => is_name(&before),
            b':' | b'>' => before == if byte == b':' { b':' } else { b'-' },
            b'$' | b'`' | b'\\' => true,
            _ => false,
        };
        // `sshd[123]:` and `GC(0)` are of logs.
        let inner = &stack[at + 1..];
        let is_count = matches!(byte, b'(' | b'[') && inner.first().is_some_and(u8::is_ascii_digit);
        if is_code && !is_count && depth == 0 {
            return 0;
        }
        match byte {
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b')' | b'>' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {
                let begins = before.is_ascii_whitespace() && !byte.is_ascii_whitespace();
                count += usize::from(depth == 0 && begins);
            }
        }
        before = byte;
    }
    count
}

/// `session opened; id`: frames follow a semicolon without a space.
fn is_spaced(stack: &[u8]) -> bool {
    let parts = memchr::memmem::find_iter(stack, b"; ").count();
    parts > 0 && plain_words(stack) > 2 * parts
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
                b"{\n\"format\": 3,\n\"hprofiler\": \"0.1.0\",\n",
                "the run.json of a run: ",
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
                "keys and values, as in YAML or INI: ",
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
    fn logs_and_tables_are_not_folded_text() {
        for (text, expected) in [
            ("task 1 finished in 35\ntask 2 finished in 7\n", "sentences"),
            ("epoch 1 loss 0.35\nepoch 2 loss 0.21\n", "sentences"),
            ("total 8\n-rw-r--r-- 1 root root 6984 Nov 28 20:18 5\n-rw-r--r-- 1 root root 2 Nov 28 20:18 6\n", "sentences"),
            ("udev 1004 0 1004 0% /dev 1\n/dev/vda 300 12 288 4% / 2\n", "sentences"),
            ("  981 root 20 0 12.3g 1.2g 20m S 99.0 3.2 10:23.45 kworker 1\n", "sentences"),
            ("| name | 5\n| other | 6\n", "a list or table"),
            ("- apples 5\n- pears 6\n", "a list or table"),
            ("## Chapter 2\n1. item 5\n", "a list or table"),
            ("port = 8080\nthreads = 4\n", "keys and values"),
            ("sockets: used 95\nTCP: inuse 7 orphan 0\n", "keys and values"),
            ("numpy >= 1.26\npandas == 2.1\n", "keys and values"),
            ("a, 60, 5\nb, 40, 6\n", "keys and values"),
            ("a;60;100 5\nb;40;80 6\n", "a table of numbers"),
            ("Nov 28 10:00:00 host sshd[12]: Received disconnect from 10.0.0.1 port 5022\n", "a log"),
            ("Nov  8 10:00:00 host sshd[12]: session opened; id 5\n", "a log"),
            ("[    0.000000] Linux version 6\n[   12.345678] usb 1-1: new device 5\n", "a log"),
            ("[0.123s][info][gc] GC(0) Pause Young 10\n", "a log"),
            ("10:00:00.123 took 35\n", "a log"),
            ("26/11/28 10:00:00 INFO DAGScheduler: Submitting 5\n", "a log"),
            ("[2026-11-28T10:00:00Z] took 35\n", "a log"),
            ("I1128 10:00:00.123 7 main.cc:5] took 35\n", "a log"),
            ("[INFO] took 35\n", "a log"),
            ("ERROR: took 35\n", "a log"),
        ] {
            let error = read(text.as_bytes(), &ReadOptions::default()).err();
            let error = error.map_or_else(|| format!("read: {text}"), |error| error.to_string());
            let expected = format!("not a profile that can be read, but {expected}");
            assert!(error.starts_with(&expected), "{text}: {error}");
        }
    }

    #[test]
    fn folded_text_of_other_tools_is_read_without_doubt() {
        for text in [
            "main 5\n",
            "main 5\nidle 3\nread 2\n",
            "thread 12 2\nthread 13 4\n",
            "swapper;start_kernel;cpu_idle 12\njava-123/456;[libjvm.so];Foo::bar_[j] 3\n",
            "[main tid=5];java/lang/Thread.run_[j];A.b_[i] 3\n[C2 CompilerThread0 tid=7];clone 1\n",
            "process 123:\"python app.py\";<module> (app.py:10);main (a b.py:3) 4\n",
            "std::vector<int, std::allocator<int> >::push_back(int const&) 2\n",
            "unsigned long foo<int>(int, long) 2\nvoid bar<A, B>(A, B) 3\n",
            "non-virtual thunk to A::b() 2\n(anonymous namespace)::run() const 3\n",
            "operator new(unsigned long) 2\noperator delete[](void*) 3\noperator, 1\noperator>= 1\n",
            "VM Periodic Task Thread 5\nVM Thread 3\n",
            "Google Chrome Helper Renderer 5\n",
            "runtime.goexit;main.main;main.(*T).func1 5\n",
            "{main};App\\Foo->bar;include /var/www/a b.php 5\n",
            "(root);(program) 5\n(garbage collector) 2\n",
            "genunix`syscall_mstate 12\nunix`sys_syscall 3\n",
            "-[NSString foo:bar:] 5\n",
            "block in Foo#bar 5\nFoo#+ 2\n",
            "+ 5\n- 2\n",
            "0x7f01;0x7f02 3\n[unknown] 5\n",
            "123;456 5\n123;456;789 6\n",
            "main;42 5\n",
            "2026-11-28;main;f 5\n",
            "node-1;executor 3;main thread;run 5\n",
            "stage 1.0;task 5;read 7\n",
        ] {
            let profile = read(text.as_bytes(), &ReadOptions::default());
            let profile = profile.unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(profile.malformed_lines(), 0, "{text}");
        }
        let flat: String = (0..10).map(|at| format!("nr_pages{at} 5\n")).collect();
        for (text, doubt) in [
            ("main 5\n", ""),
            ("a;b 5\n", ""),
            (
                &*flat,
                "read as folded text, but no line has a stack of several frames",
            ),
            (
                "VM Periodic Task Thread 5\n",
                "read as folded text, but its lines look like sentences",
            ),
            (
                "session is opened; the id 5\n",
                "read as folded text, but its lines look like sentences",
            ),
        ] {
            let profile = read(text.as_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(profile.warnings().join(""), doubt, "{text}");
            assert_eq!(profile.is_incomplete(), !doubt.is_empty(), "{text}");
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
