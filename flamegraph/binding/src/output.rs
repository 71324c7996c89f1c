//! Writing to files, to whatever has a `write`, or into bytes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flamegraph::{Error, WriteFormat};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::{guarded, value_error, words};

/// A format that can be written: one of the library's, or the page, which Python makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Html,
    Library(WriteFormat),
}

const HTML: (&str, &str) = ("html", ".html");

impl Output {
    /// The format of this name, or the one that the file's name asks for.
    pub(crate) fn choose(name: Option<&str>, target: &Target) -> flamegraph::Result<Output> {
        let found = match (name, target) {
            (Some(name), _) if name == HTML.0 => Some(Output::Html),
            (Some(name), _) => WriteFormat::all()
                .find(|format| format.name() == name)
                .map(Output::Library),
            (None, Target::Path(path)) => Output::of_file_name(&path.to_string_lossy()),
            (None, Target::File(_)) => None,
        };
        found.ok_or_else(|| Error::Usage(unknown(name, target)))
    }

    fn of_file_name(name: &str) -> Option<Output> {
        if name.ends_with(HTML.1) {
            return Some(Output::Html);
        }
        WriteFormat::of_file_name(name).map(Output::Library)
    }
}

/// Every format that can be written, with the usual end of its files' names.
fn known() -> Vec<(&'static str, &'static str)> {
    let usual = |format: WriteFormat| format.endings().first().copied().unwrap_or_default();
    let library = WriteFormat::all().map(|format| (format.name(), usual(format)));
    library.chain([HTML]).collect()
}

/// The same as a dict for Python.
pub(crate) fn endings(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let endings = PyDict::new(py);
    for (name, ending) in known() {
        endings.set_item(name, ending)?;
    }
    Ok(endings)
}

fn unknown(name: Option<&str>, target: &Target) -> String {
    let asked = match (name, target) {
        (Some(name), _) => format!("unknown format {name:?}"),
        (None, Target::Path(path)) => {
            format!("{}: the name does not tell the format", path.display())
        }
        (None, Target::File(_)) => "the format must be named".to_string(),
    };
    let named = |(name, ending)| format!("{name} ({ending})");
    let known: Vec<String> = known().into_iter().map(named).collect();
    format!("{asked}; known are: {}", known.join(", "))
}

/// Only pprof has labels for each sample.
pub(crate) fn check_thread_label(thread_label: bool, output: Output) -> PyResult<()> {
    if !thread_label || output == Output::Library(WriteFormat::Pprof) {
        return Ok(());
    }
    let reason = "thread_label: only pprof has labels for each sample".to_string();
    Err(value_error(Error::Usage(reason)))
}

/// Where to write.
#[derive(FromPyObject)]
pub(crate) enum Target {
    /// A file: it appears whole or not at all.
    Path(PathBuf),
    /// An object with a `write` that takes bytes.
    File(Py<PyAny>),
}

impl Target {
    /// Writes the page, which the Python side makes: its files are there.
    pub(crate) fn write_page(
        &self,
        profile: &Bound<'_, PyAny>,
        title: Option<&str>,
    ) -> PyResult<()> {
        let Target::Path(path) = self else {
            let reason = "the page needs a path, not a file that is open".to_string();
            return Err(value_error(Error::Usage(reason)));
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let report = profile.py().import("hprofiler.report")?;
        let path = profile
            .py()
            .import("pathlib")?
            .call_method1("Path", (path,))?;
        report.call_method1("write_page", (profile, path, title.unwrap_or(&name)))?;
        Ok(())
    }
}

/// How much is written at once.
const BLOCK: usize = 256 << 10;

/// Lets `write` write to the target, without the interpreter.
pub(crate) fn write_to(
    py: Python<'_>,
    target: &Target,
    write: impl FnOnce(&mut dyn Write) -> flamegraph::Result<()> + Send,
) -> PyResult<()> {
    let result = match target {
        Target::Path(path) => guarded(py, || into_path(path, write))?,
        Target::File(file) => {
            let file = PyFile(file.clone_ref(py));
            guarded(py, || {
                let mut out = BufWriter::with_capacity(BLOCK, file);
                write(&mut out)?;
                Ok(out.flush()?)
            })?
        }
    };
    result.map_err(|error| match (error, target) {
        (Error::Io(error), Target::Path(path)) => os_error(&error, path),
        (Error::Io(error), Target::File(_)) => error.into(),
        (other, _) => value_error(other),
    })
}

/// Collects what `write` writes.
pub(crate) fn to_bytes<'py>(
    py: Python<'py>,
    write: impl FnOnce(&mut Vec<u8>) -> flamegraph::Result<()> + Send,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = crate::detached(py, || {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        Ok(bytes)
    })?;
    Ok(PyBytes::new(py, &bytes))
}

fn into_path(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> flamegraph::Result<()>,
) -> flamegraph::Result<()> {
    // What is there and no file (a pipe, a terminal) is written to, not replaced.
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let mut out = BufWriter::with_capacity(BLOCK, File::options().write(true).open(path)?);
        write(&mut out)?;
        return Ok(out.flush()?);
    }
    let part = part_of(path);
    let result = write_part(&part, write).and_then(|()| Ok(fs::rename(&part, path)?));
    if result.is_err() {
        // Best effort: the error at hand is the one to tell.
        let _ = fs::remove_file(&part);
    }
    result
}

fn write_part(
    part: &Path,
    write: impl FnOnce(&mut dyn Write) -> flamegraph::Result<()>,
) -> flamegraph::Result<()> {
    let file = File::options().write(true).create_new(true).open(part)?;
    flamegraph::write_by_thread(file, write).map(drop)
}

/// The name of the file until it is whole: beside it, so that it can be renamed.
fn part_of(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-{number}.part", std::process::id()));
    path.with_file_name(name)
}

fn os_error(error: &io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, words(error), path.to_path_buf())),
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// A Python object with a `write`.
struct PyFile(Py<PyAny>);

impl Write for PyFile {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            self.0
                .call_method1(py, "write", (PyBytes::new(py, block),))?;
            Ok(block.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
