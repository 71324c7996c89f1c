//! Flame graphs as self-contained SVG: their own script does zoom, search and details.
//!
//! Options have the names and meanings of flamegraph.pl's; the default is our own look. The picture is written as a
//! stream, so memory does not grow with it.

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
    /// A profile with exactly the values `before` and `after` is drawn as a difference: one of them sets the widths,
    /// the change of each total sets the colours. A profile without samples is an error.
    pub fn write_svg(&self, out: impl Write, value: usize, options: &Options) -> Result<()> {
        options.check()?;
        let drawn = match self.is_differential() {
            true => Drawn::Change(options.width_from),
            false => Drawn::Value(value),
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
        let layout = Layout::of(profile, drawn);
        Picture::of(&layout, &self.values()[value], options)?.write(out)
    }
}
