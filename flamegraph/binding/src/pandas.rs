//! The table of stacks as a pandas.DataFrame, where pandas is installed.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::tables::stacks;

/// The table of stacks: a column `stack`, frames joined by `;`, and one column for each value.
pub(crate) fn data_frame<'py>(
    py: Python<'py>,
    profile: &flamegraph::Profile,
    annotate: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let pandas = pandas(py)?;
    let rows = stacks(py, profile, annotate)?;
    let columns = PyDict::new(py);
    let joiner = PyString::new(py, ";");
    let joined: PyResult<Vec<Bound<'py, PyAny>>> = rows
        .iter()
        .map(|row| joiner.call_method1("join", (row.frames.bind(py),)))
        .collect();
    columns.set_item("stack", joined?)?;
    let units = PyDict::new(py);
    for (index, value) in profile.values().iter().enumerate() {
        let cells: PyResult<Vec<Bound<'py, PyAny>>> = rows
            .iter()
            .map(|row| row.values.bind(py).get_item(index))
            .collect();
        columns.set_item(&value.name, cells?)?;
        units.set_item(&value.name, &value.unit)?;
    }
    let frame = pandas.call_method1("DataFrame", (columns,))?;
    frame.getattr("attrs")?.set_item("units", units)?;
    Ok(frame)
}

fn pandas(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("pandas").map_err(|error| {
        if error.is_instance_of::<PyImportError>(py) {
            PyImportError::new_err(
                "pandas is not installed; `pip install pandas` to get tables as data frames",
            )
        } else {
            error
        }
    })
}
