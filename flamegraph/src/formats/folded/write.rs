//! Writing folded text.

use std::io::{self, Write};

use super::adder::Line;
use super::{is_comment, is_differential};
use crate::profile::{Order, Profile, Result, Step, ROOT};
use crate::source::HEAD_BYTES;

impl Profile {
    /// Writes one value as folded text, a line for each stack that has it, in name order.
    ///
    /// With `annotate` a frame's kind is written after its name (`_[j]`). Without it stacks that differ only in kinds
    /// become one line. `;` in a name becomes `:`, and control characters except tabs become spaces. A root frame `# a`,
    /// which would be a comment, becomes `#_a`. If every stack ends in a name like `thread 12`, whose number would be
    /// read as a count, that number is put in brackets.
    pub fn write_folded(&self, out: impl Write, value: usize, annotate: bool) -> Result<()> {
        self.check_value(value)?;
        self.write_stacks(out, &[value], annotate)
    }

    /// Writes the first two values as differential folded text, `stack before after`.
    pub fn write_differential(&self, out: impl Write, annotate: bool) -> Result<()> {
        self.check_value(1)?;
        self.write_stacks(out, &[0, 1], annotate)
    }

    fn write_stacks(&self, out: impl Write, values: &[usize], annotate: bool) -> Result<()> {
        if annotate {
            self.write_lines(out, values)
        } else {
            self.without_kinds()?.write_lines(out, values)
        }
    }

    fn write_lines(&self, mut out: impl Write, values: &[usize]) -> Result<()> {
        let order = Order::of(self);
        let close = values.len() == 1 && self.seems_differential(&order, values);
        self.put_lines(&order, &mut out, values, close)?;
        out.flush()?;
        Ok(())
    }

    /// Whether a reader would see two counts on each line: every one ends like `thread 12 3`.
    fn seems_differential(&self, order: &Order, values: &[usize]) -> bool {
        let mut beginning = Beginning(Vec::new());
        // The error only says that the buffer is full.
        let _full = self.put_lines(order, &mut beginning, values, false);
        is_differential(&beginning.0, beginning.0.len() < HEAD_BYTES)
    }

    /// `close`: put numbers at the end of names in brackets.
    fn put_lines(
        &self,
        order: &Order,
        out: &mut impl Write,
        values: &[usize],
        close: bool,
    ) -> Result<()> {
        let (mut stack, mut ends) = (Vec::new(), Vec::new());
        for step in order.walk() {
            match step {
                Step::Enter(node) => {
                    ends.push(stack.len());
                    if node != ROOT {
                        let frame = self.tree.frame(node);
                        let start =
                            push_name(&mut stack, ends.len() > 2, self.frames.name_of(frame));
                        if is_comment(&stack) {
                            match stack.get_mut(1) {
                                Some(blank) => *blank = b'_',
                                None => stack.push(b'_'),
                            }
                        }
                        let suffix = frame.kind().suffix();
                        if close && suffix.is_empty() {
                            close_number(&mut stack, start);
                        }
                        stack.extend_from_slice(suffix.as_bytes());
                    }
                    let amounts = values
                        .iter()
                        .map(|&value| self.selves(value)[node as usize]);
                    if amounts.clone().any(|amount| amount != 0) {
                        out.write_all(&stack)?;
                        for amount in amounts {
                            write!(out, " {amount}")?;
                        }
                        out.write_all(b"\n")?;
                    }
                }
                Step::Leave(_) => stack.truncate(ends.pop().unwrap_or(0)),
            }
        }
        Ok(())
    }
}

/// The beginning of a text from which readers detect the format; writing more is an error.
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(HEAD_BYTES - self.0.len());
        self.0.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Appends a name to a stack; returns its position.
fn push_name(stack: &mut Vec<u8>, separate: bool, name: &str) -> usize {
    if separate {
        stack.push(b';');
    }
    let start = stack.len();
    // Characters that control terminals and have two bytes begin with c2.
    if name
        .bytes()
        .all(|byte| byte >= 0x20 && !matches!(byte, b';' | 0x7f | 0xc2))
    {
        stack.extend_from_slice(name.as_bytes());
        return start;
    }
    let mut bytes = [0; 4];
    for letter in name.chars() {
        let written = match letter {
            ';' => ':',
            '\t' => '\t',
            // Line ends and other control characters, which terminals or readers could interpret.
            other if other.is_control() => ' ',
            other => other,
        };
        stack.extend_from_slice(written.encode_utf8(&mut bytes).as_bytes());
    }
    start
}

/// Turns the name `thread 12` into `thread [12]`.
fn close_number(stack: &mut Vec<u8>, name: usize) {
    if let Some(line) = Line::of(&stack[name..]) {
        let number = name + line.stack.len() + 1;
        stack.insert(number, b'[');
        stack.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{read, ReadOptions};
    use crate::profile::ValueType;

    #[test]
    fn frames_cannot_break_a_line() {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        let names = ["a;b", "c\nd", "e\u{1b}[2J\0", "f\tg", "g\u{9b}2J\u{7f}é"];
        profile.add_stack(&names, &[1]).unwrap();
        let mut out = Vec::new();
        profile.write_folded(&mut out, 0, true).unwrap();
        assert_eq!(out, b"a:b;c d;e [2J ;f\tg;g 2J \xc3\xa9 1\n");
    }

    #[test]
    fn without_annotations_tiers_are_one_stack() {
        let profile = read(b"f_[0];g_[j] 1\nf_[j];g_[j] 2\n", &ReadOptions::default());
        let profile = profile.unwrap();
        let mut out = Vec::new();
        profile.write_folded(&mut out, 0, false).unwrap();
        assert_eq!(out, b"f;g 3\n");
    }
}
