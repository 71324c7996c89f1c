//! The Python binding of flamegraph: `hprofiler._flamegraph`, described by `hprofiler/_flamegraph.pyi`.
//!
//! Work is done with the interpreter let go; a profile is shared by reference count, so that no lock
//! is held meanwhile. Errors become ValueError, and a panic an exception that `except Exception` sees.

mod arguments;
mod diff;
mod flame_chart;
mod merging;
mod outliers;
mod output;
mod pandas;
mod picture;
mod profile;
mod reading;
mod stack_table;
mod sure_callers;
mod tables;
mod thread_dumps;
mod times;
mod viewer;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    hprofiler._flamegraph,
    OptionError,
    PyValueError,
    "What was asked for makes no sense, or is not in this profile; the message says what there is."
);

/// Runs work without the interpreter, and turns its failures into Python's.
fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> flamegraph::Result<T> + Send,
) -> PyResult<T> {
    guarded(py, work)?.map_err(value_error)
}

/// Runs work without the interpreter; a panic, and nothing else, is an exception.
fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)))
        .map_err(|_| {
            PyRuntimeError::new_err("flamegraph failed inside; this is a bug in hprofiler")
        })
}

/// What the threads of Python share, one at a time. A panic in one keeps no other out.
struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    fn new(value: T) -> Locked<T> {
        Locked(Mutex::new(value))
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A ValueError or OptionError with the attribute `code`.
fn value_error(error: flamegraph::Error) -> PyErr {
    let text = error.to_string();
    let raised = if error.is_usage() {
        OptionError::new_err(text)
    } else {
        PyValueError::new_err(text)
    };
    Python::attach(|py| raised.value(py).setattr("code", error.code()))
        .map_or_else(|failed| failed, |()| raised)
}

/// The system's words for what went wrong, without the number that Rust puts behind them.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(_) => text.split(" (os error").next().unwrap_or(&text).to_string(),
        None => text,
    }
}

#[pymodule]
mod _flamegraph {
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    #[pymodule_export]
    use crate::diff::Diff;
    #[pymodule_export]
    use crate::flame_chart::FlameChart;
    #[pymodule_export]
    use crate::merging::MeanMerger;
    #[pymodule_export]
    use crate::outliers::{Difference, Distance, Outliers};
    #[pymodule_export]
    use crate::profile::Profile;
    #[pymodule_export]
    use crate::stack_table::{MethodSums, StackTable, WorkTable};
    #[pymodule_export]
    use crate::sure_callers::SureCallers;
    #[pymodule_export]
    use crate::tables::{Change, Method, Node, Stack};
    #[pymodule_export]
    use crate::thread_dumps::{DumpedThread, ThreadDumps, ThreadGroup};
    #[pymodule_export]
    use crate::times::Times;
    #[pymodule_export]
    use crate::viewer::ViewerData;

    /// The category of a frame by its name; None if it has none.
    #[pyfunction]
    fn frame_category(name: &str) -> Option<&'static str> {
        flamegraph::frame_category(name)
    }

    /// What a category is called.
    #[pyfunction]
    fn category_label(category: &str) -> &str {
        flamegraph::category_label(category)
    }

    /// A category's patterns, as regular expressions.
    #[pyfunction]
    fn category_patterns(category: &str) -> Vec<String> {
        flamegraph::category_patterns(category)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("OptionError", py.get_type::<crate::OptionError>())?;
        let readable = flamegraph::Format::all().map(flamegraph::Format::name);
        let readable: Vec<&str> = readable.collect();
        module.add("READ_FORMATS", PyTuple::new(py, readable)?)?;
        module.add("BROKEN_STACKS", flamegraph::BROKEN_STACKS)?;
        let doing = flamegraph::DOING.iter();
        let doing = doing.map(|(code, words)| (*code, words[0], words[1], words[2]));
        module.add("DOING", PyTuple::new(py, doing.collect::<Vec<_>>())?)?;
        let kinds = flamegraph::DOING_KINDS.iter();
        let kinds = kinds.map(|(code, words)| (*code, words[0]));
        module.add("DOING_KINDS", PyTuple::new(py, kinds.collect::<Vec<_>>())?)?;
        module.add("WRITE_FORMATS", crate::output::endings(py)?)
    }
}
