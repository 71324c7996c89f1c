//! The flame graph as an SVG that needs nothing else: zoom, search and details are in its own script.
//!
//! Options carry the names and meanings of flamegraph.pl's; without any the picture has our own look. It is
//! written as a stream: nothing here grows with the picture.

mod background;
mod change;
mod chart;
mod head;
mod layout;
mod options;
mod page;
mod paint;
mod palette;
mod shade;
mod text;

pub use background::Background;
pub use chart::FlameChart;
pub use options::{Font, MinWidth, Options, Side};
pub use palette::Palette;

use std::io::Write;

use crate::profile::{Error, Profile, Result};
use layout::{Drawn, Layout};
use page::Picture;

impl Profile {
    /// Draws one value as SVG, the same bytes for the same profile.
    ///
    /// A profile of exactly the values `before` and `after` is drawn as a difference: one of them makes the
    /// widths, the change of each total the colours. Without samples there is nothing to draw, which is an
    /// error that says so.
    pub fn write_svg(&self, out: impl Write, options: &Options) -> Result<()> {
        options.check()?;
        let drawn = match self.is_differential() {
            true => Drawn::Change(options.width_from),
            false => Drawn::Value(options.value),
        };
        let value = match drawn {
            Drawn::Value(value) => value,
            Drawn::Change(side) => side as usize,
        };
        if self.total(value)? == 0 {
            let value = &self.values()[value];
            return Err(Error::Empty(format!(
                "nothing to draw: the profile has no samples of {value}"
            )));
        }
        let reversed = options.reverse.then(|| self.inverted()).transpose()?;
        let profile = reversed.as_ref().unwrap_or(self);
        let layout = Layout::of(profile, drawn, options.merge_tiers);
        Picture::of(&layout, &self.values()[value], options)?.write(out)
    }
}
