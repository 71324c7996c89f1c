//! The classes as Python sees them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use flamegraph::svg::{Options, Palette};
use flamegraph::{Error, Format, ReadOptions, ValueType};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{detached, value_error};

/// One method of `Profile.top`.
#[pyclass(frozen, get_all, module = "hprofiler._flamegraph")]
pub(crate) struct Method {
    name: String,
    kind: &'static str,
    self_value: i64,
    total_value: i64,
}

#[pymethods]
impl Method {
    fn __repr__(&self) -> String {
        format!(
            "Method({:?}, {}, self={}, total={})",
            self.name, self.kind, self.self_value, self.total_value
        )
    }
}

/// A profile; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct Profile {
    /// The lock is held only to take or to put the reference, or by the one merge going on.
    inner: Mutex<Arc<flamegraph::Profile>>,
}

impl Profile {
    fn new(profile: flamegraph::Profile) -> Profile {
        Profile {
            inner: Mutex::new(Arc::new(profile)),
        }
    }

    /// The profile as it is now; a merge later on does not change it.
    fn now(&self) -> Arc<flamegraph::Profile> {
        Arc::clone(&self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets a writer fill a buffer, and hands it to Python.
    fn written<'py>(
        &self,
        py: Python<'py>,
        write: impl FnOnce(&flamegraph::Profile, &mut Vec<u8>) -> flamegraph::Result<()> + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, || {
            let mut bytes = Vec::new();
            write(&self.now(), &mut bytes)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}

#[pymethods]
impl Profile {
    #[staticmethod]
    #[pyo3(signature = (path, format=None))]
    fn read(py: Python<'_>, path: &str, format: Option<&str>) -> PyResult<Profile> {
        let format = parse_format(format)?;
        let read = || flamegraph::read_path(Path::new(path), &ReadOptions::of(format));
        let profile = detached(py, || {
            read().map_err(|error| Error::Usage(format!("{path}: {error}")))
        })?;
        Ok(Profile::new(profile))
    }

    #[staticmethod]
    #[pyo3(signature = (data, format=None))]
    fn from_bytes(py: Python<'_>, data: Cow<'_, [u8]>, format: Option<&str>) -> PyResult<Profile> {
        let format = parse_format(format)?;
        detached(py, || flamegraph::read(&data, &ReadOptions::of(format))).map(Profile::new)
    }

    #[getter]
    fn values(&self) -> Vec<(String, String)> {
        self.now()
            .values()
            .iter()
            .map(|ValueType { name, unit }| (name.clone(), unit.clone()))
            .collect()
    }

    #[getter]
    fn labels(&self) -> BTreeMap<String, String> {
        self.now().labels().clone()
    }

    #[getter]
    fn malformed_lines(&self) -> u64 {
        self.now().malformed_lines()
    }

    #[pyo3(signature = (value=0))]
    fn total(&self, value: usize) -> PyResult<i64> {
        self.now().total(value).map_err(value_error)
    }

    fn node_count(&self) -> usize {
        self.now().node_count()
    }

    fn with_labels(&self, py: Python<'_>, labels: BTreeMap<String, String>) -> PyResult<Profile> {
        let labelled = detached(py, || {
            let mut copy = flamegraph::Profile::clone(&self.now());
            for (name, value) in labels {
                copy.set_label(name, value);
            }
            Ok(copy)
        })?;
        Ok(Profile::new(labelled))
    }

    fn merge(&self, py: Python<'_>, other: &Profile) -> PyResult<()> {
        detached(py, || {
            let other = other.now();
            let mut ours = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::make_mut(&mut ours).merge(&other)
        })
    }

    #[pyo3(signature = (limit, value=0))]
    fn top(&self, py: Python<'_>, limit: usize, value: usize) -> PyResult<Vec<Method>> {
        let methods = detached(py, || self.now().top(limit, value))?;
        let to_python = |method: flamegraph::Method| Method {
            name: method.name,
            kind: method.kind.word(),
            self_value: method.self_value,
            total_value: method.total_value,
        };
        Ok(methods.into_iter().map(to_python).collect())
    }

    #[pyo3(signature = (value=0, annotate=true))]
    fn to_folded<'py>(
        &self,
        py: Python<'py>,
        value: usize,
        annotate: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.written(py, |profile, out| {
            profile.write_folded(out, value, annotate)
        })
    }

    fn to_pprof<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.written(py, |profile, out| profile.write_pprof(out))
    }

    #[pyo3(signature = (
        title="Flame Graph", subtitle="", value=0, colors="java", width=1200, inverted=false, min_width=0.1
    ))]
    #[allow(clippy::too_many_arguments)] // the picture's options, as keywords
    fn to_svg<'py>(
        &self,
        py: Python<'py>,
        title: &str,
        subtitle: &str,
        value: usize,
        colors: &str,
        width: u32,
        inverted: bool,
        min_width: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let options = Options {
            title: title.to_string(),
            subtitle: subtitle.to_string(),
            value,
            palette: colors.parse::<Palette>().map_err(value_error)?,
            width,
            inverted,
            min_width,
            merge_tiers: true,
            count_name: None,
        };
        self.written(py, |profile, out| profile.write_svg(out, &options))
    }

    fn to_viewer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.written(py, |profile, out| profile.write_viewer(out))
    }
}

fn parse_format(name: Option<&str>) -> PyResult<Option<Format>> {
    name.map(|name| name.parse().map_err(value_error))
        .transpose()
}

/// The host-fair mean; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct MeanMerger {
    inner: Mutex<flamegraph::MeanMerger>,
}

#[pymethods]
impl MeanMerger {
    #[new]
    fn new() -> MeanMerger {
        MeanMerger {
            inner: Mutex::new(flamegraph::MeanMerger::new()),
        }
    }

    fn add(&self, py: Python<'_>, profile: &Profile) -> PyResult<()> {
        detached(py, || {
            let profile = profile.now();
            self.inner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(&profile)
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Profile> {
        detached(py, || {
            self.inner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .finish()
        })
        .map(Profile::new)
    }
}
