//! The SVG text: head, frames one by one, script.

use std::fmt::{self, Write as _};
use std::io::Write;

use super::layout::{Bar, Layout, PAD};
use super::palette::Rgb;
use super::Options;
use crate::error::Result;
use crate::profile::Profile;
use crate::tree::ROOT;
use crate::values::ValueType;

const ROW: u32 = 16;
const FONT: u32 = 12;
/// Width of a letter of the font, as a part of its size.
const LETTER: f64 = 0.59;
const TOP: u32 = 58;
const BOTTOM: u32 = 40;
/// What the root is called.
const ROOT_NAME: &str = "all";
const ROOT_COLOR: Rgb = (205, 205, 208);
const BLOCK_BYTES: usize = 64 << 10;

const STYLE: &str = "text{font-family:Verdana,sans-serif;font-size:12px;fill:#000}\
#title{font-size:17px;text-anchor:middle}#subtitle{text-anchor:middle;fill:#555}#matched,#search{text-anchor:end}\
.button{cursor:pointer;opacity:.55}.button:hover,.on{opacity:1}#frames{cursor:pointer}#frames text{pointer-events:none}\
#frames rect{rx:2px}#frames g:hover rect{stroke:#000;stroke-width:.5}.above{opacity:.5}.hide{display:none}";

const SCRIPT: &str = include_str!("script.js");

/// Writes the whole picture.
pub(super) fn write(
    mut out: impl Write,
    profile: &Profile,
    layout: &Layout,
    options: &Options,
) -> Result<()> {
    let page = Page {
        profile,
        layout,
        options,
        height: TOP + layout.levels * ROW + BOTTOM,
    };
    let mut block = String::new();
    // Writing to a String cannot fail; what can is the writer below.
    let _ = page.put_head(&mut block);
    for bar in &layout.bars {
        let _ = page.put_bar(&mut block, bar);
        if block.len() >= BLOCK_BYTES {
            out.write_all(block.as_bytes())?;
            block.clear();
        }
    }
    let _ = write!(
        block,
        "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n"
    );
    out.write_all(block.as_bytes())?;
    out.flush()?;
    Ok(())
}

struct Page<'a> {
    profile: &'a Profile,
    layout: &'a Layout,
    options: &'a Options,
    height: u32,
}

impl Page<'_> {
    fn put_head(&self, out: &mut String) -> fmt::Result {
        let (width, height, middle, right) = (
            self.options.width,
            self.height,
            self.options.width / 2,
            self.options.width - PAD,
        );
        let inverted = u8::from(self.options.inverted);
        let (title, subtitle) = (
            Escaped(&self.options.title),
            Escaped(&self.options.subtitle),
        );
        let foot = height - 14;
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" data-total=\"{total}\" data-inverted=\"{inverted}\" \
             data-pad=\"{PAD}\" data-row=\"{ROW}\" data-letter=\"{letter}\">\n\
             <style>{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fbfaf5\"/>\n\
             <text id=\"title\" x=\"{middle}\" y=\"24\">{title}</text>\n\
             <text id=\"subtitle\" x=\"{middle}\" y=\"42\">{subtitle}</text>\n\
             <text id=\"reset\" class=\"button hide\" x=\"{PAD}\" y=\"24\">Reset zoom</text>\n\
             <text id=\"search\" class=\"button\" x=\"{case}\" y=\"24\">Search</text>\n\
             <text id=\"case\" class=\"button\" x=\"{icon}\" y=\"24\">ic</text>\n\
             <text id=\"details\" x=\"{PAD}\" y=\"{foot}\"> </text>\n\
             <text id=\"matched\" x=\"{right}\" y=\"{foot}\"> </text>\n\
             <g id=\"frames\">",
            total = self.layout.total,
            letter = f64::from(FONT) * LETTER,
            case = right - 26,
            icon = right - 14,
        )
    }

    fn put_bar(&self, out: &mut String, bar: &Bar) -> fmt::Result {
        let (name, (red, green, blue)) = self.name_and_color(bar);
        let x = f64::from(PAD) + bar.start as f64 * self.layout.scale;
        let width = bar.length as f64 * self.layout.scale;
        let y = self.y_of(bar.level);
        write!(
            out,
            "<g data-x=\"{}\" data-w=\"{}\"><title>{} (",
            bar.start,
            bar.length,
            Escaped(name)
        )?;
        self.put_amount(out, bar.length)?;
        write!(
            out,
            ")</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" \
             fill=\"#{red:02x}{green:02x}{blue:02x}\"/>",
            ROW - 1,
        )?;
        let shown = fit(name, width);
        if !shown.is_empty() {
            let (x, y) = (x + 3.0, y + ROW - 4);
            write!(
                out,
                "<text x=\"{x:.2}\" y=\"{y}\">{}</text>",
                Escaped(&shown)
            )?;
        }
        out.push_str("</g>\n");
        Ok(())
    }

    fn name_and_color(&self, bar: &Bar) -> (&str, Rgb) {
        if bar.node == ROOT {
            return (ROOT_NAME, ROOT_COLOR);
        }
        let frame = self.profile.tree.frame(bar.node);
        let name = self.profile.frames.name_of(frame);
        (name, self.options.palette.color(name, frame.kind()))
    }

    fn y_of(&self, level: u32) -> u32 {
        if self.options.inverted {
            TOP + level * ROW
        } else {
            self.height - BOTTOM - (level + 1) * ROW
        }
    }

    /// `1,234 samples, 5.67%`
    fn put_amount(&self, out: &mut String, length: i64) -> fmt::Result {
        let value = &self.profile.values()[self.options.value];
        let percent = length as f64 * 100.0 / self.layout.total as f64;
        put_quantity(out, length, value)?;
        match &self.options.count_name {
            // The script takes the name off at the last parenthesis of the details.
            Some(name) => write!(out, " {}", Escaped(&name.replace('(', "[")))?,
            None => write!(out, " {}", Escaped(&value.name.replace('(', "[")))?,
        }
        write!(out, ", {percent:.2}%")
    }
}

/// Nanoseconds as seconds, everything else as the number it is.
fn put_quantity(out: &mut String, quantity: i64, value: &ValueType) -> fmt::Result {
    if value.unit == "nanoseconds" {
        return write!(out, "{:.3} s", quantity as f64 / 1e9);
    }
    let digits = quantity.to_string();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if value.unit != "count" {
        write!(out, " {}", Escaped(&value.unit.replace('(', "[")))?;
    }
    Ok(())
}

/// As much of a name as a frame of this width can show.
fn fit(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / (f64::from(FONT) * LETTER)).max(0.0) as usize;
    if room < 3 {
        return String::new();
    }
    if name.chars().count() <= room {
        return name.to_string();
    }
    name.chars().take(room - 2).chain("..".chars()).collect()
}

/// Text as it may stand in an element or an attribute: markup is written as references, and characters
/// XML does not know as U+FFFD.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER)?,
                control if control.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_through_as_markup() {
        let escaped = Escaped("</title><script>\"'&]]>\u{0}\u{1b}\u{fffe}é").to_string();
        assert_eq!(
            escaped,
            "&lt;/title&gt;&lt;script&gt;&quot;&#39;&amp;]]&gt;\u{fffd}\u{fffd}\u{fffd}é"
        );
    }

    #[test]
    fn names_are_cut_to_their_frame() {
        assert_eq!(fit("java/util/HashMap.get", 200.0), "java/util/HashMap.get");
        assert_eq!(fit("java/util/HashMap.get", 60.0), "java/..");
        assert_eq!(fit("éééééééé", 40.0), "éé..");
        assert_eq!(fit("f", 10.0), "");
    }

    #[test]
    fn quantities_are_readable() {
        let show = |quantity, name: &str, unit: &str| {
            let mut out = String::new();
            put_quantity(&mut out, quantity, &ValueType::new(name, unit)).unwrap();
            out
        };
        assert_eq!(show(1_234_567, "samples", "count"), "1,234,567");
        assert_eq!(show(123, "samples", "count"), "123");
        assert_eq!(show(1_500_000_000, "cpu", "nanoseconds"), "1.500 s");
        assert_eq!(show(4096, "alloc", "bytes"), "4,096 bytes");
    }

    #[test]
    fn the_script_cannot_end_its_own_section() {
        assert!(!SCRIPT.contains("]]>"));
    }
}
