//! Reading folded text.

use std::io::Read;

use memchr::memrchr;

use super::adder::{is_comment, Adder, Line, Tally, Wrong, PARTS};
use super::blocks::Blocks;
use super::shared;
use crate::formats::{foreign, Format, ReadOptions};
use crate::profile::{Error, Limits, Order, Profile, Result, ValueType};
use crate::source::{Input, HEAD_BYTES};

/// The number of blocks to read before starting other threads, which small texts do not need.
const ALONE: usize = 8;

/// Reads folded text with one count a line, or with two if every line of its beginning has two. Long texts are read
/// with all processors.
pub(crate) fn read_input(text: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let (head, limits) = (text.head(), &options.limits);
    let whole = head.len() < HEAD_BYTES;
    let values = match is_differential(head, whole) {
        true => ["before", "after"]
            .map(|name| ValueType::new(name, "count"))
            .to_vec(),
        false => vec![ValueType::samples()],
    };
    let counts = values.len();
    let doubt = match options.format {
        None => foreign::doubt(head),
        Some(_) => None,
    };
    let mut profile = Profile::bounded(values, limits.cells);
    profile.add_incomplete(doubt);
    let mut blocks = Blocks::new(text, limits);
    let (all, mut lines) = add_first_blocks(&mut profile, &mut blocks, counts, limits)?;
    if !all {
        let (sum, rest) = shared::add_rest(profile, blocks, counts, limits)?;
        profile = sum;
        lines.add(&rest);
    }
    lines.check(options.format.is_some())?;
    profile.add_malformed_lines(lines.malformed);
    let profile = profile.into_ordered()?;
    match profile.values().len() == counts {
        true => Ok(profile),
        false => rounded(profile, counts),
    }
}

/// Rounds counts and their parts to whole numbers. The totals stay right. Counts so small that rounding would falsify
/// them become thousandths or millionths.
fn rounded(mut profile: Profile, counts: usize) -> Result<Profile> {
    // A fiftieth of all counts may be rounded off.
    const MOST: i128 = 50;
    let exact = |profile: &Profile, value: usize| -> Vec<i128> {
        let parts = profile.selves(counts + value).iter();
        let both = profile.selves(value).iter().zip(parts);
        both.map(|(&whole, &parts)| i128::from(whole) * i128::from(PARTS) + i128::from(parts))
            .collect()
    };
    let is_small = |unit: i128| {
        let (mut all, mut off) = (0, 0);
        for count in (0..counts).flat_map(|value| exact(&profile, value)) {
            let rest = count % unit;
            all += count;
            off += rest.min(unit - rest);
        }
        off * MOST > all
    };
    let units = [(PARTS, None), (1000, Some("thousandths"))];
    let fits = units.into_iter().find(|&(unit, _)| !is_small(unit.into()));
    let (unit, named) = fits.unwrap_or((1, Some("millionths")));
    let order = Order::of(&profile);
    for value in 0..counts {
        let all = exact(&profile, value);
        let rest = |count: &i128| (count % i128::from(unit)) as i64;
        profile.set_column(counts + value, all.iter().map(rest).collect())?;
        let rests = profile.total(counts + value)?;
        let mut column = match rests {
            0 => vec![0; all.len()],
            _ => profile.dealt(counts + value, (rests + unit / 2) / unit, &order)?,
        };
        for (count, exact) in column.iter_mut().zip(&all) {
            let whole = i128::from(*count) + exact / i128::from(unit);
            let overflow = |_| Error::Overflow(profile.values()[value].to_string());
            *count = i64::try_from(whole).map_err(overflow)?;
        }
        profile.set_column(value, column)?;
    }
    profile.keep_values(&(0..counts).collect::<Vec<_>>());
    if let Some(named) = named {
        for value in 0..counts {
            let name = match counts {
                1 => named.to_string(),
                _ => profile.values()[value].name.to_string(),
            };
            profile.rename_value(value, ValueType::new(name, named));
        }
        let warning = format!("the counts are small fractions: they are given in {named}");
        profile.add_warnings([warning]);
    }
    Ok(profile)
}

/// The lines with a count of the beginning of a text, without an unfinished last one.
pub(crate) fn lines(head: &[u8], whole: bool) -> impl Iterator<Item = Line<'_>> {
    let end = match whole {
        true => head.len(),
        false => memrchr(b'\n', head).unwrap_or(head.len()),
    };
    let lines = head[..end].split(|&byte| byte == b'\n').map(trim_end);
    lines.filter(|line| !is_comment(line)).filter_map(Line::of)
}

/// Whether a text begins like a differential file: every line has two counts.
///
/// `whole`: the text ends here. A leaf such as `thread 12` makes single lines look like that, not all. A leaf such as
/// `java 17.0` may be on all: only if some last counts have a point do the first ones have one.
pub(crate) fn is_differential(head: &[u8], whole: bool) -> bool {
    let (mut some, mut first_point, mut last_point) = (false, false, false);
    for last in lines(head, whole) {
        let Some(first) = Line::of(last.stack) else {
            return false;
        };
        some = true;
        first_point |= first.has_point();
        last_point |= last.has_point();
    }
    some && (last_point || !first_point)
}

/// Adds the first blocks; also returns whether these were all.
fn add_first_blocks(
    profile: &mut Profile,
    blocks: &mut Blocks<impl Read>,
    counts: usize,
    limits: &Limits,
) -> Result<(bool, Tally)> {
    let mut adder = Adder::new(profile, counts, limits);
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
    /// If most lines are not of a format, the text is not either, unless the caller says so: `named`.
    #[cfg(feature = "formats")]
    pub(crate) fn check_most(&self, format: &'static str, named: bool) -> Result<()> {
        let (good, malformed, line) = (self.good, self.malformed, self.first_malformed);
        if malformed <= good || named {
            return Ok(());
        }
        let all = good + malformed;
        let reason = format!("no part of a sample, as {malformed} of {all} lines");
        Err(Error::Text {
            format,
            line,
            reason,
        })
    }

    /// If most lines are malformed, the text is not folded text, unless the caller says so: `named`. If it is, all its
    /// counts have to be right.
    pub(crate) fn check(&self, named: bool) -> Result<()> {
        let (good, malformed, line) = (self.good, self.malformed, self.first_malformed);
        if malformed <= good || (named && good > 0) {
            return self
                .first_wrong
                .map_or(Ok(()), |(line, wrong)| Err(wrong.error(line)));
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

impl Wrong {
    fn error(self, line: u64) -> Error {
        let reason = match self {
            Wrong::NoCount => "it has no count",
            Wrong::Negative => {
                return Error::Negative(Error::FOLDED, format!("line {line}: its count"));
            }
            Wrong::Unreadable => "its count has an exponent, or does not fit in 64 bits",
            Wrong::Fraction => "its count has a fraction; a flame chart needs whole numbers",
        };
        let (format, reason) = (Error::FOLDED, reason.to_string());
        Error::Text {
            format,
            line,
            reason,
        }
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
    fn a_count_that_cannot_be_added_is_an_error() {
        let unreadable = "its count has an exponent, or does not fit in 64 bits";
        for (count, expected) in [
            ("9223372036854775808", unreadable),
            ("1e3", unreadable),
            (
                "-3",
                "its count is negative: differences of profiles are not read",
            ),
        ] {
            let error = read_text(&format!("a 1\nb {count}\nc 2\n")).err().unwrap();
            assert!(
                error.to_string().ends_with(&format!("line 2: {expected}")),
                "{error}"
            );
        }
    }

    #[test]
    fn fractions_may_begin_late_and_stand_beside_large_counts() {
        let mut late = "a;b 3\n".repeat(1_000_000);
        late += &"a;c 0.5\n".repeat(20_000);
        let profile = read_text(&late).unwrap();
        assert_eq!(folded(&profile), "a;b 3000000\na;c 10000\n");
        let large = read_text("a 4000000000000000000\nb 4000000000000.25\nb 0.5\n").unwrap();
        assert_eq!(folded(&large), "a 4000000000000000000\nb 4000000000001\n");
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
            ["the counts are small fractions: they are given in thousandths"]
        );
        let unit = ValueType::new("thousandths", "thousandths");
        assert_eq!(scaled.values(), [unit], "they are no samples");
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
        assert!(!is_differential(b"a;java 17.0 5\n", true), "a version");
        assert!(is_differential(b"a 1.5 2\nb 1 2.5\n", true));
        let profile = read_text("a;b 1 2\na x\n").unwrap();
        assert_eq!(
            (profile.total(0).unwrap(), profile.total(1).unwrap()),
            (1, 2)
        );
        assert_eq!(profile.malformed_lines(), 1);
    }
}
