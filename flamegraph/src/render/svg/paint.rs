//! The colour of each bar.

use super::bars::Bar;
use super::change::Change;
use super::options::Options;
use super::ours;
use super::palette::{Palette, Rgb};
use super::palette_map::PaletteMap;
use super::shade::Shader;
use crate::ops::smaller_frames;

const ROOT: Rgb = (205, 205, 208);
/// What stands for frames that were left out.
const REMAINDER: Rgb = (190, 190, 194);
/// The frames `-` and `--`, by which flamegraph.pl's users part stacks.
const SEPARATOR: Rgb = (200, 200, 200);
const STRONG_SEPARATOR: Rgb = (160, 160, 160);

/// Gives bars their colours.
pub(super) struct Paint<'a> {
    palette: Option<Palette>,
    shader: Shader,
    map: Option<&'a mut PaletteMap>,
    annotated: String,
}

impl<'a> Paint<'a> {
    pub(super) fn new(options: &Options, map: Option<&'a mut PaletteMap>) -> Paint<'a> {
        Paint {
            palette: options.palette,
            shader: Shader::new(options.shades),
            map,
            annotated: String::new(),
        }
    }

    pub(super) fn color(&mut self, bar: &Bar<'_>, change: Option<&Change>) -> Rgb {
        match bar.name {
            _ if bar.level == 0 => return ROOT,
            "--" => return STRONG_SEPARATOR,
            "-" => return SEPARATOR,
            name if smaller_frames(name).is_some() => return REMAINDER,
            _ => {}
        }
        if let (Some(change), Some(sides)) = (change, bar.sides) {
            return change.color(sides);
        }
        self.annotated.clear();
        self.annotated.push_str(bar.name);
        self.annotated.push_str(bar.kind.suffix());
        let (palette, shader, annotated) = (self.palette, &self.shader, &self.annotated);
        let fresh = || {
            let shade = shader.shade(bar.name, annotated);
            match palette {
                Some(palette) => palette.color(bar.name, bar.kind, shade),
                None => ours::color(bar.name, bar.kind, shade[0]),
            }
        };
        match &mut self.map {
            Some(map) => map.color(annotated, fresh),
            None => fresh(),
        }
    }
}
