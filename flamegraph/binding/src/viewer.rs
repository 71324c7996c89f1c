//! The page's data.

use std::sync::{Mutex, PoisonError};

use flamegraph::ViewerWriter;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::{Number, Value};
use crate::detached;
use crate::output::to_bytes;
use crate::profile::Profile;

/// One call tree of many profiles; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct ViewerData {
    inner: Mutex<ViewerWriter>,
}

impl ViewerData {
    fn with<T>(&self, work: impl FnOnce(&mut ViewerWriter) -> T) -> T {
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl ViewerData {
    #[new]
    fn new() -> ViewerData {
        ViewerData {
            inner: Mutex::new(ViewerWriter::new()),
        }
    }

    #[pyo3(signature = (profile, value=Value::default()))]
    fn add(&self, py: Python<'_>, profile: &Profile, value: Value) -> PyResult<usize> {
        detached(py, || {
            let profile = profile.now();
            let value = value.of(&profile)?;
            self.with(|writer| writer.add(&profile, value))
        })
    }

    #[pyo3(signature = (profile, value=Value::default(), *, most=Number(20), keep_frames=false))]
    fn add_threads(
        &self,
        py: Python<'_>,
        profile: &Profile,
        value: Value,
        most: Number<usize>,
        keep_frames: bool,
    ) -> PyResult<Vec<(Option<String>, usize, u64)>> {
        let made = detached(py, || {
            let profile = profile.now();
            let value = value.of(&profile)?;
            self.with(|writer| writer.add_threads(&profile, value, most.0, keep_frames))
        })?;
        let made = made.into_iter();
        Ok(made.map(|one| (one.name, one.column, one.total)).collect())
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        to_bytes(py, |out| self.with(|writer| writer.finish(out)))
    }
}
