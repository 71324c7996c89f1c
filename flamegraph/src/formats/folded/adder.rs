//! Adds lines of folded text to a profile.

use memchr::{memchr, memchr_iter, memrchr2};

use crate::formats::shared::shared_prefix;
use crate::profile::{Error, Limits, Node, Profile, Result, ROOT};

/// The number of good and malformed lines.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(super) good: u64,
    pub(crate) malformed: u64,
    /// The number of the first malformed line, if there is one.
    pub(super) first_malformed: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, good: bool, line: u64) {
        if good {
            self.good += 1;
            return;
        }
        if self.malformed == 0 {
            self.first_malformed = line;
        }
        self.malformed += 1;
    }

    /// Adds the counts of another part of the text.
    pub(super) fn add(&mut self, other: &Tally) {
        self.first_malformed = match (self.malformed, other.malformed) {
            (0, _) => other.first_malformed,
            (_, 0) => self.first_malformed,
            _ => self.first_malformed.min(other.first_malformed),
        };
        self.good += other.good;
        self.malformed += other.malformed;
    }
}

/// A profile to which lines are added. Each has a count for each of the profile's values, of which there are one or two.
pub(super) struct Adder<'a> {
    pub(super) profile: &'a mut Profile,
    pub(super) tally: Tally,
    has_two_counts: bool,
    /// The parts of 1 that are counted.
    scale: i64,
    limits: &'a Limits,
    /// The last added stack: the end of each frame, and its node.
    path: Vec<(usize, Node)>,
}

impl<'a> Adder<'a> {
    pub(super) fn new(profile: &'a mut Profile, scale: i64, limits: &'a Limits) -> Adder<'a> {
        Adder {
            has_two_counts: profile.values().len() == 2,
            profile,
            tally: Tally::default(),
            scale,
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
                let good = self.add_line(line, &mut before);
                self.tally
                    .count(good.map_err(|error| error.at_line(number))?, number);
            }
            rest = behind.get(1..).unwrap_or_default();
            number += 1;
        }
        Ok(())
    }

    /// Adds one line; false if it has no count. `before` is the stack of `path`.
    fn add_line<'t>(&mut self, line: &'t [u8], before: &mut &'t [u8]) -> Result<bool> {
        let Some((stack, last)) = split_count(line, self.scale) else {
            return Ok(false);
        };
        if !self.has_two_counts {
            self.add_stack(stack, before, &[last])?;
            return Ok(true);
        }
        let Some((stack, first)) = split_count(stack, self.scale) else {
            return Ok(false);
        };
        self.add_stack(stack, before, &[first, last])?;
        Ok(true)
    }

    fn add_stack<'t>(
        &mut self,
        stack: &'t [u8],
        before: &mut &'t [u8],
        amounts: &[i64],
    ) -> Result<()> {
        if amounts.iter().all(|&amount| amount == 0) {
            return Ok(());
        }
        let node = self.leaf(stack, before)?;
        for (value, &amount) in amounts.iter().enumerate() {
            self.profile.add(node, value, amount)?;
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

/// Whether a line is a comment: `#` alone or before a space. A frame may begin with it: `#<Class:A>`.
pub(crate) fn is_comment(line: &[u8]) -> bool {
    matches!(line.trim_ascii_end(), [b'#'] | [b'#', b' ', ..])
}

/// Splits `stack count`; see [`Line::count`].
#[inline]
pub(crate) fn split_count(line: &[u8], scale: i64) -> Option<(&[u8], i64)> {
    let line = Line::of(line)?;
    Some((line.stack, line.count(scale)?))
}

/// A line of folded text: the stack, and the digits of its count before and after the point.
pub(super) struct Line<'a> {
    pub(super) stack: &'a [u8],
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

    pub(super) fn has_fraction(&self) -> bool {
        self.fraction.iter().any(|&digit| digit != b'0')
    }

    /// The count in parts of 1: `scale` of them, a power of ten. None if it does not fit in 63 bits, or if it has a
    /// fraction but there are no parts.
    fn count(&self, scale: i64) -> Option<i64> {
        let value = |digit: &u8| i64::from(digit - b'0');
        let mut count = 0i64;
        for digit in self.whole {
            count = count.checked_mul(10)?.checked_add(value(digit))?;
        }
        count = count.checked_mul(scale)?;
        if scale == 1 && self.has_fraction() {
            return None;
        }
        let mut part = scale;
        for digit in self.fraction {
            part /= 10;
            count = count.checked_add(value(digit) * part)?;
        }
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ValueType;

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
