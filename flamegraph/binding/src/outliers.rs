//! Which of several profiles is unlike the others.

use pyo3::prelude::*;

use crate::arguments::{Number, Value};
use crate::profile::Profile;
use crate::tables::row;
use crate::{detached, guarded, Locked};

/// Distances of profiles from each other; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct Outliers(Locked<flamegraph::Outliers>);

#[pymethods]
impl Outliers {
    #[new]
    fn new() -> Outliers {
        Outliers(Locked::new(flamegraph::Outliers::new()))
    }

    #[pyo3(signature = (profile, value=Value::default(), *, samples=None))]
    fn add(
        &self,
        py: Python<'_>,
        profile: &Profile,
        value: Value,
        samples: Option<Number<u64>>,
    ) -> PyResult<()> {
        let samples = samples.map(|samples| samples.0);
        detached(py, || {
            let profile = profile.now();
            let value = value.of(&profile)?;
            self.0.with(|all| all.add(&profile, value, samples))
        })
    }

    fn distances(&self, py: Python<'_>) -> PyResult<Vec<Option<Distance>>> {
        let found = guarded(py, || self.0.with(|all| all.distances()))?;
        let distances = found.into_iter();
        let made = distances.map(|one| one.map(|distance| Distance::of(py, distance)).transpose());
        made.collect()
    }
}

row! {
    /// One row of `Outliers.distances`.
    Distance {
        divergence: f64,
        noise: f64,
        cosine: f64,
        moved: f64,
        outlier: bool,
        differs: bool,
        methods: Vec<Py<Difference>>,
    }
}

impl Distance {
    fn of(py: Python<'_>, distance: flamegraph::Distance) -> PyResult<Distance> {
        let methods = distance.methods.into_iter();
        let methods = methods.map(|one| Py::new(py, Difference::from(one)));
        Ok(Distance {
            divergence: distance.divergence,
            noise: distance.noise,
            cosine: distance.cosine,
            moved: distance.moved,
            outlier: distance.outlier,
            differs: distance.differs,
            methods: methods.collect::<PyResult<Vec<Py<Difference>>>>()?,
        })
    }
}

row! {
    /// One of `Distance.methods`.
    Difference {
        name: String,
        share: f64,
        usual: f64,
    }
}

impl From<flamegraph::Difference> for Difference {
    fn from(one: flamegraph::Difference) -> Difference {
        Difference {
            name: one.name,
            share: one.share,
            usual: one.usual,
        }
    }
}
