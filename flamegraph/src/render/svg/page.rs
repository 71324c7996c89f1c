//! The picture as SVG text: its head, frames one by one, its script.

use std::fmt::{self, Write as _};
use std::io::Write;

use super::change::Change;
use super::head::Head;
use super::layout::{Bar, Bars, Visit};
use super::options::{MinWidth, Options};
use super::paint;
use super::text::{fit, Amounts, Escaped};
use crate::profile::{Result, ValueType};

/// Space left and right of the frames, in pixels.
pub(super) const PAD: u32 = 10;
/// The label of the root.
const ROOT_NAME: &str = "all";
const BLOCK_BYTES: usize = 64 << 10;

const SCRIPT: &str = include_str!("script.js");

/// Everything that is known before the first frame is written.
pub(super) struct Picture<'a> {
    bars: &'a dyn Bars,
    pub(super) options: &'a Options,
    pub(super) amounts: Amounts<'a>,
    pub(super) change: Option<Change>,
    pub(super) is_chart: bool,
    /// The root's length.
    pub(super) total: i64,
    pub(super) levels: u32,
    /// Pixels for one unit.
    scale: f64,
    /// Shorter frames are not drawn.
    least: f64,
}

impl<'a> Picture<'a> {
    /// Measures the bars, whose root must not be empty.
    pub(super) fn of(
        bars: &'a dyn Bars,
        value: &'a ValueType,
        options: &'a Options,
    ) -> Result<Picture<'a>> {
        let total = bars.total();
        let scale = f64::from(options.width - 2 * PAD) / total as f64;
        let least = match options.min_width {
            MinWidth::Pixels(pixels) => pixels / scale,
            MinWidth::Percent(percent) => total as f64 * percent / 100.0,
        };
        let mut picture = Picture {
            bars,
            options,
            amounts: Amounts::of(value, false, options),
            change: None,
            is_chart: false,
            total,
            levels: 0,
            scale,
            least,
        };
        let mut levels = 0;
        picture.visit(&mut |bar| {
            levels = levels.max(bar.level + 1);
            Ok(())
        })?;
        picture.levels = levels;
        picture.change = Change::of(bars, options, &|bar| picture.is_drawn(bar))?;
        if picture.change.is_some() {
            picture.amounts = Amounts::of(value, true, options);
        }
        Ok(picture)
    }

    /// Writes the whole picture.
    pub(super) fn write(&self, mut out: impl Write) -> Result<()> {
        let head = Head::of(self);
        let mut block = String::new();
        // Writing to a String cannot fail.
        let _ = head.put(&mut block);
        self.visit(&mut |bar| {
            let _ = self.put_bar(&mut block, bar, &head);
            if block.len() >= BLOCK_BYTES {
                out.write_all(block.as_bytes())?;
                block.clear();
            }
            Ok(())
        })?;
        let _ = write!(
            block,
            "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n"
        );
        out.write_all(block.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// Visits the bars that are drawn.
    fn visit(&self, visitor: &mut dyn FnMut(&Bar<'_>) -> Result<()>) -> Result<()> {
        self.bars.visit(&mut |bar| {
            if !self.is_drawn(bar) {
                return Ok(Visit::Next);
            }
            visitor(bar)?;
            Ok(Visit::Above)
        })
    }

    fn is_drawn(&self, bar: &Bar<'_>) -> bool {
        bar.level == 0 || (bar.length > 0 && bar.length as f64 >= self.least)
    }

    fn put_bar(&self, out: &mut String, bar: &Bar<'_>, head: &Head<'_>) -> fmt::Result {
        let name = if bar.level == 0 { ROOT_NAME } else { bar.name };
        let (start, length) = (bar.start, bar.length);
        let x = f64::from(PAD) + start as f64 * self.scale;
        let width = length as f64 * self.scale;
        let y = head.row(bar.level);
        write!(
            out,
            "<g data-x=\"{start}\" data-w=\"{length}\"><title>{} (",
            Escaped(name)
        )?;
        self.put_details(out, bar)?;
        let (red, green, blue) = paint::color(bar, self.options, self.change.as_ref());
        write!(
            out,
            ")</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" \
             fill=\"#{red:02x}{green:02x}{blue:02x}\"/>",
            self.options.frame_height - 1,
        )?;
        let room = ((width - 6.0) / head.letter).max(0.0) as usize;
        let (shown, dots) = fit(name, room);
        if !shown.is_empty() {
            let (x, y) = (x + 3.0, f64::from(y) + head.baseline);
            write!(
                out,
                "<text x=\"{x:.2}\" y=\"{y}\">{}{dots}</text>",
                Escaped(shown)
            )?;
        }
        out.push_str("</g>\n");
        Ok(())
    }

    /// `1,234 samples, 5.67%`, and in a difference `; +0.89%`
    fn put_details(&self, out: &mut String, bar: &Bar<'_>) -> fmt::Result {
        self.amounts.put(out, bar.length)?;
        write!(out, ", {:.2}%", self.percent(bar.length))?;
        let (Some(change), Some(sides)) = (&self.change, bar.sides) else {
            return Ok(());
        };
        match change.shown(sides) {
            0 => out.push_str("; 0.00%"),
            delta => write!(out, "; {:+.2}%", self.percent(delta))?,
        }
        out.push_str(match sides {
            [0, _] => ", new",
            [_, 0] => ", gone",
            _ => "",
        });
        Ok(())
    }

    /// An amount as part of the whole.
    pub(super) fn percent(&self, amount: i64) -> f64 {
        amount as f64 * 100.0 / self.total as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_cannot_end_its_own_section() {
        assert!(!SCRIPT.contains("]]>"));
    }
}
