//! Reading folded text.

use std::io::Read;

use memchr::memrchr;

use super::adder::{is_comment, Adder, Line, Tally};
use super::blocks::Blocks;
use super::shared;
use crate::formats::{Format, ReadOptions};
use crate::profile::{Error, Limits, Order, Profile, Result, ValueType};
use crate::source::{Input, HEAD_BYTES};

/// The number of blocks to read before starting other threads, which small texts do not need.
const ALONE: usize = 8;

/// The parts of 1 in which counts are read if they have fractions.
const FRACTIONS: i64 = 1_000_000;

/// Reads folded text with one count a line, or with two if every line of its beginning has two. Long texts are read
/// with all processors.
pub(crate) fn read_input(text: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let (head, limits) = (text.head(), &options.limits);
    let whole = head.len() < HEAD_BYTES;
    let scale = if has_fractions(head, whole) {
        FRACTIONS
    } else {
        1
    };
    let values = match is_differential(head, whole) {
        true => ["before", "after"]
            .map(|name| ValueType::new(name, "count"))
            .to_vec(),
        false => vec![ValueType::samples()],
    };
    let mut profile = Profile::bounded(values, limits.cells);
    let mut blocks = Blocks::new(text, limits);
    let (all, mut lines) = add_first_blocks(&mut profile, &mut blocks, scale, limits)?;
    if !all {
        let (sum, rest) = shared::add_rest(profile, blocks, scale, limits)?;
        profile = sum;
        lines.add(&rest);
    }
    lines.check(options.format.is_some())?;
    profile.add_malformed_lines(lines.malformed);
    let profile = profile.into_ordered()?;
    match scale {
        1 => Ok(profile),
        _ => rounded(profile),
    }
}

/// Rounds counts in parts of 1 to whole numbers. The totals stay right: the largest fractions are rounded up. Counts so
/// small that rounding would falsify them are multiplied by 1,000 or 1,000,000.
fn rounded(mut profile: Profile) -> Result<Profile> {
    // A fiftieth of all counts may be rounded off.
    const MOST: i128 = 50;
    let values = 0..profile.values().len();
    let is_small = |parts: i64| {
        let selves = values.clone().flat_map(|value| profile.selves(value));
        let (mut all, mut off) = (0, 0);
        for &count in selves {
            let rest = count % parts;
            all += i128::from(count);
            off += i128::from(rest.min(parts - rest));
        }
        off * MOST > all
    };
    let mut parts = FRACTIONS;
    while parts > 1 && is_small(parts) {
        parts /= 1000;
    }
    if parts < FRACTIONS {
        let factor = if parts == 1 { "1,000,000" } else { "1,000" };
        let warning = format!("the counts are small fractions: they were multiplied by {factor}");
        profile.add_warnings([warning]);
    }
    let order = Order::of(&profile);
    for value in values {
        let total = profile.total(value)?;
        let column = profile.dealt(value, (total + parts / 2) / parts, &order)?;
        profile.set_column(value, column)?;
    }
    Ok(profile)
}

/// Whether a text begins with a line that has a fraction as its count.
fn has_fractions(head: &[u8], whole: bool) -> bool {
    lines(head, whole).any(|line| line.has_fraction())
}

/// The lines with a count of the beginning of a text, without an unfinished last one.
fn lines(head: &[u8], whole: bool) -> impl Iterator<Item = Line<'_>> {
    let end = match whole {
        true => head.len(),
        false => memrchr(b'\n', head).unwrap_or(head.len()),
    };
    let lines = head[..end].split(|&byte| byte == b'\n').map(trim_end);
    lines.filter(|line| !is_comment(line)).filter_map(Line::of)
}

/// Whether a text begins like a differential file: every line has two counts.
///
/// `whole`: the text ends here. A leaf such as `thread 12` makes single lines look like that, not all.
pub(crate) fn is_differential(head: &[u8], whole: bool) -> bool {
    let mut lines = lines(head, whole).peekable();
    lines.peek().is_some() && lines.all(|line| Line::of(line.stack).is_some())
}

/// Adds the first blocks; also returns whether these were all.
fn add_first_blocks(
    profile: &mut Profile,
    blocks: &mut Blocks<impl Read>,
    scale: i64,
    limits: &Limits,
) -> Result<(bool, Tally)> {
    let mut adder = Adder::new(profile, scale, limits);
    let mut block = Vec::new();
    for _ in 0..ALONE {
        match blocks.next(&mut block)? {
            Some(first) => adder.add_lines(&block, first)?,
            None => return Ok((true, adder.tally)),
        }
    }
    Ok((false, adder.tally))
}

impl Tally {
    /// If most lines are malformed, the text is not folded text, unless the caller says so: `named`.
    pub(crate) fn check(&self, named: bool) -> Result<()> {
        let (good, malformed, line) = (self.good, self.malformed, self.first_malformed);
        if malformed <= good || (named && good > 0) {
            return Ok(());
        }
        let all = good + malformed;
        let reason = match good {
            0 => "not a stack and a count, and no other line is either".to_string(),
            _ => format!("not a stack and a count, as {malformed} of {all} lines"),
        };
        if named {
            return Err(Error::Text {
                format: Error::FOLDED,
                line,
                reason,
            });
        }
        let known: Vec<&str> = Format::all().map(Format::name).collect();
        let known = known.join(", ");
        let reason = format!("{reason}; the formats that can be read are {known}");
        Err(Error::UnknownFormat { line, reason })
    }
}

fn trim_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::read;

    fn read_text(text: &str) -> Result<Profile> {
        read(text.as_bytes(), &ReadOptions::of(Some(Format::Folded)))
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
    fn a_byte_order_mark_is_no_part_of_a_name() {
        let text = "\u{feff}a;b 1\n\u{feff}a 2\n";
        assert_eq!(folded(&read_text(text).unwrap()), "a;b 1\n\u{feff}a 2\n");
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
    }

    #[test]
    fn one_absurd_count_is_a_malformed_line() {
        let profile = read_text("a 99999999999999999999\nb 9223372036854775808\nc 2\n").unwrap();
        assert_eq!(
            (profile.total(0).unwrap(), profile.malformed_lines()),
            (2, 2)
        );
    }

    #[test]
    fn fractions_are_rounded_such_that_totals_and_shares_stay_right() {
        let cases = [
            (
                "main;parse 12\nmain;write 2.5\nmain;read 60.25\n",
                "main;parse 12\nmain;read 60\nmain;write 3\n",
            ),
            ("a;b\t2.0\na 3.\n", "a 3\na;b 2\n"),
            ("a 0.4\na 0.4\nb 99.2\n", "a 1\nb 99\n"),
            ("a 0.0125\nb 0.5\n", "a 13\nb 500\n"),
            ("a 0.0000125\nb 0.000001\n", "a 12\nb 1\n"),
        ];
        for (text, expected) in cases {
            let profile = read_text(text).unwrap();
            assert_eq!(folded(&profile), expected, "{text}");
            assert_eq!(profile.malformed_lines(), 0);
        }
        let scaled = read_text("a 0.0125\nb 0.5\n").unwrap();
        assert_eq!(
            scaled.warnings(),
            ["the counts are small fractions: they were multiplied by 1,000"]
        );
    }

    #[test]
    fn comments_are_no_stacks() {
        let profile = read_text("# made by x 12\n#\na;#<Class:A> 1\n#<Class:B> 2\n").unwrap();
        assert_eq!(folded(&profile), "#<Class:B> 2\na;#<Class:A> 1\n");
        assert_eq!(profile.malformed_lines(), 0);
    }

    #[test]
    fn a_text_of_other_lines_is_not_folded() {
        let most = "a 1\nb\nc\n";
        let error = read(most.as_bytes(), &ReadOptions::default())
            .err()
            .unwrap();
        assert_eq!(error.code(), "unknown-format");
        let error = error.to_string();
        let expected = "folded text, line 2: not a stack and a count, as 2 of 3 lines; ";
        assert!(error.starts_with(expected), "{error}");
        // A caller who names the format gets what there is.
        assert_eq!(read_text(most).unwrap().malformed_lines(), 2);
        let half = read(b"a 1\nb\n", &ReadOptions::default()).unwrap();
        assert_eq!(half.malformed_lines(), 1);
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
        let profile = read_text("a;b 1 2\na x\n").unwrap();
        assert_eq!(
            (profile.total(0).unwrap(), profile.total(1).unwrap()),
            (1, 2)
        );
        assert_eq!(profile.malformed_lines(), 1);
    }
}
