//! Writing to files, to whatever has a `write`, or into bytes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flamegraph::svg::Options;
use flamegraph::{Error, Profile};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{guarded, value_error};

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Folded,
    Svg,
    Html,
    Pprof,
}

/// Every format: what it is called, and the ends of file names that mean it. Longer ends stand first.
const OUTPUTS: &[(Output, &str, &[&str])] = &[
    (Output::Folded, "folded", &[".folded"]),
    (Output::Svg, "svg", &[".svg"]),
    (Output::Html, "html", &[".html"]),
    (Output::Pprof, "pprof", &[".pb.gz"]),
];

impl Output {
    /// The format of this name, or the one that the file's name asks for.
    pub(crate) fn choose(name: Option<&str>, target: &Target) -> flamegraph::Result<Output> {
        let found = match (name, target) {
            (Some(name), _) => OUTPUTS.iter().find(|(_, known, _)| *known == name),
            (None, Target::Path(path)) => {
                let file = path.to_string_lossy();
                let means = |ends: &&[&str]| ends.iter().any(|end| file.ends_with(end));
                OUTPUTS.iter().find(|(_, _, ends)| means(ends))
            }
            (None, Target::File(_)) => None,
        };
        found.map(|(output, ..)| *output).ok_or_else(|| {
            let names: Vec<_> = OUTPUTS
                .iter()
                .map(|(_, name, ends)| format!("{name} ({})", ends.join(" ")))
                .collect();
            let names = names.join(", ");
            Error::Usage(match (name, target) {
                (Some(name), _) => format!("unknown format {name:?}; known are: {names}"),
                (None, Target::Path(path)) => {
                    format!(
                        "no format is known for {}; known are: {names}",
                        path.display()
                    )
                }
                (None, Target::File(_)) => format!("which format? known are: {names}"),
            })
        })
    }
}

impl Output {
    /// Writes one value, or all where the format has room for them. `Html` is not written here.
    pub(crate) fn write(
        self,
        profile: &Profile,
        out: &mut dyn Write,
        value: usize,
        title: Option<&str>,
    ) -> flamegraph::Result<()> {
        match self {
            Output::Folded => profile.write_folded(out, value, true),
            Output::Svg => profile.write_svg(out, &picture(value, title)),
            Output::Pprof => profile.write_pprof(out),
            Output::Html => Err(Error::Usage(
                "the page is made by hprofiler.report".to_string(),
            )),
        }
    }
}

fn picture(value: usize, title: Option<&str>) -> Options {
    let mut options = Options {
        value,
        ..Options::default()
    };
    if let Some(title) = title {
        options.title = title.to_string();
    }
    options
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
    let mut out = BufWriter::with_capacity(
        BLOCK,
        File::options().write(true).create_new(true).open(part)?,
    );
    write(&mut out)?;
    Ok(out.flush()?)
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
        Some(number) => {
            // The system's words, without the number that Rust puts behind them.
            let text = error.to_string();
            let words = text.split(" (os error").next().unwrap_or(&text).to_string();
            PyOSError::new_err((number, words, path.to_path_buf()))
        }
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
