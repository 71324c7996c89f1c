//! The flame graph as an SVG that needs nothing else: zoom, search and details are in its own script.

mod layout;
mod page;
mod palette;

pub use palette::Palette;

use std::io::Write;

use crate::error::{Error, Result};
use crate::profile::Profile;
use layout::Layout;

/// How a picture is to look.
#[derive(Clone, Debug)]
pub struct Options {
    /// The heading.
    pub title: String,
    /// A second line under it; empty for none.
    pub subtitle: String,
    /// Which value makes the widths.
    pub value: usize,
    /// Which colours.
    pub palette: Palette,
    /// Width of the picture in pixels.
    pub width: u32,
    /// The root on top (icicle) instead of at the bottom.
    pub inverted: bool,
    /// Frames narrower than this, in pixels, are left out.
    pub min_width: f64,
    /// One frame for a method whatever tiers it ran in.
    pub merge_tiers: bool,
    /// What the counts are called; by default the name of the value.
    pub count_name: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            title: "Flame Graph".to_string(),
            subtitle: String::new(),
            value: 0,
            palette: Palette::Java,
            width: 1200,
            inverted: false,
            min_width: 0.1,
            merge_tiers: true,
            count_name: None,
        }
    }
}

impl Options {
    fn check(&self) -> Result<()> {
        if !(300..=20_000).contains(&self.width) {
            return Err(Error::Usage(format!(
                "width {}: a picture is 300 to 20000 pixels wide",
                self.width
            )));
        }
        if !(0.0..=100.0).contains(&self.min_width) {
            return Err(Error::Usage(format!(
                "minimum width {}: it is 0 to 100 pixels",
                self.min_width
            )));
        }
        Ok(())
    }
}

impl Profile {
    /// Draws one value as SVG, the same bytes for the same profile. Without samples there is nothing to
    /// draw, which is an error that says so.
    pub fn write_svg(&self, out: impl Write, options: &Options) -> Result<()> {
        options.check()?;
        if self.total(options.value)? == 0 {
            let value = &self.values()[options.value];
            return Err(Error::Empty(format!(
                "nothing to draw: the profile has no samples of {value}"
            )));
        }
        if options.merge_tiers {
            let merged = self.with_tiers_merged(&[options.value])?;
            page::write(out, &merged, &Layout::of(&merged, options), options)
        } else {
            page::write(out, self, &Layout::of(self, options), options)
        }
    }
}
