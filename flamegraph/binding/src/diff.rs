//! The difference of two profiles as Python sees it.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::{Number, Value};
use crate::output::Target;
use crate::profile::Profile;
use crate::tables::Change;
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
    fn profile(&self) -> Profile {
        Profile::shared(Arc::clone(self.inner.tree()))
    }

    #[pyo3(signature = (limit=Number(20)))]
    fn changes(&self, py: Python<'_>, limit: Number<usize>) -> PyResult<Vec<Change>> {
        rows(py, detached(py, || self.inner.changes(limit.0))?)
    }

    #[pyo3(signature = (limit=Number(20)))]
    fn appeared(&self, py: Python<'_>, limit: Number<usize>) -> PyResult<Vec<Change>> {
        rows(py, detached(py, || Ok(self.inner.appeared(limit.0)))?)
    }

    #[pyo3(signature = (limit=Number(20)))]
    fn vanished(&self, py: Python<'_>, limit: Number<usize>) -> PyResult<Vec<Change>> {
        rows(py, detached(py, || Ok(self.inner.vanished(limit.0)))?)
    }

    #[pyo3(signature = (annotate=true))]
    fn to_folded<'py>(&self, py: Python<'py>, annotate: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.profile().to_folded(py, None, annotate)
    }

    #[pyo3(signature = (**options))]
    fn to_svg<'py>(
        &self,
        py: Python<'py>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.profile().to_svg(py, Value::default(), options)
    }

    #[pyo3(signature = (target, format=None, *, title=None, **options))]
    fn write(
        &self,
        py: Python<'_>,
        target: Target,
        format: Option<&str>,
        title: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let profile = Bound::new(py, self.profile())?;
        Profile::write(&profile, target, format, None, title, false, options)
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
