//! What a reader may be asked, as keywords; reading one file or many.

use std::io;

use flamegraph::{Error, ReadOptions, Threads};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{within_bounds, Source};
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
        "times" => options.times = value.extract()?,
        "cells" => options.limits.cells = value.extract()?,
        "rows" => options.limits.rows = value.extract()?,
        "bytes" => options.limits.pprof_bytes = value.extract()?,
        "pid" => perf.pid = value.extract()?,
        "tid" => perf.tid = value.extract()?,
        "kernel" => perf.kernel = value.extract()?,
        "jit" => perf.jit = value.extract()?,
        "addrs" => perf.addrs = value.extract()?,
        "event_filter" => perf.event_filter = value.extract()?,
        other => {
            return Err(PyTypeError::new_err(format!(
                "unknown keyword {other:?}; known are: format, threads, estimate, off_cpu, time, times, cells, rows, bytes, pid, tid, kernel, jit, addrs, event_filter"
            )));
        }
    }
    Ok(())
}

/// A span of seconds, or none.
fn time(value: &Bound<'_, PyAny>) -> PyResult<Option<(f64, f64)>> {
    let span: Option<(f64, f64)> = value.extract()?;
    match span {
        Some((from, to)) if from > to || from.is_nan() || to.is_nan() => {
            Err(PyValueError::new_err(format!(
                "time: from {from} to {to} seconds is not a time range"
            )))
        }
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
pub(crate) fn read(
    source: &Source,
    options: &ReadOptions,
) -> flamegraph::Result<flamegraph::Profile> {
    let file = source.file().map_err(Error::from);
    let profile = file.and_then(|file| flamegraph::read_file(file, options));
    profile.map_err(|error| of_source(source, error))
}

/// Reads files and merges each as it comes, on all processors.
pub(crate) fn read_all(
    sources: &[Source],
    options: &ReadOptions,
    mean: bool,
) -> flamegraph::Result<flamegraph::Profile> {
    let nothing = || Error::Usage("no file to open".to_string());
    if !mean {
        let read = |source: &Source| read(source, options);
        return flamegraph::read_all(sources, read, of_source)?.ok_or_else(nothing);
    }
    if sources.is_empty() {
        return Err(nothing());
    }
    flamegraph::read_mean(sources, |source| read(source, options), of_source)
}

/// The error with the name of the file.
pub(crate) fn of_source(source: &Source, error: Error) -> Error {
    let error = match error {
        Error::Io(error) => Error::Io(io::Error::other(words(&error))),
        other => other,
    };
    Error::File(source.name(), Box::new(error))
}
