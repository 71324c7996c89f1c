//! What a reader may be asked, as keywords; reading one file or many.

use std::io;
use std::path::{Path, PathBuf};

use flamegraph::{Error, ReadOptions, Threads};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::within_bounds;
use crate::{value_error, words};

/// The options of a reader; an unknown keyword is an error that lists the known ones.
pub(crate) fn options(
    format: Option<&str>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<ReadOptions> {
    let format = format.map(str::parse).transpose().map_err(value_error)?;
    let mut options = ReadOptions::of(format);
    for (keyword, value) in keywords.into_iter().flatten() {
        let keyword: String = keyword.extract()?;
        set(&mut options, &keyword, &value)
            .map_err(|error| within_bounds(error, &keyword, &value))?;
    }
    Ok(options)
}

fn set(options: &mut ReadOptions, keyword: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let perf = &mut options.perf;
    match keyword {
        "threads" => options.threads = threads(value)?,
        "estimate" => options.estimate = value.extract()?,
        "off_cpu" => options.off_cpu = value.extract()?,
        "time" => options.time = time(value)?,
        "pid" => perf.pid = value.extract()?,
        "tid" => perf.tid = value.extract()?,
        "kernel" => perf.kernel = value.extract()?,
        "jit" => perf.jit = value.extract()?,
        "addrs" => perf.addrs = value.extract()?,
        "event_filter" => perf.event_filter = value.extract()?,
        other => {
            return Err(PyTypeError::new_err(format!(
                "unknown keyword {other:?}; known are: format, threads, estimate, off_cpu, time, pid, tid, kernel, jit, addrs, event_filter"
            )));
        }
    }
    Ok(())
}

/// A span of seconds, or none.
fn time(value: &Bound<'_, PyAny>) -> PyResult<Option<(f64, f64)>> {
    let span: Option<(f64, f64)> = value.extract()?;
    match span {
        Some((from, to)) if from > to || from.is_nan() || to.is_nan() => Err(
            PyValueError::new_err(format!("time: from {from} to {to} seconds is no span")),
        ),
        span => Ok(span),
    }
}

/// `False`, `True` (each thread) or `"groups"`.
fn threads(value: &Bound<'_, PyAny>) -> PyResult<Threads> {
    if let Ok(each) = value.extract::<bool>() {
        return Ok(if each { Threads::Each } else { Threads::Off });
    }
    match value.extract::<String>().as_deref() {
        Ok("groups") => Ok(Threads::Groups),
        _ => Err(PyTypeError::new_err(
            "threads: True, False and \"groups\" are known",
        )),
    }
}

/// Reads one file; its name is in the error.
pub(crate) fn read(path: &Path, options: &ReadOptions) -> flamegraph::Result<flamegraph::Profile> {
    flamegraph::read_path(path, options).map_err(|error| of_file(path, error))
}

/// Reads files and merges each as it comes; sums are made on all processors.
pub(crate) fn read_all(
    paths: &[PathBuf],
    options: &ReadOptions,
    mean: bool,
) -> flamegraph::Result<flamegraph::Profile> {
    let nothing = || Error::Usage("no file to open".to_string());
    if !mean {
        let read = |path: &Path| read(path, options);
        return flamegraph::read_all(paths, read, of_file)?.ok_or_else(nothing);
    }
    if paths.is_empty() {
        return Err(nothing());
    }
    flamegraph::read_mean(paths, |path: &Path| read(path, options), of_file)
}

fn of_file(path: &Path, error: Error) -> Error {
    let error = match error {
        Error::Io(error) => Error::Io(io::Error::other(words(&error))),
        other => other,
    };
    Error::File(path.display().to_string(), Box::new(error))
}
