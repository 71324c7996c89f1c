//! The profile as Python sees it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use flamegraph::{Error, Keep, NameRules, Pattern, Slice, ValueType, WriteFormat, WriteOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::{Number, OneOrMany, Source, Value};
use crate::diff::Diff;
use crate::output::{check_thread_label, to_bytes, write_to, Output, Target};
use crate::picture::{check_no_options, look};
use crate::tables::{nodes, stacks, Method, Node, Stack};
use crate::times::Times;
use crate::{detached, merging, pandas, reading, value_error, Locked};

/// A profile; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
// The lock is held only to take or to put the reference, or by the one merge going on.
pub(crate) struct Profile(Locked<Arc<flamegraph::Profile>>);

impl Profile {
    pub(crate) fn new(profile: flamegraph::Profile) -> Profile {
        Profile::shared(Arc::new(profile))
    }

    pub(crate) fn shared(profile: Arc<flamegraph::Profile>) -> Profile {
        Profile(Locked::new(profile))
    }

    /// The profile as it is now; a merge later on does not change it.
    pub(crate) fn now(&self) -> Arc<flamegraph::Profile> {
        self.0.with(|profile| Arc::clone(profile))
    }

    /// Another profile made from this one.
    fn derived(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&flamegraph::Profile) -> flamegraph::Result<flamegraph::Profile> + Send,
    ) -> PyResult<Profile> {
        detached(py, || make(&self.now())).map(Profile::new)
    }
}

/// A wait as tables name it, the code of what is done, and the method that does it.
type NamedWait = (String, String, String);

#[pymethods]
impl Profile {
    #[staticmethod]
    #[pyo3(signature = (path, format=None))]
    fn read(py: Python<'_>, path: Source, format: Option<&str>) -> PyResult<Profile> {
        let options = reading::options(format, None)?;
        detached(py, || reading::read(&path, &options)).map(Profile::new)
    }

    #[staticmethod]
    #[pyo3(signature = (paths, format=None, *, mean=false, **options))]
    fn open(
        py: Python<'_>,
        paths: OneOrMany<Source>,
        format: Option<&str>,
        mean: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Profile> {
        let options = reading::options(format, options)?;
        let paths = paths.into_vec();
        detached(py, || reading::read_all(&paths, &options, mean)).map(Profile::new)
    }

    #[staticmethod]
    #[pyo3(signature = (data, format=None, **options))]
    fn from_bytes(
        py: Python<'_>,
        data: Cow<'_, [u8]>,
        format: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Profile> {
        let options = reading::options(format, options)?;
        detached(py, || flamegraph::read(&data, &options)).map(Profile::new)
    }

    #[staticmethod]
    #[pyo3(signature = (profiles, *, mean=false))]
    fn merged(profiles: &Bound<'_, PyAny>, mean: bool) -> PyResult<Profile> {
        merging::merged(profiles, mean)
    }

    #[staticmethod]
    #[pyo3(signature = (parts, *, rows))]
    fn of_parts(
        py: Python<'_>,
        parts: Vec<PyRef<'_, Profile>>,
        rows: Number<usize>,
    ) -> PyResult<Profile> {
        let parts = parts.iter().map(|part| Arc::unwrap_or_clone(part.now()));
        let parts: Vec<_> = parts.collect();
        detached(py, || flamegraph::of_parts(parts, rows.0)).map(Profile::new)
    }

    #[getter]
    fn values(&self) -> Vec<(String, String)> {
        let pair = |value: &ValueType| (value.name.clone(), value.unit.clone());
        self.now().values().iter().map(pair).collect()
    }

    #[getter]
    fn labels(&self) -> BTreeMap<String, String> {
        self.now().labels().clone()
    }

    #[getter]
    fn malformed_lines(&self) -> u64 {
        self.now().malformed_lines()
    }

    #[getter]
    fn skips_stubs(&self) -> bool {
        self.now().skips_stubs()
    }

    #[getter]
    fn incomplete(&self) -> bool {
        self.now().is_incomplete()
    }

    #[getter]
    fn alloc_share_error(&self) -> u32 {
        self.now().alloc_share_error()
    }

    #[getter]
    fn unknown<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let profile = self.now();
        let Some(unknown) = profile.unknown() else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("samples", unknown.samples)?;
        dict.set_item("leaf_samples", unknown.leaf_samples)?;
        dict.set_item("frames", unknown.frames)?;
        dict.set_item("unknown_frames", unknown.unknown_frames)?;
        dict.set_item("modules", unknown.modules.clone())?;
        dict.set_item("copied_stacks", unknown.copied_stacks)?;
        Ok(Some(dict))
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.now().warnings().to_vec()
    }

    #[getter]
    fn times(&self) -> Option<Times> {
        self.now().times().map(Times::from)
    }

    #[pyo3(signature = (value=Value::default()))]
    fn total(&self, value: Value) -> PyResult<i64> {
        let profile = self.now();
        let total = value.of(&profile).and_then(|value| profile.total(value));
        total.map_err(value_error)
    }

    fn node_count(&self) -> usize {
        self.now().node_count()
    }

    fn thread_count(&self) -> usize {
        self.now().thread_count()
    }

    fn with_labels(&self, py: Python<'_>, labels: BTreeMap<String, String>) -> PyResult<Profile> {
        self.derived(py, |profile| {
            let mut copy = profile.clone();
            for (name, value) in labels {
                copy.set_label(name, value);
            }
            Ok(copy)
        })
    }

    pub(crate) fn merge(&self, py: Python<'_>, other: &Profile) -> PyResult<()> {
        detached(py, || {
            let other = other.now();
            self.0.with(|ours| Arc::make_mut(ours).merge(&other))
        })
    }

    #[pyo3(signature = (after, value=Value::default(), *, normalize=true))]
    fn diff(
        &self,
        py: Python<'_>,
        after: &Profile,
        value: Value,
        normalize: bool,
    ) -> PyResult<Diff> {
        detached(py, || {
            let after = after.now();
            flamegraph::Diff::of(&self.now(), &after, value.of(&after)?, normalize)
        })
        .map(Diff::new)
    }

    #[pyo3(signature = (include=None, exclude=None))]
    fn filter(
        &self,
        py: Python<'_>,
        include: Option<OneOrMany<String>>,
        exclude: Option<OneOrMany<String>>,
    ) -> PyResult<Profile> {
        let include = include.map(OneOrMany::compiled).transpose()?;
        let exclude = exclude.map(OneOrMany::compiled).transpose()?;
        let profile = match include {
            Some(include) => self.derived(py, |profile| profile.including(&include))?,
            None => Profile::shared(self.now()),
        };
        match exclude {
            Some(exclude) => profile.derived(py, |profile| profile.excluding(&exclude)),
            None => Ok(profile),
        }
    }

    #[pyo3(name = "in_range")]
    fn of_range(&self, py: Python<'_>, start: i64, end: i64) -> PyResult<Profile> {
        self.derived(py, |profile| profile.in_range(start, end))
    }

    #[pyo3(name = "since")]
    fn after(&self, py: Python<'_>, start: i64) -> PyResult<Profile> {
        self.derived(py, |profile| profile.since(start))
    }

    #[pyo3(name = "in_slice")]
    fn of_slice(&self, py: Python<'_>, number: u16) -> PyResult<Profile> {
        self.derived(py, |profile| profile.in_slice(number))
    }

    #[pyo3(name = "in_bands")]
    fn of_bands(&self, py: Python<'_>, first: u8, end: u8) -> PyResult<Profile> {
        self.derived(py, |profile| profile.in_bands(first..end))
    }

    fn without_idle(&self, py: Python<'_>) -> PyResult<Profile> {
        self.derived(py, |profile| profile.without_idle())
    }

    #[pyo3(signature = (pattern, *, callers=true))]
    fn focus(&self, py: Python<'_>, pattern: &str, callers: bool) -> PyResult<Profile> {
        let pattern = Pattern::new(pattern).map_err(value_error)?;
        self.derived(py, |profile| profile.focused(&pattern, callers))
    }

    fn trim(&self, py: Python<'_>, pattern: &str) -> PyResult<Profile> {
        let pattern = Pattern::new(pattern).map_err(value_error)?;
        self.derived(py, |profile| profile.trimmed(&pattern))
    }

    fn with_slices_named(
        &self,
        py: Python<'_>,
        names: HashMap<String, String>,
    ) -> PyResult<Profile> {
        self.derived(py, |profile| {
            profile.with_slices_named(|name| names.get(name).cloned())
        })
    }

    #[pyo3(name = "assigned")]
    fn assigned_to_slices(
        &self,
        py: Python<'_>,
        within: OneOrMany<String>,
        without: OneOrMany<String>,
        slices: Vec<(String, bool)>,
        ranges: Vec<(u32, u32, u16)>,
    ) -> PyResult<Profile> {
        let (within, without) = (within.compiled()?, without.compiled()?);
        let slices = slices.into_iter();
        let slices: Vec<Slice> = slices
            .map(|(name, certain)| Slice { name, certain })
            .collect();
        self.derived(py, |profile| {
            profile.assigned(&within, &without, &slices, &ranges)
        })
    }

    fn below(&self, py: Python<'_>, roots: OneOrMany<String>) -> PyResult<Profile> {
        let roots = roots.compiled()?;
        self.derived(py, |profile| profile.below(&roots))
    }

    #[pyo3(name = "into_callers", signature = (patterns, *, kernel=false))]
    fn given_to_callers(
        &self,
        py: Python<'_>,
        patterns: OneOrMany<String>,
        kernel: bool,
    ) -> PyResult<Profile> {
        let patterns = patterns.compiled()?;
        self.derived(py, |profile| profile.into_callers(&patterns, kernel))
    }

    #[pyo3(name = "into_waiters", signature = (*, locks=false))]
    fn ending_in_waits(&self, py: Python<'_>, locks: bool) -> PyResult<(Profile, Vec<NamedWait>)> {
        let mut names = Vec::new();
        let ended = self.derived(py, |profile| {
            let (ended, found) = profile.into_waiters(locks)?;
            let found = found.into_iter();
            let code = |does: u8| flamegraph::DOING[usize::from(does)].0.to_owned();
            names = found
                .map(|(name, does, method)| (name, code(does), method))
                .collect();
            Ok(ended)
        })?;
        Ok((ended, names))
    }

    fn threads(&self, py: Python<'_>) -> PyResult<Profile> {
        self.derived(py, |profile| profile.by_thread_group(NameRules::builtin()))
    }

    fn without_threads(&self, py: Python<'_>) -> PyResult<Profile> {
        self.derived(py, flamegraph::Profile::without_threads)
    }

    fn without_callers(&self, py: Python<'_>) -> PyResult<Profile> {
        self.derived(py, flamegraph::Profile::without_callers)
    }

    fn unsure_callers(&self) -> i64 {
        self.now().unsure_callers(0)
    }

    fn without_times(&self, py: Python<'_>) -> PyResult<Profile> {
        let now = self.now();
        if now.times().is_none() {
            return Ok(Profile::shared(now));
        }
        self.derived(py, |profile| {
            let mut copy = profile.clone();
            copy.set_times(None);
            Ok(copy)
        })
    }

    fn invert(&self, py: Python<'_>) -> PyResult<Profile> {
        self.derived(py, flamegraph::Profile::inverted)
    }

    fn scale(&self, py: Python<'_>, factor: Number<f64>) -> PyResult<Profile> {
        self.derived(py, |profile| profile.scaled(factor.0))
    }

    fn with_total(&self, py: Python<'_>, value: Value, total: i64) -> PyResult<Profile> {
        self.derived(py, |profile| profile.with_total(value.of(profile)?, total))
    }

    fn select(&self, py: Python<'_>, values: OneOrMany<Value>) -> PyResult<Profile> {
        self.derived(py, |profile| {
            let values = values.into_vec();
            let indices: flamegraph::Result<Vec<usize>> =
                values.iter().map(|value| value.of(profile)).collect();
            profile.select(&indices?)
        })
    }

    #[pyo3(signature = (rules=None))]
    fn canonical(&self, py: Python<'_>, rules: Option<&str>) -> PyResult<Profile> {
        let own = rules
            .map(NameRules::parse)
            .transpose()
            .map_err(value_error)?;
        let rules = own.as_ref().unwrap_or(NameRules::builtin());
        self.derived(py, |profile| profile.canonical(rules))
    }

    fn raw_names(&self) -> BTreeMap<String, Vec<String>> {
        let profile = self.now();
        let names = profile.raw_names();
        names
            .map(|(canonical, raws)| (canonical.to_string(), raws.iter().cloned().collect()))
            .collect()
    }

    fn modules(&self) -> BTreeMap<String, String> {
        let profile = self.now();
        let mut by_name: BTreeMap<String, String> = BTreeMap::new();
        for (name, module) in profile.modules() {
            // What is called alike in the kernel and in a library.
            let modules = by_name.entry(name.to_string()).or_default();
            if !modules.is_empty() {
                modules.push_str(", ");
            }
            modules.push_str(module);
        }
        by_name
    }

    #[pyo3(signature = (value=Value::default()))]
    fn merged_tiers(&self, py: Python<'_>, value: Value) -> PyResult<Profile> {
        self.derived(py, |profile| profile.merged_tiers(value.of(profile)?))
    }

    #[pyo3(signature = (*, share=None, frames=None))]
    fn pruned(
        &self,
        py: Python<'_>,
        share: Option<Number<f64>>,
        frames: Option<Number<usize>>,
    ) -> PyResult<Profile> {
        let keep = match (share, frames) {
            (Some(share), None) => Keep::Share(share.0),
            (None, Some(frames)) => Keep::Frames(frames.0),
            _ => {
                let reason = "prune by a share or to a number of frames, one of both".to_string();
                return Err(value_error(Error::Usage(reason)));
            }
        };
        self.derived(py, |profile| profile.pruned(keep))
    }

    #[pyo3(signature = (limit=Number(20), value=Value::default()))]
    fn top(&self, py: Python<'_>, limit: Number<usize>, value: Value) -> PyResult<Vec<Method>> {
        let methods = detached(py, || {
            let profile = self.now();
            profile.top(limit.0, value.of(&profile)?)
        })?;
        Ok(methods.into_iter().map(Method::from).collect())
    }

    #[pyo3(signature = (value=Value::default()))]
    fn frames(&self, py: Python<'_>, value: Value) -> PyResult<Vec<Method>> {
        let tiers = detached(py, || {
            let profile = self.now();
            profile.tiers(value.of(&profile)?)
        })?;
        Ok(tiers.into_iter().map(Method::from).collect())
    }

    #[pyo3(signature = (annotate=true))]
    fn paths(&self, py: Python<'_>, annotate: bool) -> PyResult<Vec<Stack>> {
        stacks(py, &self.now(), annotate)
    }

    #[pyo3(signature = (value=Value::default()))]
    fn nodes(&self, value: Value) -> PyResult<Vec<Node>> {
        let profile = self.now();
        nodes(&profile, value.of(&profile).map_err(value_error)?)
    }

    #[pyo3(signature = (annotate=true))]
    fn to_pandas<'py>(&self, py: Python<'py>, annotate: bool) -> PyResult<Bound<'py, PyAny>> {
        pandas::data_frame(py, &self.now(), annotate)
    }

    #[pyo3(signature = (value=None, annotate=true))]
    pub(crate) fn to_folded<'py>(
        &self,
        py: Python<'py>,
        value: Option<Value>,
        annotate: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let profile = self.now();
        to_bytes(py, |out| {
            let value = value.map(|value| value.of(&profile)).transpose()?;
            let options = WriteOptions {
                value,
                annotate,
                ..WriteOptions::default()
            };
            flamegraph::write(&profile, WriteFormat::Folded, out, &options)
        })
    }

    #[pyo3(signature = (*, thread_label=false))]
    fn to_pprof<'py>(&self, py: Python<'py>, thread_label: bool) -> PyResult<Bound<'py, PyBytes>> {
        let profile = self.now();
        to_bytes(py, |out| match thread_label {
            true => profile.write_pprof_threads(out),
            false => profile.write_pprof(out),
        })
    }

    #[pyo3(signature = (*, value=Value::default(), **options))]
    pub(crate) fn to_svg<'py>(
        &self,
        py: Python<'py>,
        value: Value,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let profile = self.now();
        let value = value.of(&profile).map_err(value_error)?;
        let look = look(options)?;
        to_bytes(py, |out| profile.write_svg(out, value, &look))
    }

    fn to_speedscope<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let profile = self.now();
        to_bytes(py, |out| profile.write_speedscope(out))
    }

    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let profile = self.now();
        to_bytes(py, |out| profile.write_json(out))
    }

    #[pyo3(signature = (target, format=None, *, value=None, title=None, thread_label=false, **options))]
    pub(crate) fn write(
        slf: &Bound<'_, Self>,
        target: Target,
        format: Option<&str>,
        value: Option<Value>,
        title: Option<&str>,
        thread_label: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let (py, profile) = (slf.py(), slf.get().now());
        let output = Output::choose(format, &target).map_err(value_error)?;
        let value = value.map(|value| value.of(&profile));
        let value = value.transpose().map_err(value_error)?;
        check_thread_label(thread_label, output)?;
        let Output::Library(format) = output else {
            return target.write_page(slf.as_any(), title);
        };
        check_no_options(options, format)?;
        let mut svg = look(options)?;
        if let Some(title) = title {
            svg.title = title.to_string();
        }
        let options = WriteOptions {
            value,
            thread_label,
            svg,
            ..WriteOptions::default()
        };
        write_to(py, &target, |out| {
            flamegraph::write(&profile, format, out, &options)
        })
    }

    fn __repr__(&self) -> String {
        let profile = self.now();
        let total = |(index, value): (usize, &ValueType)| {
            format!("{value}: {}", profile.total(index).unwrap_or_default())
        };
        let totals: Vec<String> = profile.values().iter().enumerate().map(total).collect();
        format!(
            "<Profile of {} nodes, {}>",
            profile.node_count(),
            totals.join(", ")
        )
    }
}
