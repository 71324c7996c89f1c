//! Where stubs and intrinsics stand if only callers count that are surely right.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::profile::Profile;
use crate::{detached, guarded};

/// Places of code without a sure caller in several profiles; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct SureCallers(flamegraph::SureCallers);

#[pymethods]
impl SureCallers {
    #[new]
    fn new(py: Python<'_>, profiles: Vec<PyRef<'_, Profile>>) -> PyResult<SureCallers> {
        let now: Vec<Arc<flamegraph::Profile>> = profiles.iter().map(|one| one.now()).collect();
        let all: Vec<&flamegraph::Profile> = now.iter().map(|one| &**one).collect();
        guarded(py, || flamegraph::SureCallers::of(&all)).map(SureCallers)
    }

    fn cut(&self, py: Python<'_>, profile: &Profile) -> PyResult<Profile> {
        detached(py, || self.0.cut(&profile.now())).map(Profile::new)
    }

    #[getter]
    fn doubts(&self) -> HashMap<String, Vec<i64>> {
        let doubts = self.0.doubts().iter();
        doubts
            .map(|(name, costs)| (name.to_string(), costs.clone()))
            .collect()
    }

    #[getter]
    fn code(&self) -> Vec<&str> {
        self.0.code()
    }
}
