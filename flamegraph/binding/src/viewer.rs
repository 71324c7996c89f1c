//! The page's data.

use flamegraph::{Slice, ViewerWriter};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::{Number, Value};
use crate::output::to_bytes;
use crate::profile::Profile;
use crate::{detached, Locked};

/// A group of threads, a slice, their column, the sum of it, and what of that is not idle.
type Part = (Option<String>, Option<(String, bool)>, usize, u64, u64);

/// One call tree of many profiles; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct ViewerData(Locked<ViewerWriter>);

#[pymethods]
impl ViewerData {
    #[new]
    fn new() -> ViewerData {
        ViewerData(Locked::new(ViewerWriter::new()))
    }

    #[pyo3(signature = (profile, value=Value::default(), *, start=None))]
    fn add(
        &self,
        py: Python<'_>,
        profile: &Profile,
        value: Value,
        start: Option<Number<i64>>,
    ) -> PyResult<usize> {
        let start = start.map(|start| start.0);
        detached(py, || {
            let profile = profile.now();
            let value = value.of(&profile)?;
            self.0.with(|writer| writer.add(&profile, value, start))
        })
    }

    #[pyo3(signature = (
        profile, value=Value::default(), *, most=Number(20), keep_frames=false, start=None
    ))]
    fn add_threads(
        &self,
        py: Python<'_>,
        profile: &Profile,
        value: Value,
        most: Number<usize>,
        keep_frames: bool,
        start: Option<Number<i64>>,
    ) -> PyResult<Vec<Part>> {
        let start = start.map(|start| start.0);
        let made = detached(py, || {
            let profile = profile.now();
            let value = value.of(&profile)?;
            self.0
                .with(|writer| writer.add_threads(&profile, value, most.0, keep_frames, start))
        })?;
        let slice = |slice: Slice| (slice.name, slice.certain);
        let made = made.into_iter();
        Ok(made
            .map(|one| {
                let slice = one.slice.map(slice);
                (one.thread, slice, one.column, one.total, one.busy)
            })
            .collect())
    }

    #[getter]
    fn width(&self) -> Option<u64> {
        self.0.with(ViewerWriter::bucket_width)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        to_bytes(py, |out| self.0.with(|writer| writer.finish(out)))
    }
}
