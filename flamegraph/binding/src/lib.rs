//! The Python binding of flamegraph: `hprofiler._flamegraph`, described by `hprofiler/_flamegraph.pyi`.
//!
//! Work is done with the interpreter let go; a profile is shared by reference count, so that no lock
//! is held meanwhile. Errors become ValueError, and a panic an exception that `except Exception` sees.

mod profile;

use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Runs work without the interpreter, and turns its failures into Python's.
fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> flamegraph::Result<T> + Send,
) -> PyResult<T> {
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    match result {
        Ok(result) => result.map_err(value_error),
        Err(_) => Err(PyRuntimeError::new_err(
            "flamegraph failed inside; this is a bug in hprofiler",
        )),
    }
}

fn value_error(error: flamegraph::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymodule]
mod _flamegraph {
    #[pymodule_export]
    use crate::profile::{MeanMerger, Method, Profile};
}
