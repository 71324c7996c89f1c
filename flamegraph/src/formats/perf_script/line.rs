//! The two kinds of line: one that begins a sample, and one for each frame of its stack.

use super::names::StackLine;

/// The prefix of perf's own records, which are not samples.
pub(super) const RECORD: &[u8] = b"PERF_RECORD_";

/// A line that begins a sample: `comm pid/tid [cpu] seconds: period event: trace`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) comm: &'a [u8],
    /// `perf script` prints it only when asked to (`-F +pid`).
    pub(super) pid: Option<&'a [u8]>,
    pub(super) tid: &'a [u8],
    pub(super) period: Option<u64>,
    pub(super) event: Option<&'a [u8]>,
    /// Whether there is a time stamp.
    pub(super) timed: bool,
    /// The text after the event: that of a trace point, or the only frame of a stack.
    pub(super) rest: &'a [u8],
}

impl Header<'_> {
    /// Whether a line of other text would hardly look like this. Without an event and a time it is only a word and a
    /// number.
    pub(super) fn is_sure(&self) -> bool {
        self.event.is_some() || self.timed
    }
}

/// Parses the first line of a sample.
///
/// A command's name may contain numbers, so the process is the number right before the CPU or the time. If neither is
/// printed, it is the first number, and only a period and the event follow: perf's messages contain numbers, too.
pub(super) fn header(line: &[u8]) -> Option<Header<'_>> {
    let before_time = position(line);
    let (at, token) = match before_time {
        Some(found) => found,
        None => tokens(line, 0).find(|&(at, token)| at > 0 && ids(token).is_some())?,
    };
    let (pid, tid) = ids(token)?;
    let after = at + token.len();
    let mut header = Header {
        comm: Some(line[..at].trim_ascii()).filter(|comm| !comm.is_empty())?,
        timed: before_time.is_some(),
        pid,
        tid,
        period: None,
        event: None,
        rest: &[],
    };
    for (at, token) in tokens(line, after) {
        if token.starts_with(b"[") || is_time(token) {
            continue;
        }
        let named = token.strip_suffix(b":").filter(|event| !event.is_empty());
        let record = Some(token).filter(|token| token.starts_with(RECORD));
        if let Some(event) = named.or(record) {
            header.event = Some(event);
            header.rest = line[at + token.len()..].trim_ascii();
            break;
        }
        header.period = number(token);
        if header.period.is_none() && !header.timed {
            return None;
        }
    }
    Some(header)
}

/// The ids before the first time stamp, and their position.
fn position(line: &[u8]) -> Option<(usize, &[u8])> {
    let mut last: Option<(usize, &[u8])> = None;
    for (at, token) in tokens(line, 0) {
        if is_time(token) {
            return last.filter(|&(at, token)| at > 0 && ids(token).is_some());
        }
        if !is_cpu(token) {
            last = Some((at, token));
        }
    }
    None
}

/// The words of a line from a position on, each with its position.
fn tokens(line: &[u8], from: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = from;
    std::iter::from_fn(move || {
        let blank = line[at..]
            .iter()
            .position(|byte| !byte.is_ascii_whitespace())?;
        let start = at + blank;
        let length = line[start..].iter().position(u8::is_ascii_whitespace);
        at = length.map_or(line.len(), |length| start + length);
        Some((start, &line[start..at]))
    })
}

/// `tid` or `pid/tid`
fn ids(token: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let slash = token.iter().position(|&byte| byte == b'/');
    match slash {
        Some(slash) => {
            let (pid, tid) = (&token[..slash], &token[slash + 1..]);
            (is_id(pid) && is_id(tid)).then_some((Some(pid), tid))
        }
        None => is_id(token).then_some((None, token)),
    }
}

/// A number, or -1 if the kernel did not report it.
fn is_id(token: &[u8]) -> bool {
    all_digits(token.strip_prefix(b"-").unwrap_or(token))
}

fn is_cpu(token: &[u8]) -> bool {
    let inner = token
        .strip_prefix(b"[")
        .and_then(|token| token.strip_suffix(b"]"));
    inner.is_some_and(all_digits)
}

/// `6544038.708352:`
fn is_time(token: &[u8]) -> bool {
    let Some(time) = token.strip_suffix(b":") else {
        return false;
    };
    let Some(dot) = time.iter().position(|&byte| byte == b'.') else {
        return false;
    };
    all_digits(&time[..dot]) && all_digits(&time[dot + 1..])
}

fn all_digits(token: &[u8]) -> bool {
    !token.is_empty() && token.iter().all(u8::is_ascii_digit)
}

/// A number; larger ones become `u64::MAX`.
fn number(token: &[u8]) -> Option<u64> {
    let digits = Some(token).filter(|token| all_digits(token))?;
    Some(
        std::str::from_utf8(digits)
            .ok()?
            .parse()
            .unwrap_or(u64::MAX),
    )
}

/// Parses a line of a stack.
pub(super) fn stack_line(line: &[u8]) -> Option<StackLine<'_>> {
    let line = line.trim_ascii();
    let space = memchr::memchr2(b' ', b'\t', line)?;
    let address = &line[..space];
    if !address.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let body = line[space..].strip_suffix(b")")?;
    // The last bracket opens the module, unless it is part of it: `(/lib/x.so (deleted))`.
    let searched = body.strip_suffix(b" (deleted)").unwrap_or(body);
    let open = memchr::memrchr_iter(b'(', searched)
        .find(|&at| matches!(searched[..at], [.., b' ' | b'\t']))?;
    Some(StackLine {
        address,
        symbol: match without_offset(body[..open].trim_ascii()) {
            b"" => b" ",
            symbol => symbol,
        },
        module: &body[open + 1..],
    })
}

/// `main` of `main+0x1f`.
fn without_offset(symbol: &[u8]) -> &[u8] {
    let digits = symbol
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let before = &symbol[..symbol.len() - digits];
    match before.strip_suffix(b"+0x") {
        Some(name) if digits > 0 => name,
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `comm|pid|tid|period|event|rest`
    fn parts(line: &str) -> Option<String> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        header(line.as_bytes()).map(|header| {
            let period = header.period.map(|period| period.to_string());
            [
                text(header.comm),
                header.pid.map_or("", text),
                text(header.tid),
                period.as_deref().unwrap_or_default(),
                header.event.map_or("", text),
                text(header.rest),
            ]
            .join("|")
        })
    }

    #[test]
    fn headers_of_all_shapes() {
        let cases = [
            ("java 25607 4794564.109216: cycles:", "java||25607||cycles|"),
            (
                "java 12/13 [002] 65.7: 235 cpu-clock:",
                "java|12|13|235|cpu-clock|",
            ),
            (
                "V8 WorkerThread 7 94.5: 100 cycles:u:",
                "V8 WorkerThread||7|100|cycles:u|",
            ),
            (
                "task 12 34/35 [000] 1.2: 1 faults:",
                "task 12|34|35|1|faults|",
            ),
            ("  a 7 1.2: 9 cycles:  ff f (m)", "a||7|9|cycles|ff f (m)"),
            (":-1 -1 [000] 5.6: 1 cycles:", ":-1||-1|1|cycles|"),
            (
                "sh 7 [001] 5.6: sched:sched_switch: prev=sh",
                "sh||7||sched:sched_switch|prev=sh",
            ),
            ("java 12 cycles:", "java||12||cycles|"),
            ("java\t12\t[001]\t5.6:\t7\tcycles:", "java||12|7|cycles|"),
            ("java 12 1.5: 7", "java||12|7||"),
            ("java 12", "java||12|||"),
        ];
        for (line, expected) in cases {
            assert_eq!(parts(line).as_deref(), Some(expected), "{line}");
        }
        for line in [
            "",
            "java",
            "12 1.2: cycles:",
            "java 1.2: cycles:",
            "main;f 12a",
            "WARNING: The perf.data file's data size field is 0 which is unexpected.",
            "[ perf record: Woken up 12 times to write data ]",
            " instruction trace error type 1 time 4.5 cpu 0 pid 2 tid 2 ip 0 code 8: Lost trace data",
        ] {
            assert_eq!(parts(line), None, "{line}");
        }
    }

    #[test]
    fn stack_lines_of_all_shapes() {
        let parts = |line: &'static str| {
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            stack_line(line.as_bytes())
                .map(|line| (text(line.address), text(line.symbol), text(line.module)))
        };
        let cases = [
            ("\t  ff main+0x1f (/bin/a b)", ("ff", "main", "/bin/a b")),
            (" 0 [unknown] ([unknown])", ("0", "[unknown]", "[unknown]")),
            (
                "ff operator() (int) (/lib/x.so)",
                ("ff", "operator() (int)", "/lib/x.so"),
            ),
            (
                "ff f+0x1 (/lib/x.so (deleted))",
                ("ff", "f", "/lib/x.so (deleted)"),
            ),
            ("ff a+0xzz (m)", ("ff", "a+0xzz", "m")),
            ("\tff\tmain+0x1f\t(/bin/a)", ("ff", "main", "/bin/a")),
            (
                "7f1e2215d058  (/lib/libc.so)",
                ("7f1e2215d058", " ", "/lib/libc.so"),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(parts(line), Some(expected), "{line}");
        }
        for line in ["", "ff", "ff main", "xyz main (m)", "java 12 1.2: cycles:"] {
            assert_eq!(parts(line), None, "{line}");
        }
    }
}
