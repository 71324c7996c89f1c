//! The options of a picture, as keywords.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Write};
use std::path::PathBuf;

use flamegraph::svg::{FlameChart, MinWidth, Options, PaletteMap, Shades};
use flamegraph::{Error, Profile, WriteFormat};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::within_bounds;
use crate::output::{write_to, Target};
use crate::value_error;

/// The names of all keywords.
const KEYWORDS: &str = "title, subtitle, width, height, min_width, font_type, font_size, font_width, count_name, \
    name_type, colors, bgcolors, hash, random, palette_map, reverse, inverted, negate, width_from, notes, total, factor";

/// How a picture is to look, and the file in which its colours are kept.
pub(crate) struct Look {
    options: Options,
    palette: Option<(PathBuf, PaletteMap)>,
}

/// The least width as Python gives it: pixels, or text such as `0.5%`.
#[derive(FromPyObject)]
enum Width {
    Pixels(f64),
    Text(String),
}

impl Look {
    /// Reads the keywords; an unknown one is an error that lists the known ones.
    pub(crate) fn of(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Look> {
        let mut look = Look {
            options: Options::default(),
            palette: None,
        };
        for (keyword, value) in keywords.into_iter().flatten() {
            let keyword: String = keyword.extract()?;
            if !value.is_none() {
                let set = look.set(&keyword, &value);
                set.map_err(|error| within_bounds(error, &keyword, &value))?;
            }
        }
        Ok(look)
    }

    /// The same with this value drawn, and this title.
    pub(crate) fn with(mut self, value: usize, title: Option<&str>) -> Look {
        self.options.value = value;
        if let Some(title) = title {
            self.options.title = title.to_string();
        }
        self
    }

    fn set(&mut self, keyword: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let options = &mut self.options;
        match keyword {
            "title" => options.title = value.extract()?,
            "subtitle" => options.subtitle = value.extract()?,
            "width" => options.width = value.extract()?,
            "height" => options.frame_height = value.extract()?,
            "min_width" => options.min_width = min_width(value)?,
            "font_type" => options.font.family = value.extract()?,
            "font_size" => options.font.size = value.extract()?,
            "font_width" => options.font.width = value.extract()?,
            "count_name" => options.count_name = value.extract()?,
            "name_type" => options.name_type = value.extract()?,
            "colors" => options.palette = Some(parsed(value)?),
            "bgcolors" => options.background = Some(parsed(value)?),
            "hash" | "random" => self.set_shades(keyword, value.extract()?)?,
            "palette_map" => self.palette = Some(palette_map(value.extract()?)?),
            "reverse" => options.reverse = value.extract()?,
            "inverted" => options.inverted = value.extract()?,
            "negate" => options.negate = value.extract()?,
            "width_from" => options.width_from = parsed(value)?,
            "notes" => options.notes = value.extract()?,
            "total" => options.total = value.extract()?,
            "factor" => options.factor = value.extract()?,
            other => {
                let reason = format!("unknown keyword {other:?}; known are: {KEYWORDS}");
                return Err(PyTypeError::new_err(reason));
            }
        }
        Ok(())
    }

    fn set_shades(&mut self, keyword: &str, asked: bool) -> PyResult<()> {
        if !asked {
            return Ok(());
        }
        if self.options.shades != Shades::Name {
            let reason = "colors go by hash or are random, not both";
            return Err(PyValueError::new_err(reason));
        }
        self.options.shades = match keyword {
            "hash" => Shades::Hash,
            _ => Shades::Random,
        };
        Ok(())
    }

    /// Draws a profile; new names are remembered.
    pub(crate) fn draw(
        &mut self,
        profile: &Profile,
        out: &mut dyn Write,
    ) -> flamegraph::Result<()> {
        match &mut self.palette {
            Some((_, map)) => profile.write_svg_with(out, &self.options, map),
            None => profile.write_svg(out, &self.options),
        }
    }

    /// Draws a flame chart; new names are remembered.
    pub(crate) fn draw_chart(
        &mut self,
        chart: &FlameChart,
        out: &mut dyn Write,
    ) -> flamegraph::Result<()> {
        let map = self.palette.as_mut().map(|(_, map)| map);
        chart.write_svg(out, &self.options, map)
    }

    /// Writes the file of colours, if there is one.
    pub(crate) fn keep_palette(self, py: Python<'_>) -> PyResult<()> {
        match self.palette {
            Some((path, map)) => write_to(py, &Target::Path(path), |out| map.write(out)),
            None => Ok(()),
        }
    }
}

fn parsed<T: std::str::FromStr<Err = Error>>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    value.extract::<String>()?.parse().map_err(value_error)
}

fn min_width(value: &Bound<'_, PyAny>) -> PyResult<MinWidth> {
    match value.extract()? {
        Width::Pixels(pixels) => Ok(MinWidth::Pixels(pixels)),
        Width::Text(text) => text.parse().map_err(value_error),
    }
}

/// The map in a file; one that is not there is empty.
fn palette_map(path: PathBuf) -> PyResult<(PathBuf, PaletteMap)> {
    let map = match File::open(&path) {
        Ok(file) => PaletteMap::read(BufReader::new(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(PaletteMap::new()),
        Err(error) => Err(error.into()),
    };
    match map {
        Ok(map) => Ok((path, map)),
        Err(error) => Err(PyValueError::new_err(format!(
            "{}: {error}",
            path.display()
        ))),
    }
}

/// Refuses the options of a picture where none is drawn.
pub(crate) fn check_no_options(
    options: Option<&Bound<'_, PyDict>>,
    format: WriteFormat,
) -> PyResult<()> {
    match options {
        Some(options) if !options.is_empty() => {
            let (format, options) = (format.name(), options.keys());
            let reason = format!("{format} is not a picture format: it has no options {options}");
            Err(PyTypeError::new_err(reason))
        }
        _ => Ok(()),
    }
}
