//! Many profiles to one.

use std::sync::Arc;

use flamegraph::{Error, Merger};
use pyo3::prelude::*;

use crate::profile::Profile;
use crate::{detached, Locked};

/// The host-fair mean; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct MeanMerger(Locked<flamegraph::MeanMerger>);

#[pymethods]
impl MeanMerger {
    #[new]
    pub(crate) fn new() -> MeanMerger {
        MeanMerger(Locked::new(flamegraph::MeanMerger::new()))
    }

    pub(crate) fn add(&self, py: Python<'_>, profile: &Profile) -> PyResult<()> {
        detached(py, || {
            let profile = profile.now();
            self.0.with(|mean| mean.add(&profile))
        })
    }

    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<Profile> {
        detached(py, || self.0.with(|mean| mean.finish())).map(Profile::new)
    }
}

/// Merges what an iterator yields, one profile in memory at a time beside the sum.
pub(crate) fn merged(profiles: &Bound<'_, PyAny>, mean: bool) -> PyResult<Profile> {
    let py = profiles.py();
    if mean {
        let merger = MeanMerger::new();
        for profile in profiles.try_iter()? {
            merger.add(py, profile?.cast::<Profile>()?.get())?;
        }
        return merger.finish(py);
    }
    let mut sum = Merger::new();
    for profile in profiles.try_iter()? {
        let profile = profile?.cast::<Profile>()?.get().now();
        detached(py, || sum.add(Arc::unwrap_or_clone(profile)))?;
    }
    let nothing = || Error::Empty("a sum of no profiles".to_string());
    detached(py, || sum.finish()?.ok_or_else(nothing)).map(Profile::new)
}
