//! Sums of many profiles, and rows for tables of them.

use flamegraph::{SumsOf, Work};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::{Number, Value};
use crate::profile::Profile;
use crate::{detached, Locked};

/// Stacks and samples of many profiles, by columns; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct StackTable(Locked<flamegraph::StackTable>);

#[pymethods]
impl StackTable {
    #[new]
    #[pyo3(signature = (rules=Vec::new(), *, start=None))]
    fn new(rules: Vec<(String, Vec<String>)>, start: Option<Number<i64>>) -> StackTable {
        let start = start.map(|start| start.0);
        let table = flamegraph::StackTable::new(flamegraph::WorkTable::new(rules), start);
        StackTable(Locked::new(table))
    }

    #[pyo3(signature = (profile, *, process, event, kernel=true))]
    fn add(
        &self,
        py: Python<'_>,
        profile: &Profile,
        process: Number<i32>,
        event: Number<i32>,
        kernel: bool,
    ) -> PyResult<Vec<(String, String, i64)>> {
        detached(py, || {
            let profile = profile.now();
            self.0
                .with(|table| table.add(&profile, process.0, event.0, kernel))
        })
    }

    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let made = PyDict::new(py);
        self.0.with(|table| {
            made.set_item("names", table.names().collect::<Vec<_>>())?;
            made.set_item("words", table.words())?;
            made.set_item("groups", table.groups())?;
            made.set_item("stages", table.stages())?;
            let (stacks, samples) = (table.stacks(), table.samples());
            let half = |shift: u32| {
                let halves = stacks.ids.iter().map(|id| (id >> shift) as u64);
                bytes(py, halves, u64::to_le_bytes)
            };
            made.set_item("stack_high", half(64))?;
            made.set_item("stack_low", half(0))?;
            let ints: [(&str, &[i32]); 9] = [
                ("ends", &stacks.ends),
                ("frames", &stacks.frames),
                ("categories", &stacks.categories),
                ("phases", &stacks.phases),
                ("processes", &samples.processes),
                ("events", &samples.events),
                ("sample_groups", &samples.groups),
                ("sample_stages", &samples.stages),
                ("seconds", &samples.seconds),
            ];
            for (name, column) in ints {
                made.set_item(name, bytes(py, column.iter().copied(), i32::to_le_bytes))?;
            }
            let of_samples = samples.stacks.iter().copied();
            made.set_item("stacks", bytes(py, of_samples, u32::to_le_bytes))?;
            let values = samples.values.iter().copied();
            made.set_item("values", bytes(py, values, i64::to_le_bytes))
        })?;
        Ok(made)
    }
}

/// Numbers as Arrow has them.
fn bytes<'py, T, const N: usize>(
    py: Python<'py>,
    numbers: impl Iterator<Item = T>,
    encode: fn(T) -> [u8; N],
) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &numbers.flat_map(encode).collect::<Vec<u8>>())
}

/// Sums of work over many profiles; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct WorkTable(Locked<flamegraph::WorkTable>);

#[pymethods]
impl WorkTable {
    #[new]
    #[pyo3(signature = (rules=Vec::new()))]
    fn new(rules: Vec<(String, Vec<String>)>) -> WorkTable {
        WorkTable(Locked::new(flamegraph::WorkTable::new(rules)))
    }

    #[pyo3(signature = (profile, *, kernel=true))]
    fn sums(&self, py: Python<'_>, profile: &Profile, kernel: bool) -> PyResult<Vec<Work>> {
        detached(py, || {
            self.0.with(|table| table.sums(&profile.now(), kernel))
        })
    }

    #[pyo3(signature = (profile, *, kernel=true, flat=false))]
    fn by_category(
        &self,
        py: Python<'_>,
        profile: &Profile,
        kernel: bool,
        flat: bool,
    ) -> PyResult<Profile> {
        detached(py, || {
            self.0
                .with(|table| table.by_category(&profile.now(), kernel, flat))
        })
        .map(Profile::new)
    }
}

type Row = (i64, f64, f64, f64);

fn row(sums: &SumsOf) -> Row {
    (sums.cost, sums.squared, sums.weighted, sums.sampled)
}

/// Sums of each method of several processes; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct MethodSums(Locked<flamegraph::MethodSums>);

#[pymethods]
impl MethodSums {
    #[new]
    fn new() -> MethodSums {
        MethodSums(Locked::new(flamegraph::MethodSums::default()))
    }

    #[pyo3(signature = (profile, per_sample, value=Value::default(), *, threads=false))]
    fn add(
        &self,
        py: Python<'_>,
        profile: &Profile,
        per_sample: f64,
        value: Value,
        threads: bool,
    ) -> PyResult<()> {
        detached(py, || {
            let profile = profile.now();
            let value = value.of(&profile)?;
            self.0
                .with(|sums| sums.add(&profile, value, per_sample, threads))
        })
    }

    fn put(&self, name: String, own: Row, all: Row) {
        let sums = |(cost, squared, weighted, sampled): Row| SumsOf {
            cost,
            squared,
            weighted,
            sampled,
        };
        self.0.with(|known| known.put(name, [sums(own), sums(all)]));
    }

    fn of(&self, name: &str) -> Option<(Row, Row)> {
        self.0
            .with(|sums| sums.of(name).map(|[own, all]| (row(own), row(all))))
    }

    fn names(&self) -> Vec<String> {
        self.0.with(|sums| sums.names().to_vec())
    }

    fn own(&self) -> Vec<Row> {
        self.0
            .with(|sums| sums.all().iter().map(|[own, _]| row(own)).collect())
    }

    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let made = PyDict::new(py);
        self.0.with(|sums| {
            for (place, which) in ["own", "all"].into_iter().enumerate() {
                let of = || sums.all().iter().map(move |both| both[place]);
                let costs = bytes(py, of().map(|sum| sum.cost), i64::to_le_bytes);
                made.set_item(format!("{which}_cost"), costs)?;
                let put = |name: &str, number: fn(SumsOf) -> f64| {
                    let column = bytes(py, of().map(number), f64::to_le_bytes);
                    made.set_item(format!("{which}_{name}"), column)
                };
                put("squared", |sum| sum.squared)?;
                put("weighted", |sum| sum.weighted)?;
                put("sampled", |sum| sum.sampled)?;
            }
            PyResult::Ok(())
        })?;
        Ok(made)
    }
}
