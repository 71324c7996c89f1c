//! The parts around the frames: heading, buttons, line of details, and the legend of a difference.

use std::fmt::{self, Write as _};

use super::background::Background;
use super::change::{self, Change};
use super::options::Side;
use super::page::{Picture, PAD};
use super::palette::Rgb;
use super::text::Escaped;

const STYLE: &str = "text{fill:#000}#title{font-size:1.4em;text-anchor:middle}\
#subtitle{text-anchor:middle;fill:#555}#matched,#search{text-anchor:end}#legend text{fill:#333}\
.button{cursor:pointer;opacity:.55}.button:hover,.on{opacity:1}#frames{cursor:pointer}#frames text{pointer-events:none}\
#frames rect{rx:2px}#frames g:hover rect{stroke:#000;stroke-width:.5}.above{opacity:.5}.hide{display:none}";

/// Width of the legend's scale in pixels.
const SCALE: u32 = 120;
/// The fractions of the largest change at which the legend's scale has colours.
const STOPS: [f64; 9] = [-1.0, -0.5, -0.2, -0.05, 0.0, 0.05, 0.2, 0.5, 1.0];

/// Positions in pixels; the heights of lines of text are in proportion to the letters.
pub(super) struct Head<'a> {
    picture: &'a Picture<'a>,
    /// The size of the letters relative to the default.
    unit: f64,
    top: u32,
    height: u32,
    /// Width of a letter.
    pub(super) letter: f64,
    /// The distance from the top of a frame to the baseline of its name.
    pub(super) baseline: f64,
}

impl<'a> Head<'a> {
    pub(super) fn of(picture: &'a Picture<'a>) -> Head<'a> {
        let (font, row) = (&picture.options.font, picture.options.frame_height);
        let unit = font.size / 12.0;
        let lines = |pixels: f64| (pixels * unit).round() as u32;
        let legend = if picture.change.is_some() { 24.0 } else { 0.0 };
        let top = lines(58.0 + legend);
        Head {
            picture,
            unit,
            top,
            height: top + picture.levels * row + lines(40.0),
            letter: (font.size * font.width * 1e4).round() / 1e4,
            baseline: f64::from(row - 1) / 2.0 + font.size * 0.375,
        }
    }

    /// The top of the frames of a level.
    pub(super) fn row(&self, level: u32) -> u32 {
        let row = self.picture.options.frame_height;
        if self.picture.options.inverted {
            self.top + level * row
        } else {
            self.top + (self.picture.levels - level - 1) * row
        }
    }

    pub(super) fn put(&self, out: &mut String) -> fmt::Result {
        self.put_start(out)?;
        self.put_background(out)?;
        self.put_lines(out)?;
        if let Some(change) = &self.picture.change {
            self.put_legend(out, change)?;
        }
        out.push_str("<g id=\"frames\">\n");
        Ok(())
    }

    fn put_start(&self, out: &mut String) -> fmt::Result {
        let options = self.picture.options;
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{family}\" font-size=\"{size}\" data-total=\"{total}\" \
             data-inverted=\"{inverted}\" data-pad=\"{PAD}\" data-row=\"{row}\" data-baseline=\"{baseline}\" \
             data-letter=\"{letter}\" data-name-type=\"{name_type}\">",
            width = options.width,
            height = self.height,
            family = Escaped(&options.font.family),
            size = options.font.size,
            total = self.picture.total,
            inverted = u8::from(options.inverted),
            row = options.frame_height,
            baseline = self.baseline,
            letter = self.letter,
            name_type = Escaped(options.name_type.as_deref().unwrap_or("")),
        )?;
        writeln!(out, "<style>{STYLE}</style>")
    }

    fn put_background(&self, out: &mut String) -> fmt::Result {
        let options = self.picture.options;
        let background = options.background;
        let [first, last] = background.unwrap_or(Background::of(options.palette)).ends();
        let fill = if first == last {
            hex(first)
        } else {
            put_gradient(out, "background", true, &[(5.0, first), (95.0, last)])?;
            "url(#background)".to_string()
        };
        writeln!(
            out,
            "<rect width=\"100%\" height=\"100%\" fill=\"{fill}\"/>"
        )
    }

    /// Squeezes the letters of a line that is too long, because its end matters too.
    fn squeezed(&self, line: &str) -> String {
        let room = self.picture.options.width.saturating_sub(2 * PAD);
        let needed = line.chars().count() as f64 * self.letter;
        match needed > f64::from(room) {
            true => format!(" textLength=\"{room}\" lengthAdjust=\"spacingAndGlyphs\""),
            false => String::new(),
        }
    }

    fn put_lines(&self, out: &mut String) -> fmt::Result {
        let options = self.picture.options;
        let right = f64::from(options.width - PAD);
        writeln!(
            out,
            "<text id=\"title\" x=\"{middle}\" y=\"{first}\">{title}</text>\n\
             <text id=\"subtitle\" x=\"{middle}\" y=\"{second}\"{squeezed}>{subtitle}</text>\n\
             <text id=\"reset\" class=\"button hide\" x=\"{PAD}\" y=\"{first}\">Reset zoom</text>\n\
             <text id=\"search\" class=\"button\" x=\"{search}\" y=\"{first}\">Search</text>\n\
             <text id=\"case\" class=\"button\" x=\"{case}\" y=\"{first}\">ic</text>\n\
             <text id=\"details\" x=\"{PAD}\" y=\"{foot}\"> </text>\n\
             <text id=\"matched\" x=\"{right}\" y=\"{foot}\"> </text>",
            middle = options.width / 2,
            first = self.line(24.0),
            second = self.line(42.0),
            foot = self.height - self.line(14.0) as u32,
            search = right - self.line(26.0),
            case = right - self.line(14.0),
            title = Escaped(self.title()),
            squeezed = self.squeezed(&options.subtitle),
            subtitle = Escaped(&options.subtitle),
        )
    }

    fn line(&self, pixels: f64) -> f64 {
        (pixels * self.unit).round()
    }

    fn title(&self) -> &str {
        let options = self.picture.options;
        match &options.title {
            title if !title.is_empty() => title,
            _ if self.picture.is_chart => "Flame Chart",
            _ if self.picture.change.is_some() => "Differential Flame Graph",
            _ if options.inverted => "Icicle Graph",
            _ => "Flame Graph",
        }
    }

    /// The scale of colours, and the paths without width.
    fn put_legend(&self, out: &mut String, change: &Change) -> fmt::Result {
        let stops = STOPS.map(|part| ((part + 1.0) * 50.0, change::scale(part)));
        put_gradient(out, "scale", false, &stops)?;
        let (y, text) = (self.line(54.0), self.line(64.0));
        let most = self.picture.percent(change.most);
        let label = self.letter * (format!("-{most:.2}%").len() + 1) as f64;
        let scale = f64::from(PAD) + label;
        let behind = scale + f64::from(SCALE) + 0.6 * self.letter;
        writeln!(
            out,
            "<g id=\"legend\"><text x=\"{PAD}\" y=\"{text}\">-{most:.2}%</text>\
             <rect x=\"{scale:.1}\" y=\"{y}\" width=\"{SCALE}\" height=\"{height}\" fill=\"url(#scale)\"/>\
             <text x=\"{behind:.1}\" y=\"{text}\">+{most:.2}%</text>\
             <text id=\"unseen\" x=\"{told:.1}\" y=\"{text}\">",
            height = self.line(12.0),
            told = behind + label + self.letter,
        )?;
        self.put_unseen(out, change)?;
        out.push_str("</text></g>\n");
        Ok(())
    }

    /// `Vanished: 4.50% of before in 2 paths (old 4.00%, older 0.50%)`, and totals if they differ.
    fn put_unseen(&self, out: &mut String, change: &Change) -> fmt::Result {
        let [before, after] = change.totals;
        if before != after {
            out.push_str("Before: ");
            self.picture.amounts.put(out, before)?;
            out.push_str(", after: ");
            self.picture.amounts.put(out, after)?;
            out.push_str(". ");
        }
        let (word, of, whole) = match self.picture.options.width_from {
            Side::After => ("Vanished", "before", before),
            Side::Before => ("Appeared", "after", after),
        };
        let percent = |amount: i64| amount as f64 * 100.0 / (whole as f64).max(1.0);
        let unseen = &change.unseen;
        if unseen.count == 0 {
            return write!(out, "{word}: nothing");
        }
        let plural = if unseen.count == 1 { "" } else { "s" };
        let (share, count) = (percent(unseen.amount), unseen.count);
        write!(out, "{word}: {share:.2}% of {of} in {count} path{plural} (")?;
        for (index, (name, amount)) in unseen.largest.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(out, "{comma}{} {:.2}%", Escaped(name), percent(*amount))?;
        }
        let more = if count > unseen.largest.len() as u64 {
            ", ..."
        } else {
            ""
        };
        write!(out, "{more})")
    }
}

fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn put_gradient(out: &mut String, id: &str, down: bool, stops: &[(f64, Rgb)]) -> fmt::Result {
    let (x, y) = if down { (0, 1) } else { (1, 0) };
    write!(
        out,
        "<defs><linearGradient id=\"{id}\" x1=\"0\" y1=\"0\" x2=\"{x}\" y2=\"{y}\">"
    )?;
    for (offset, color) in stops {
        write!(
            out,
            "<stop offset=\"{offset}%\" stop-color=\"{}\"/>",
            hex(*color)
        )?;
    }
    out.push_str("</linearGradient></defs>\n");
    Ok(())
}
