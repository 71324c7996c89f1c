//! A profile's tables as Python sees them: one class for each kind of row.

use std::collections::BTreeMap;
use std::collections::HashMap;

use flamegraph::Kind;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::value_error;

/// Makes the class of a kind of row. Its fields are properties, and its text shows them all.
macro_rules! row {
    ($(#[$about:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[pyclass(frozen, get_all, module = "hprofiler._flamegraph")]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }

        #[pymethods]
        impl $name {
            fn __repr__(row: &Bound<'_, $name>) -> PyResult<String> {
                crate::tables::text_of(row, &[$(stringify!($field)),*])
            }
        }
    };
}
pub(crate) use row;

/// `Name(field=value, …)`
pub(crate) fn text_of(row: &Bound<'_, PyAny>, fields: &[&str]) -> PyResult<String> {
    let fields = fields.iter().map(|field| {
        let value = row.getattr(*field)?;
        Ok(format!("{field}={}", value.repr()?))
    });
    let fields = fields.collect::<PyResult<Vec<String>>>()?;
    Ok(format!("{}({})", row.get_type().name()?, fields.join(", ")))
}

row! {
    /// One method of `Profile.top` or `Profile.frames`.
    Method {
        name: String,
        kind: &'static str,
        self_value: i64,
        total_value: i64,
    }
}

impl From<flamegraph::Method> for Method {
    fn from(method: flamegraph::Method) -> Method {
        Method {
            name: method.name,
            kind: method.kind.word(),
            self_value: method.self_value,
            total_value: method.total_value,
        }
    }
}

row! {
    /// One stack of `Profile.paths`.
    Stack {
        frames: Py<PyTuple>,
        values: Py<PyTuple>,
    }
}

/// All stacks; a frame's name is one Python string however many stacks have it.
pub(crate) fn stacks(
    py: Python<'_>,
    profile: &flamegraph::Profile,
    annotate: bool,
) -> PyResult<Vec<Stack>> {
    let mut names: HashMap<(&str, Kind), Py<PyString>> = HashMap::new();
    let mut rows = Vec::new();
    profile.each_stack(|frames, values| {
        let frames = frames.iter().map(|&(name, kind)| {
            let kind = if annotate { kind } else { Kind::Plain };
            names
                .entry((name, kind))
                .or_insert_with(|| PyString::new(py, &format!("{name}{}", kind.suffix())).unbind())
                .clone_ref(py)
        });
        let frames: Vec<Py<PyString>> = frames.collect();
        rows.push(Stack {
            frames: PyTuple::new(py, frames)?.unbind(),
            values: PyTuple::new(py, values)?.unbind(),
        });
        PyResult::Ok(())
    })?;
    Ok(rows)
}

row! {
    /// One node of `Profile.nodes`.
    Node {
        parent: u32,
        depth: u32,
        name: String,
        kind: &'static str,
        self_value: i64,
        total_value: i64,
        tiers: BTreeMap<&'static str, i64>,
    }
}

pub(crate) fn nodes(profile: &flamegraph::Profile, value: usize) -> PyResult<Vec<Node>> {
    let rows = profile.nodes(value).map_err(value_error)?;
    let node = |row: flamegraph::NodeRow<'_>| Node {
        parent: row.parent,
        depth: row.depth,
        name: row.name.to_string(),
        kind: row.kind.word(),
        self_value: row.self_value,
        total_value: row.total_value,
        tiers: row
            .tiers
            .into_iter()
            .map(|(kind, total)| (kind.word(), total))
            .collect(),
    };
    Ok(rows.map(node).collect())
}

row! {
    /// One method or path that changed, of `Diff`.
    Change {
        path: Py<PyTuple>,
        // The last name of the path.
        name: String,
        self_before: i64,
        self_after: i64,
        total_before: i64,
        total_after: i64,
    }
}

impl Change {
    pub(crate) fn of(py: Python<'_>, change: flamegraph::Change) -> PyResult<Change> {
        Ok(Change {
            name: change.path.last().cloned().unwrap_or_default(),
            path: PyTuple::new(py, change.path)?.unbind(),
            self_before: change.selfs[0],
            self_after: change.selfs[1],
            total_before: change.totals[0],
            total_after: change.totals[1],
        })
    }
}
