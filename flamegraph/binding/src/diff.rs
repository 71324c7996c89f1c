//! The difference of two profiles as Python sees it.

use flamegraph::WriteFormat;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::Number;
use crate::output::{to_bytes, write_options, write_to, Output, Target};
use crate::picture::{check_no_options, Look};
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

    fn nodes(&self) -> Vec<DiffNode> {
        self.inner.nodes().map(DiffNode::from).collect()
    }

    #[pyo3(signature = (annotate=true))]
    fn to_folded<'py>(&self, py: Python<'py>, annotate: bool) -> PyResult<Bound<'py, PyBytes>> {
        to_bytes(py, |out| self.inner.write_folded(out, annotate))
    }

    #[pyo3(signature = (**options))]
    fn to_svg<'py>(
        &self,
        py: Python<'py>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let Look(look) = Look::of(options)?;
        let picture = to_bytes(py, |out| self.inner.tree().write_svg(out, &look))?;
        Ok(picture)
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
        let output = Output::choose(format, &target).map_err(value_error)?;
        let Output::Library(format) = output else {
            let page = Bound::new(py, self.profile(py)?)?;
            return target.write_page(page.as_any(), title);
        };
        if format == WriteFormat::Svg {
            let Look(look) = Look::of(options)?.with(flamegraph::Diff::AFTER, title);
            return write_to(py, &target, |out| self.inner.tree().write_svg(out, &look));
        }
        check_no_options(options, format)?;
        let options = write_options(None, title);
        write_to(py, &target, |out| {
            flamegraph::write(self.inner.tree(), format, out, &options)
        })
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
