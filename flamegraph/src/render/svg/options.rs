//! Options of a picture. The names and meanings are those of flamegraph.pl's options.

use std::str::FromStr;

use super::background::Background;
use super::palette::Palette;
use crate::profile::{Error, Result};

/// The look of a picture.
#[derive(Clone, Debug)]
pub struct Options {
    /// The heading; if empty, the kind of picture.
    pub title: String,
    /// A second line under it; empty for none.
    pub subtitle: String,
    /// Colours by flamegraph.pl's rules; `None` for our own.
    pub palette: Option<Palette>,
    /// The background; `None` for that of the palette.
    pub background: Option<Background>,
    /// Derive a frame's shade from the first letters of its name, as flamegraph.pl's `--hash` does, so that similar
    /// names look alike. Otherwise the whole name sets the shade.
    pub hash: bool,
    /// Width of the picture in pixels.
    pub width: u32,
    /// Height of a frame in pixels.
    pub frame_height: u32,
    /// Frames narrower than this are left out.
    pub min_width: MinWidth,
    /// The letters.
    pub font: Font,
    /// The name of the counts; by default the name of the value.
    pub count_name: Option<String>,
    /// The text before a frame's name in the line of details; by default nothing.
    pub name_type: Option<String>,
    /// The root on top (icicle) instead of at the bottom.
    pub inverted: bool,
    /// Reverse stacks: merge them from the leaves.
    pub reverse: bool,
    /// In a difference: growth is blue and shrinkage red.
    pub negate: bool,
    /// In a difference: the side that sets the widths.
    pub width_from: Side,
    /// The factor for the shown counts.
    pub factor: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            title: String::new(),
            subtitle: String::new(),
            palette: None,
            background: None,
            hash: false,
            width: 1200,
            frame_height: 16,
            min_width: MinWidth::Pixels(0.1),
            font: Font::default(),
            count_name: None,
            name_type: None,
            inverted: false,
            reverse: false,
            negate: false,
            width_from: Side::After,
            factor: 1.0,
        }
    }
}

/// The letters of a picture.
#[derive(Clone, Debug)]
pub struct Font {
    /// Its family, as CSS names it.
    pub family: String,
    /// Its size in pixels.
    pub size: f64,
    /// The width of a letter relative to the size, for cutting names to their frames.
    pub width: f64,
}

impl Default for Font {
    fn default() -> Font {
        Font {
            family: "Verdana,sans-serif".to_string(),
            size: 12.0,
            width: 0.59,
        }
    }
}

/// The least width of a frame that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinWidth {
    /// In pixels.
    Pixels(f64),
    /// In percent of the whole.
    Percent(f64),
}

impl FromStr for MinWidth {
    type Err = Error;

    /// `0.5` is pixels, `0.5%` is percent.
    fn from_str(text: &str) -> Result<MinWidth> {
        let (number, unit): (_, fn(f64) -> MinWidth) = match text.strip_suffix('%') {
            Some(number) => (number, MinWidth::Percent),
            None => (text, MinWidth::Pixels),
        };
        let number = number.parse().map_err(|_| {
            Error::Usage(format!(
                "minimum width {text:?}: it is a number of pixels, or of percent with a % behind it"
            ))
        })?;
        Ok(unit(number))
    }
}

/// A side of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The baseline.
    Before,
    /// The profile that is compared with the baseline.
    After,
}

impl FromStr for Side {
    type Err = Error;

    fn from_str(name: &str) -> Result<Side> {
        match name {
            "before" => Ok(Side::Before),
            "after" => Ok(Side::After),
            other => Err(Error::Usage(format!(
                "width from {other:?}: it is from before or after"
            ))),
        }
    }
}

impl Options {
    /// Checks the bounds of all options.
    pub(super) fn check(&self) -> Result<()> {
        let within = |what: &str, number: f64, least: f64, most: f64, unit: &str| {
            if (least..=most).contains(&number) {
                return Ok(());
            }
            Err(Error::Usage(format!(
                "{what} {number}: it is {least} to {most}{unit}"
            )))
        };
        within("width", self.width.into(), 300.0, 20_000.0, " pixels")?;
        within(
            "frame height",
            self.frame_height.into(),
            4.0,
            200.0,
            " pixels",
        )?;
        within("font size", self.font.size, 2.0, 100.0, " pixels")?;
        within("font width", self.font.width, 0.1, 2.0, " of the font size")?;
        match self.min_width {
            MinWidth::Pixels(width) => within("minimum width", width, 0.0, 100.0, " pixels")?,
            MinWidth::Percent(width) => within("minimum width", width, 0.0, 100.0, "%")?,
        }
        if !(self.factor.is_finite() && self.factor > 0.0) {
            return Err(Error::Usage(format!(
                "factor {}: it is above zero",
                self.factor
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_width_is_pixels_or_percent() {
        assert_eq!("0.5".parse::<MinWidth>().unwrap(), MinWidth::Pixels(0.5));
        assert_eq!("2%".parse::<MinWidth>().unwrap(), MinWidth::Percent(2.0));
        assert!("wide".parse::<MinWidth>().is_err());
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_the_bounds() {
        let refused = |options: Options| options.check().err().unwrap().to_string();
        let width = Options {
            width: 20,
            ..Options::default()
        };
        assert_eq!(refused(width), "width 20: it is 300 to 20000 pixels");
        let least = Options {
            min_width: MinWidth::Percent(f64::NAN),
            ..Options::default()
        };
        assert_eq!(refused(least), "minimum width NaN: it is 0 to 100%");
        let factor = Options {
            factor: 0.0,
            ..Options::default()
        };
        assert_eq!(refused(factor), "factor 0: it is above zero");
    }
}
