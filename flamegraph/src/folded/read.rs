//! Reading folded text.

use std::io::BufRead;

use crate::error::{Error, Result};
use crate::input::{Input, HEAD_BYTES};
use crate::limits::{Bounded, Limits};
use crate::options::ReadOptions;
use crate::profile::Profile;
use crate::tree::ROOT;
use crate::values::ValueType;

/// Where the counts of a line go.
#[derive(Clone, Copy)]
enum Columns {
    /// One count, to this value.
    One(usize),
    /// One count to the first value, and multiplied by this to the second.
    Scaled(i64),
    /// Two counts, to the first value and the second.
    Two,
}

/// Reads folded text with one count a line, or with two where every line of its beginning has two.
pub(crate) fn read_input(text: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let head = text.head();
    if is_differential(head, head.len() < HEAD_BYTES) {
        read_differential(text, &options.limits)
    } else {
        read(text, ValueType::samples(), &options.limits)
    }
}

/// Reads folded text with one count a line.
pub fn read(text: impl BufRead, value: ValueType, limits: &Limits) -> Result<Profile> {
    let mut profile = Profile::bounded(vec![value], limits.cells);
    add_text(&mut profile, text, Columns::One(0), limits)?;
    Ok(profile)
}

/// Reads folded text with two counts a line (before, after), as a differential file has.
pub fn read_differential(text: impl BufRead, limits: &Limits) -> Result<Profile> {
    let values = vec![
        ValueType::new("before", "count"),
        ValueType::new("after", "count"),
    ];
    let mut profile = Profile::bounded(values, limits.cells);
    add_text(&mut profile, text, Columns::Two, limits)?;
    Ok(profile)
}

/// One recording dumped twice, as samples and as nanoseconds of CPU time, in one profile.
pub fn read_recording(samples: &[u8], nanoseconds: &[u8], limits: &Limits) -> Result<Profile> {
    let mut profile = Profile::bounded(vec![ValueType::samples(), ValueType::cpu()], limits.cells);
    add_text(&mut profile, samples, Columns::One(0), limits)?;
    add_text(&mut profile, nanoseconds, Columns::One(1), limits)?;
    Ok(profile)
}

/// One recording dumped as samples only: the CPU time is samples times the interval in nanoseconds.
pub fn read_samples(samples: &[u8], interval: i64, limits: &Limits) -> Result<Profile> {
    let mut profile = Profile::bounded(vec![ValueType::samples(), ValueType::cpu()], limits.cells);
    add_text(&mut profile, samples, Columns::Scaled(interval), limits)?;
    Ok(profile)
}

/// Whether this beginning of a text is a differential file's: every line has two counts.
///
/// `whole`: the text ends here. A leaf such as `thread 12` makes one line look so, but not all.
pub fn is_differential(head: &[u8], whole: bool) -> bool {
    let mut lines: Vec<&[u8]> = head.split(|&byte| byte == b'\n').collect();
    if !whole && lines.len() > 1 {
        lines.pop();
    }
    let mut counted = lines
        .iter()
        .filter_map(|line| split_count(trim_end(line)))
        .peekable();
    counted.peek().is_some() && counted.all(|(rest, _)| split_count(rest).is_some())
}

fn add_text(
    profile: &mut Profile,
    text: impl BufRead,
    columns: Columns,
    limits: &Limits,
) -> Result<()> {
    let bounded = Bounded::new(text, "bytes of folded text", limits.text_bytes);
    let mut text = std::io::BufReader::with_capacity(128 << 10, bounded);
    let (mut line, mut number) = (Vec::new(), 0);
    let (mut good, mut malformed, mut first_malformed) = (0u64, 0u64, 0);
    loop {
        line.clear();
        if text.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        number += 1;
        let content = trim_end(&line);
        if content.is_empty() {
            continue;
        }
        if add_line(profile, content, columns, limits).map_err(|error| error.at_line(number))? {
            good += 1;
        } else {
            malformed += 1;
            first_malformed = if malformed == 1 {
                number
            } else {
                first_malformed
            };
        }
    }
    if good == 0 && malformed > 0 {
        let reason = "not a stack and a count, and no other line is either".to_string();
        return Err(Error::Line {
            line: first_malformed,
            reason,
        });
    }
    profile.add_malformed_lines(malformed);
    Ok(())
}

/// Adds one line; false when it has no count.
fn add_line(profile: &mut Profile, line: &[u8], columns: Columns, limits: &Limits) -> Result<bool> {
    let Some((stack, last)) = split_count(line) else {
        return Ok(false);
    };
    match columns {
        Columns::One(value) => add_stack(profile, stack, &[(value, number(last)?)], limits)?,
        Columns::Scaled(factor) => {
            let count = number(last)?;
            let scaled = count
                .checked_mul(factor)
                .ok_or_else(|| Error::Overflow("cpu (nanoseconds)".into()))?;
            add_stack(profile, stack, &[(0, count), (1, scaled)], limits)?;
        }
        Columns::Two => {
            let Some((stack, first)) = split_count(stack) else {
                return Ok(false);
            };
            add_stack(
                profile,
                stack,
                &[(0, number(first)?), (1, number(last)?)],
                limits,
            )?;
        }
    }
    Ok(true)
}

fn add_stack(
    profile: &mut Profile,
    stack: &[u8],
    amounts: &[(usize, i64)],
    limits: &Limits,
) -> Result<()> {
    if amounts.iter().all(|&(_, amount)| amount == 0) {
        return Ok(());
    }
    let mut node = ROOT;
    if !stack.is_empty() {
        for name in stack.split(|&byte| byte == b';') {
            if name.len() > limits.name_bytes {
                return Err(Error::Limit {
                    what: "bytes of a frame name",
                    limit: limits.name_bytes as u64,
                });
            }
            let frame = profile.frames.intern(name)?;
            node = profile.child(node, frame)?;
        }
    }
    for &(value, amount) in amounts {
        profile.add(node, value, amount)?;
    }
    Ok(())
}

/// `stack count` as its two parts, when what follows the last space is all digits.
fn split_count(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = line.iter().rposition(|&byte| byte == b' ')?;
    let (stack, count) = (&line[..space], &line[space + 1..]);
    (!count.is_empty() && count.iter().all(u8::is_ascii_digit)).then_some((stack, count))
}

fn number(digits: &[u8]) -> Result<i64> {
    digits
        .iter()
        .try_fold(0i64, |sum, digit| {
            sum.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
        })
        .ok_or_else(|| Error::Overflow(format!("count {}", String::from_utf8_lossy(digits))))
}

fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Profile> {
        read(text.as_bytes(), ValueType::samples(), &Limits::default())
    }

    fn folded(profile: &Profile) -> String {
        let mut out = Vec::new();
        profile.write_folded(&mut out, 0, true).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keeps_spaces_and_tolerates_line_ends() {
        let text = "a;b  c d 3\r\n\na;thread 12 2\n;x 1\n 4\na;;b 1";
        assert_eq!(
            folded(&read_text(text).unwrap()),
            " 4\n;x 1\na;;b 1\na;b  c d 3\na;thread 12 2\n"
        );
    }

    #[test]
    fn counts_malformed_lines_and_reads_on() {
        let profile = read_text("a;b 1\nno count\na 1.5\na;c -2\na;d 7 \na;c 2\n").unwrap();
        assert_eq!(profile.malformed_lines(), 4);
        assert_eq!(profile.total(0).unwrap(), 3);
    }

    #[test]
    fn a_text_without_any_stack_is_an_error_with_its_line() {
        let error = read_text("\n<html>\n<body>\n").err().unwrap().to_string();
        assert!(
            error.starts_with("folded text, line 2: not a stack"),
            "{error}"
        );
        assert!(read_text("").unwrap().is_empty());
    }

    #[test]
    fn what_does_not_fit_names_its_line() {
        let error = read_text("a 1\na 9223372036854775807\n")
            .err()
            .unwrap()
            .to_string();
        assert_eq!(
            error,
            "folded text, line 2: samples (count): the sum does not fit in 64 bits"
        );
        let error = read_text("a 99999999999999999999\n")
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.starts_with("folded text, line 1: count 99999999999999999999"),
            "{error}"
        );
    }

    #[test]
    fn limits_hold() {
        let limits = Limits {
            text_bytes: 8,
            name_bytes: 4,
            cells: 3,
            ..Limits::default()
        };
        let fails = |text: &str| {
            read(text.as_bytes(), ValueType::samples(), &limits)
                .err()
                .unwrap()
                .to_string()
        };
        assert_eq!(
            fails("a 1\nb 1\nc 1\n"),
            "bytes of folded text: more than 8"
        );
        assert_eq!(
            fails("abcde 1"),
            "folded text, line 1: bytes of a frame name: more than 4"
        );
        assert_eq!(
            fails("a;b;c 1"),
            "folded text, line 1: nodes of the call tree: more than 3"
        );
    }

    #[test]
    fn two_dumps_of_one_recording_become_one_profile() {
        let profile =
            read_recording(b"a;b 2\na 1\n", b"a;b 20\na;c 5\n", &Limits::default()).unwrap();
        assert_eq!(profile.values(), [ValueType::samples(), ValueType::cpu()]);
        assert_eq!(
            (profile.total(0).unwrap(), profile.total(1).unwrap()),
            (3, 25)
        );
        let scaled = read_samples(b"a;b 2\n", 10_000_000, &Limits::default()).unwrap();
        assert_eq!(
            (scaled.total(0).unwrap(), scaled.total(1).unwrap()),
            (2, 20_000_000)
        );
    }

    #[test]
    fn a_differential_file_has_two_counts_on_every_line() {
        assert!(is_differential(b"a;b 1 2\na 3 4\n", true));
        assert!(!is_differential(b"a;thread 12 2\na;b 4\n", true));
        assert!(!is_differential(b"", true));
        assert!(
            is_differential(b"a;b 1 2\na 3", false),
            "an unfinished line says nothing"
        );
        let profile = read_differential(&b"a;b 1 2\na 3\n"[..], &Limits::default()).unwrap();
        assert_eq!(
            (profile.total(0).unwrap(), profile.total(1).unwrap()),
            (1, 2)
        );
        assert_eq!(profile.malformed_lines(), 1);
    }
}
