//! Adds lines of folded text to a profile.

use memchr::{memchr, memchr_iter, memrchr2};

use crate::formats::shared::shared_prefix;
use crate::profile::{Error, Limits, Node, Profile, Result, ValueType, ROOT};

/// The parts of 1 in which fractions of counts are added up.
pub(super) const PARTS: i64 = 1_000_000;

/// Why a line has no count that can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It does not end with a number: a malformed line, which is left out.
    NoCount,
    /// A count below zero.
    Negative,
    /// A number in another notation, or one that does not fit in 63 bits.
    Unreadable,
    /// A count with a fraction, where only whole ones can be used.
    Fraction,
}

/// The number of good and malformed lines.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(super) good: u64,
    pub(crate) malformed: u64,
    /// The number of the first malformed line, if there is one.
    pub(super) first_malformed: u64,
    /// The first line whose count cannot be added, although it has one.
    pub(super) first_wrong: Option<(u64, Wrong)>,
}

impl Tally {
    /// Counts a line of this number.
    pub(crate) fn count(&mut self, line: u64, wrong: Option<Wrong>) {
        match wrong {
            None => self.good += 1,
            Some(Wrong::NoCount) => {
                if self.malformed == 0 {
                    self.first_malformed = line;
                }
                self.malformed += 1;
            }
            Some(wrong) => {
                self.good += 1;
                self.first_wrong = self.first_wrong.or(Some((line, wrong)));
            }
        }
    }

    /// Adds the counts of another part of the text.
    pub(super) fn add(&mut self, other: &Tally) {
        self.first_malformed = match (self.malformed, other.malformed) {
            (0, _) => other.first_malformed,
            (_, 0) => self.first_malformed,
            _ => self.first_malformed.min(other.first_malformed),
        };
        let wrongs = [self.first_wrong, other.first_wrong].into_iter().flatten();
        self.first_wrong = wrongs.min_by_key(|&(line, _)| line);
        self.good += other.good;
        self.malformed += other.malformed;
    }
}

/// A profile to which lines are added. Each line has one count or two, and as many values of the profile have the whole
/// counts. After the first fraction, as many more values have the parts.
pub(super) struct Adder<'a> {
    pub(super) profile: &'a mut Profile,
    pub(super) tally: Tally,
    /// The number of counts of a line.
    counts: usize,
    limits: &'a Limits,
    /// The last added stack: the end of each frame, and its node.
    path: Vec<(usize, Node)>,
}

impl<'a> Adder<'a> {
    pub(super) fn new(profile: &'a mut Profile, counts: usize, limits: &'a Limits) -> Adder<'a> {
        Adder {
            profile,
            tally: Tally::default(),
            counts,
            limits,
            path: Vec::new(),
        }
    }

    /// Adds the lines of a piece of text, whose first line has this number.
    pub(super) fn add_lines(&mut self, text: &[u8], first: u64) -> Result<()> {
        let mut before: &[u8] = &[];
        self.path.clear();
        let marked = text.strip_prefix(b"\xef\xbb\xbf").filter(|_| first == 1);
        let (mut rest, mut number) = (marked.unwrap_or(text), first);
        while !rest.is_empty() {
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, behind) = rest.split_at(end);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() && !is_comment(line) {
                let wrong = match split_count(line) {
                    Ok((stack, last)) => self.add_line(stack, last, &mut before),
                    Err(wrong) => Ok(Some(wrong)),
                };
                let wrong = wrong.map_err(|error| error.at_line(number))?;
                self.tally.count(number, wrong);
            }
            rest = behind.get(1..).unwrap_or_default();
            number += 1;
        }
        Ok(())
    }

    /// Adds a line with this last count. `before` is the stack of `path`.
    fn add_line<'t>(
        &mut self,
        stack: &'t [u8],
        last: Count,
        before: &mut &'t [u8],
    ) -> Result<Option<Wrong>> {
        if self.counts == 1 {
            self.add_stack(stack, before, &[last])?;
            return Ok(None);
        }
        match split_count(stack) {
            Ok((stack, first)) => self.add_stack(stack, before, &[first, last])?,
            Err(wrong) => return Ok(Some(wrong)),
        }
        Ok(None)
    }

    fn add_stack<'t>(
        &mut self,
        stack: &'t [u8],
        before: &mut &'t [u8],
        counts: &[Count],
    ) -> Result<()> {
        if counts.iter().all(|count| *count == Count::default()) {
            return Ok(());
        }
        let node = self.leaf(stack, before)?;
        for (value, count) in counts.iter().enumerate() {
            self.profile.add(node, value, count.whole)?;
            if count.parts > 0 {
                add_parts(self.profile, self.counts, self.limits)?;
                self.profile.add(node, self.counts + value, count.parts)?;
            }
        }
        Ok(())
    }

    /// The node of a stack. Frames shared with the previous stack are not looked up again: neighbouring lines mostly
    /// differ near their leaves.
    fn leaf<'t>(&mut self, stack: &'t [u8], before: &mut &'t [u8]) -> Result<Node> {
        if stack.is_empty() {
            return Ok(ROOT);
        }
        let shared = shared_prefix(before, stack);
        let mut depth = self.path.partition_point(|&(end, _)| end < shared);
        let ends_here = stack.get(shared).is_none_or(|&byte| byte == b';');
        if ends_here && self.path.get(depth).is_some_and(|&(end, _)| end == shared) {
            depth += 1;
        }
        self.path.truncate(depth);
        let start = self.path.last().map_or(0, |&(end, _)| end + 1);
        *before = stack;
        if start <= stack.len() {
            self.add_frames(stack, start)?;
        }
        Ok(self.path.last().map_or(ROOT, |&(_, node)| node))
    }

    /// Adds the frames from `from` on.
    fn add_frames(&mut self, stack: &[u8], from: usize) -> Result<()> {
        let mut node = self.path.last().map_or(ROOT, |&(_, node)| node);
        let ends = memchr_iter(b';', &stack[from..]).map(|end| from + end);
        let mut start = from;
        for end in ends.chain([stack.len()]) {
            let name = &stack[start..end];
            if name.len() > self.limits.name_bytes {
                return Err(Error::Limit {
                    what: "bytes of a frame name",
                    limit: self.limits.name_bytes as u64,
                });
            }
            let frame = self.profile.frames.intern(name)?;
            node = self.profile.child(node, frame)?;
            self.path.push((end, node));
            start = end + 1;
        }
        Ok(())
    }
}

/// Gives a profile values for the parts of its counts, if it has none.
pub(super) fn add_parts(profile: &mut Profile, counts: usize, limits: &Limits) -> Result<()> {
    while profile.values().len() < 2 * counts {
        let parts = ValueType::new("parts", "count");
        profile.push_value(parts, limits.cells)?;
    }
    Ok(())
}

/// Whether a line is a comment: `#` alone or before a space. A frame may begin with it: `#<Class:A>`.
pub(crate) fn is_comment(line: &[u8]) -> bool {
    matches!(line.trim_ascii_end(), [b'#'] | [b'#', b' ', ..])
}

/// A count: a whole number, and parts of 1.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) whole: i64,
    pub(crate) parts: i64,
}

/// Splits `stack count`.
#[inline]
pub(crate) fn split_count(line: &[u8]) -> std::result::Result<(&[u8], Count), Wrong> {
    let Some(line) = Line::of(line) else {
        return Err(wrong_count(line));
    };
    let count = line.count().ok_or(Wrong::Unreadable)?;
    Ok((line.stack, count))
}

/// What is wrong with a line that does not end with a plain number.
fn wrong_count(line: &[u8]) -> Wrong {
    let blank = memrchr2(b' ', b'\t', line);
    let number = blank.map_or(&[][..], |blank| &line[blank + 1..]);
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let begins = digits.first().is_some_and(u8::is_ascii_digit);
    let text = std::str::from_utf8(number).unwrap_or_default();
    match begins && text.parse::<f64>().is_ok() {
        true if number[0] == b'-' => Wrong::Negative,
        true => Wrong::Unreadable,
        false => Wrong::NoCount,
    }
}

/// A line of folded text: the stack, and the digits of its count before and after the point.
pub(crate) struct Line<'a> {
    pub(crate) stack: &'a [u8],
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Line<'a> {
    /// Splits a line at its last space or tab, if a number follows.
    pub(super) fn of(line: &'a [u8]) -> Option<Line<'a>> {
        let blank = memrchr2(b' ', b'\t', line)?;
        let (stack, number) = (&line[..blank], &line[blank + 1..]);
        let point = memchr(b'.', number).unwrap_or(number.len());
        let (whole, fraction) = (
            &number[..point],
            number.get(point + 1..).unwrap_or_default(),
        );
        let is_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
        let is_number = !whole.is_empty() && is_digits(whole) && is_digits(fraction);
        is_number.then_some(Line {
            stack,
            whole,
            fraction,
        })
    }

    pub(super) fn has_point(&self) -> bool {
        !self.fraction.is_empty()
    }

    /// The count; None if it does not fit in 63 bits.
    fn count(&self) -> Option<Count> {
        let value = |digit: &u8| i64::from(digit - b'0');
        let mut count = Count::default();
        for digit in self.whole {
            count.whole = count.whole.checked_mul(10)?.checked_add(value(digit))?;
        }
        let mut part = PARTS;
        for digit in self.fraction {
            part /= 10;
            count.parts += value(digit) * part;
        }
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        let limits = Limits::default();
        let mut adder = Adder::new(&mut profile, 1, &limits);
        adder.add_lines(text.as_bytes(), 1).unwrap();
        let mut out = Vec::new();
        profile.write_folded(&mut out, 0, true).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_shared_ends_with_a_whole_frame() {
        for (text, expected) in [
            ("a;b 1\na;bc 1\na;b;c 1\n", "a;b 1\na;b;c 1\na;bc 1\n"),
            ("a;bc 1\na;b 1\n", "a;b 1\na;bc 1\n"),
            ("a;b;c 1\na;b 1\na;b;c 1\na 1\n", "a 1\na;b 1\na;b;c 2\n"),
            (";x 1\n; 1\ny 1\n;; 1\n", "; 1\n;; 1\n;x 1\ny 1\n"),
            ("a;b 1\n 3\na;b;d 0\na;b 1\n;q 1\n", " 3\n;q 1\na;b 2\n"),
            (
                "abcdefgh;ijkl 1\nabcdefgh;ijkm 1\nabcdefgh 1\n",
                "abcdefgh 1\nabcdefgh;ijkl 1\nabcdefgh;ijkm 1\n",
            ),
        ] {
            assert_eq!(folded(text), expected, "{text:?}");
        }
    }
}
