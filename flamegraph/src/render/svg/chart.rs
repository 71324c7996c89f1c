//! Flame charts: stacks in the order of time, only neighbours merged.
//!
//! A [`Profile`](crate::Profile) has no order: equal stacks are one. So a chart is read directly from the text.

use std::io::{BufRead, BufReader, Read, Write};

use super::layout::{Bar, Bars, Visit};
use super::options::Options;
use super::page::Picture;
use crate::formats::folded;
use crate::formats::ReadOptions;
use crate::formats::{recognise, Format};
use crate::profile::{Bounded, Error, Frame, Frames, Kind, Limits, Result, ValueType};
use crate::source::{Input, HEAD_BYTES};

/// The stacks of a folded text in the order of its lines. Neighbours share frames from the root.
pub struct FlameChart {
    value: ValueType,
    frames: Frames,
    spans: Vec<Span>,
    total: i64,
    lines: folded::Tally,
}

/// A frame and its duration; parents come before their callees.
struct Span {
    frame: Frame,
    level: u32,
    start: i64,
    length: i64,
}

impl FlameChart {
    /// Reads folded text with one count a line; `reverse` reverses each stack.
    pub fn read(text: impl BufRead, reverse: bool, limits: &Limits) -> Result<FlameChart> {
        let bounded = Bounded::new(text, "bytes of folded text", limits.text_bytes);
        let mut chart = FlameChart {
            value: ValueType::samples(),
            frames: Frames::default(),
            spans: Vec::new(),
            total: 0,
            lines: folded::Tally::default(),
        };
        let mut open = Vec::new();
        for (number, line) in BufReader::new(bounded).split(b'\n').enumerate() {
            let line = line?;
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            // A byte order mark is no part of the first name.
            let marked = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 0);
            let line = marked.unwrap_or(line);
            if !line.is_empty() && !folded::is_comment(line) {
                let number = number as u64 + 1;
                let wrong = chart
                    .add_line(line, reverse, limits, &mut open)
                    .map_err(|error| error.at_line(number))?;
                chart.lines.count(number, wrong);
            }
        }
        Ok(chart)
    }

    /// Reads a file of folded text, compressed or not. Other formats lose the order of time.
    pub fn open(
        file: impl Read + Send,
        reverse: bool,
        options: &ReadOptions,
    ) -> Result<FlameChart> {
        let input = Input::stream(Box::new(BufReader::new(file)))?;
        let (format, text) = recognise(input, options)?;
        let whole = text.head().len() < HEAD_BYTES;
        if format != Format::Folded || folded::is_differential(text.head(), whole) {
            return Err(Error::Usage(
                "a flame chart needs folded text with one count a line, its lines in the order of time: \
                 what is read in another format is merged and has no order"
                    .to_string(),
            ));
        }
        options.check_for(format)?;
        let chart = FlameChart::read(text, reverse, &options.limits)?;
        chart.lines.check(options.format.is_some())?;
        Ok(chart)
    }

    /// The number of malformed lines, which were left out.
    pub fn malformed_lines(&self) -> u64 {
        self.lines.malformed
    }

    /// The sum of all counts.
    pub fn total(&self) -> i64 {
        self.total
    }

    /// Draws the chart as SVG. As in flamegraph.pl the last line is leftmost.
    pub fn write_svg(&self, out: impl Write, options: &Options) -> Result<()> {
        options.check()?;
        if self.total == 0 {
            let reason = "nothing to draw: no line has a count".to_string();
            return Err(Error::Empty(reason));
        }
        let mut picture = Picture::of(self, &self.value, options)?;
        picture.is_chart = true;
        picture.write(out)
    }

    /// Adds a line, or says what is wrong with its count. `open` has the spans of the previous line.
    fn add_line(
        &mut self,
        line: &[u8],
        reverse: bool,
        limits: &Limits,
        open: &mut Vec<usize>,
    ) -> Result<Option<folded::Wrong>> {
        let (stack, count) = match folded::split_count(line) {
            Ok((_, count)) if count.parts > 0 => return Ok(Some(folded::Wrong::Fraction)),
            Ok((stack, count)) => (stack, count.whole),
            Err(wrong) => return Ok(Some(wrong)),
        };
        let end = (self.total.checked_add(count))
            .ok_or_else(|| Error::Overflow(self.value.to_string()))?;
        let (mut forward, mut backward) = (stack.split(is_separator), stack.rsplit(is_separator));
        let names: &mut dyn Iterator<Item = &[u8]> =
            if reverse { &mut backward } else { &mut forward };
        let mut levels = 0;
        for name in names.take_while(|_| !stack.is_empty()) {
            let frame = self.frame(name, limits)?;
            let is_same = |&span: &usize| self.spans[span].frame == frame;
            if !open.get(levels).is_some_and(is_same) {
                open.truncate(levels);
                open.push(self.begin(frame, levels, limits)?);
            }
            self.spans[open[levels]].length += count;
            levels += 1;
        }
        open.truncate(levels);
        self.total = end;
        Ok(None)
    }

    fn frame(&mut self, name: &[u8], limits: &Limits) -> Result<Frame> {
        if name.len() > limits.name_bytes {
            return Err(Error::Limit {
                what: "bytes of a frame name",
                limit: limits.name_bytes as u64,
            });
        }
        self.frames.intern(name)
    }

    fn begin(&mut self, frame: Frame, level: usize, limits: &Limits) -> Result<usize> {
        if self.spans.len() >= limits.cells {
            return Err(Error::Limit {
                what: "frames of the flame chart",
                limit: limits.cells as u64,
            });
        }
        self.spans.push(Span {
            frame,
            level: level as u32 + 1,
            start: self.total,
            length: 0,
        });
        Ok(self.spans.len() - 1)
    }
}

impl Bars for FlameChart {
    fn total(&self) -> i64 {
        self.total
    }

    fn visit(&self, visitor: &mut dyn FnMut(&Bar<'_>) -> Result<Visit>) -> Result<()> {
        let bar = |name, kind, level, start, length| Bar {
            name,
            kind,
            level,
            start,
            length,
            sides: None,
        };
        visitor(&bar("", Kind::Plain, 0, 0, self.total))?;
        for span in &self.spans {
            let name = self.frames.name_of(span.frame);
            let start = self.total - span.start - span.length;
            visitor(&bar(
                name,
                span.frame.kind(),
                span.level,
                start,
                span.length,
            ))?;
        }
        Ok(())
    }
}

fn is_separator(byte: &u8) -> bool {
    *byte == b';'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str, reverse: bool) -> Vec<(String, u32, i64, i64)> {
        let chart = FlameChart::read(text.as_bytes(), reverse, &Limits::default()).unwrap();
        let mut bars = Vec::new();
        let look = &mut |bar: &Bar<'_>| {
            bars.push((bar.name.to_string(), bar.level, bar.start, bar.length));
            Ok(Visit::Above)
        };
        chart.visit(look).unwrap();
        bars
    }

    fn bar(name: &str, level: u32, start: i64, length: i64) -> (String, u32, i64, i64) {
        (name.to_string(), level, start, length)
    }

    #[test]
    fn only_neighbours_are_merged_and_the_last_line_stands_first() {
        assert_eq!(
            spans("a;b 1\na;c 2\nd 3\na;b 4\n", false),
            [
                bar("", 0, 0, 10),
                bar("a", 1, 7, 3),
                bar("b", 2, 9, 1),
                bar("c", 2, 7, 2),
                bar("d", 1, 4, 3),
                bar("a", 1, 0, 4),
                bar("b", 2, 0, 4)
            ]
        );
        assert_eq!(
            spans("a;b 1\r\nb 2\n\n", true),
            [bar("", 0, 0, 3), bar("b", 1, 0, 3), bar("a", 2, 2, 1)]
        );
        assert_eq!(
            spans("\u{feff}a 1\na 2\n", false),
            [bar("", 0, 0, 3), bar("a", 1, 0, 3)]
        );
    }

    #[test]
    fn malformed_lines_are_counted_and_limits_hold() {
        let chart = FlameChart::read(&b"a 1\nb\nc x\nd +1\n"[..], false, &Limits::default());
        assert_eq!(chart.unwrap().malformed_lines(), 3);
        let limits = Limits {
            cells: 1,
            ..Limits::default()
        };
        let error = FlameChart::read(&b"a 1\nb 1\n"[..], false, &limits)
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "folded text, line 2: frames of the flame chart: more than 1"
        );
        let text = format!("a {}\na 1\n", i64::MAX);
        let error = FlameChart::read(text.as_bytes(), false, &Limits::default())
            .err()
            .unwrap();
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn a_chart_of_nothing_says_so() {
        let chart = FlameChart::read(&b"a 0\n"[..], false, &Limits::default()).unwrap();
        let error = chart
            .write_svg(Vec::new(), &Options::default())
            .err()
            .unwrap();
        assert_eq!(error.to_string(), "nothing to draw: no line has a count");
    }
}
