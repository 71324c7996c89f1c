//! Writing folded text.

use std::io::Write;

use crate::error::Result;
use crate::profile::Profile;
use crate::tree::ROOT;
use crate::walk::{Order, Step};

impl Profile {
    /// Writes one value as folded text, a line for each stack that has it, in name order.
    ///
    /// With `annotate` a frame's kind is written behind its name (`_[j]`); without, stacks that
    /// differ in kinds only become one line. What would break a line is written otherwise: `;` as
    /// `:`, line ends as a space.
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
        let (mut stack, mut ends) = (Vec::new(), Vec::new());
        for step in order.walk() {
            match step {
                Step::Enter(node) => {
                    ends.push(stack.len());
                    if node != ROOT {
                        let frame = self.tree.frame(node);
                        push_frame(
                            &mut stack,
                            ends.len() > 2,
                            self.frames.name_of(frame),
                            frame.kind().suffix(),
                        );
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
        out.flush()?;
        Ok(())
    }
}

fn push_frame(stack: &mut Vec<u8>, separate: bool, name: &str, suffix: &str) {
    if separate {
        stack.push(b';');
    }
    stack.extend(name.bytes().map(|byte| match byte {
        b';' => b':',
        b'\n' | b'\r' => b' ',
        other => other,
    }));
    stack.extend_from_slice(suffix.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folded;
    use crate::limits::Limits;
    use crate::values::ValueType;

    #[test]
    fn frames_cannot_break_a_line() {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        profile.add_stack(&["a;b", "c\nd"], &[1]).unwrap();
        let mut out = Vec::new();
        profile.write_folded(&mut out, 0, true).unwrap();
        assert_eq!(out, b"a:b;c d 1\n");
    }

    #[test]
    fn without_annotations_tiers_are_one_stack() {
        let profile = folded::read(
            &b"f_[0];g_[j] 1\nf_[j];g_[j] 2\n"[..],
            ValueType::samples(),
            &Limits::default(),
        )
        .unwrap();
        let mut out = Vec::new();
        profile.write_folded(&mut out, 0, false).unwrap();
        assert_eq!(out, b"f;g 3\n");
    }
}
