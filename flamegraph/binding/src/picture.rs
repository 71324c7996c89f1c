//! The options of a picture, as keywords.

use flamegraph::svg::{MinWidth, Options};
use flamegraph::{Error, WriteFormat};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::within_bounds;
use crate::value_error;

/// The names of all keywords.
const KEYWORDS: &str =
    "title, subtitle, width, height, min_width, font_type, font_size, font_width, count_name, \
    name_type, colors, bgcolors, hash, reverse, inverted, negate, width_from, factor";

/// The least width as Python gives it: pixels, or text such as `0.5%`.
#[derive(FromPyObject)]
enum Width {
    Pixels(f64),
    Text(String),
}

/// Reads the keywords; an unknown one is an error that lists the known ones.
pub(crate) fn look(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::default();
    for (keyword, value) in keywords.into_iter().flatten() {
        let keyword: String = keyword.extract()?;
        if !value.is_none() {
            let set = set(&mut options, &keyword, &value);
            set.map_err(|error| within_bounds(error, &keyword, &value))?;
        }
    }
    Ok(options)
}

fn set(options: &mut Options, keyword: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
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
        "hash" => options.hash = value.extract()?,
        "reverse" => options.reverse = value.extract()?,
        "inverted" => options.inverted = value.extract()?,
        "negate" => options.negate = value.extract()?,
        "width_from" => options.width_from = parsed(value)?,
        "factor" => options.factor = value.extract()?,
        other => {
            let reason = format!("unknown keyword {other:?}; known are: {KEYWORDS}");
            return Err(PyTypeError::new_err(reason));
        }
    }
    Ok(())
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

/// Refuses the options of a picture where none is drawn.
pub(crate) fn check_no_options(
    options: Option<&Bound<'_, PyDict>>,
    format: WriteFormat,
) -> PyResult<()> {
    match options {
        Some(options) if !options.is_empty() && format != WriteFormat::Svg => {
            let (format, options) = (format.name(), options.keys());
            let reason = format!("{format} is not a picture format: it has no options {options}");
            Err(PyTypeError::new_err(reason))
        }
        _ => Ok(()),
    }
}
