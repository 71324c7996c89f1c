//! The flame chart as Python sees it.

use flamegraph::svg;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::Source;
use crate::detached;
use crate::output::{write_to, Target};
use crate::picture::look;
use crate::reading::{self, of_source};

/// Stacks in the order of time; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct FlameChart {
    inner: svg::FlameChart,
}

#[pymethods]
impl FlameChart {
    #[staticmethod]
    #[pyo3(signature = (path, format=None, *, reverse=false))]
    fn open(
        py: Python<'_>,
        path: Source,
        format: Option<&str>,
        reverse: bool,
    ) -> PyResult<FlameChart> {
        let options = reading::options(format, None)?;
        let inner = detached(py, || {
            let file = path.file().map_err(flamegraph::Error::from);
            let chart = file.and_then(|file| svg::FlameChart::open(file, reverse, &options));
            chart.map_err(|error| of_source(&path, error))
        })?;
        Ok(FlameChart { inner })
    }

    #[getter]
    fn malformed_lines(&self) -> u64 {
        self.inner.malformed_lines()
    }

    #[pyo3(signature = ())]
    fn total(&self) -> i64 {
        self.inner.total()
    }

    #[pyo3(signature = (target, **options))]
    fn write(
        &self,
        py: Python<'_>,
        target: Target,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        if options.is_some_and(|options| options.contains("reverse").unwrap_or(false)) {
            let reason = "a flame chart is turned round when it is read: open(..., reverse=True)";
            return Err(PyTypeError::new_err(reason));
        }
        let look = look(options)?;
        write_to(py, &target, |out| self.inner.write_svg(out, &look))
    }
}
