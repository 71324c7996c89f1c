//! Reading folded text.

use std::io::Read;

use super::adder::{split_count, Adder, Tally};
use super::blocks::Blocks;
use super::shared;
use crate::formats::{Format, ReadOptions};
use crate::profile::{Error, Limits, Profile, Result, ValueType};
use crate::source::{Input, HEAD_BYTES};

/// The number of blocks to read before starting other threads, which small texts do not need.
const ALONE: usize = 8;

/// The error for a text in another format.
const NO_STACK: &str = "not a stack and a count, and no other line is either";

/// Reads folded text with one count a line, or with two if every line of its beginning has two. Long texts are read
/// with all processors.
pub(crate) fn read_input(text: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let (head, limits) = (text.head(), &options.limits);
    let values = match is_differential(head, head.len() < HEAD_BYTES) {
        true => ["before", "after"]
            .map(|name| ValueType::new(name, "count"))
            .to_vec(),
        false => vec![ValueType::samples()],
    };
    let mut profile = Profile::bounded(values, limits.cells);
    let mut blocks = Blocks::new(text, limits);
    let (all, mut lines) = add_first_blocks(&mut profile, &mut blocks, limits)?;
    if !all {
        let (sum, rest) = shared::add_rest(profile, blocks, limits)?;
        profile = sum;
        lines.add(&rest);
    }
    lines.check(&mut profile, options.format.is_some())?;
    profile.into_ordered()
}

/// Whether a text begins like a differential file: every line has two counts.
///
/// `whole`: the text ends here. A leaf such as `thread 12` makes single lines look like that, not all.
pub(crate) fn is_differential(head: &[u8], whole: bool) -> bool {
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

/// Adds the first blocks; also returns whether these were all.
fn add_first_blocks(
    profile: &mut Profile,
    blocks: &mut Blocks<impl Read>,
    limits: &Limits,
) -> Result<(bool, Tally)> {
    let mut adder = Adder::new(profile, limits);
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
    /// Counts malformed lines. A text with only malformed lines is an error. `named`: the caller named the format.
    fn check(&self, profile: &mut Profile, named: bool) -> Result<()> {
        if self.good > 0 || self.malformed == 0 {
            profile.add_malformed_lines(self.malformed);
            return Ok(());
        }
        let line = self.first_malformed;
        if named {
            return Err(Error::Text {
                format: Error::FOLDED,
                line,
                reason: NO_STACK.to_string(),
            });
        }
        let known: Vec<&str> = Format::all().map(Format::name).collect();
        let known = known.join(", ");
        let reason = format!("{NO_STACK}; the formats that can be read are {known}");
        Err(Error::UnknownFormat { line, reason })
    }
}

fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
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
