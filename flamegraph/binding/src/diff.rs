//! The difference of two profiles as Python sees it.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::profile::Profile;
use crate::tables::{Change, DiffNode};
use crate::{detached, value_error};

/// A difference; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct Diff {
    inner: flamegraph::Diff,
}

impl Diff {
    pub(crate) fn new(inner: flamegraph::Diff) -> Diff {
        Diff { inner }
    }
}

#[pymethods]
impl Diff {
    #[getter]
    fn normalized(&self) -> bool {
        self.inner.is_normalized()
    }

    #[getter]
    fn before_total(&self) -> i64 {
        self.inner.before_total()
    }

    #[getter]
    fn after_total(&self) -> PyResult<i64> {
        let after = self.inner.tree().total(flamegraph::Diff::AFTER);
        after.map_err(value_error)
    }

    #[getter]
    fn profile(&self, py: Python<'_>) -> PyResult<Profile> {
        detached(py, || Ok(self.inner.tree().clone())).map(Profile::new)
    }

    #[pyo3(signature = (limit=20))]
    fn changes(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<Change>> {
        rows(py, detached(py, || self.inner.changes(limit))?)
    }

    #[pyo3(signature = (limit=20))]
    fn appeared(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<Change>> {
        rows(py, detached(py, || Ok(self.inner.appeared(limit)))?)
    }

    #[pyo3(signature = (limit=20))]
    fn vanished(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<Change>> {
        rows(py, detached(py, || Ok(self.inner.vanished(limit)))?)
    }

    fn nodes(&self) -> Vec<DiffNode> {
        self.inner.nodes().map(DiffNode::from).collect()
    }

    #[pyo3(signature = (annotate=true))]
    fn to_folded<'py>(&self, py: Python<'py>, annotate: bool) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, || {
            let mut bytes = Vec::new();
            self.inner.write_folded(&mut bytes, annotate)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __repr__(&self) -> PyResult<String> {
        let how = if self.inner.is_normalized() {
            "normalised"
        } else {
            "absolute"
        };
        Ok(format!(
            "<Diff of {} and {}, {how}>",
            self.before_total(),
            self.after_total()?
        ))
    }
}

fn rows(py: Python<'_>, changes: Vec<flamegraph::Change>) -> PyResult<Vec<Change>> {
    changes
        .into_iter()
        .map(|change| Change::of(py, change))
        .collect()
}
