//! A profile's tables as Python sees them: one class for each kind of row.

use std::collections::BTreeMap;
use std::collections::HashMap;

use flamegraph::Kind;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::value_error;

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

/// One method in one tier, of `Profile.frames`.
#[pyclass(frozen, get_all, module = "hprofiler._flamegraph")]
pub(crate) struct Frame {
    name: String,
    kind: &'static str,
    self_value: i64,
    total_value: i64,
}

#[pymethods]
impl Frame {
    fn __repr__(&self) -> String {
        format!(
            "Frame({:?}, {}, self={}, total={})",
            self.name, self.kind, self.self_value, self.total_value
        )
    }
}

impl From<flamegraph::Tier<'_>> for Frame {
    fn from(tier: flamegraph::Tier<'_>) -> Frame {
        Frame {
            name: tier.name.to_string(),
            kind: tier.kind.word(),
            self_value: tier.self_value,
            total_value: tier.total_value,
        }
    }
}

/// One stack of `Profile.paths`.
#[pyclass(frozen, get_all, module = "hprofiler._flamegraph")]
pub(crate) struct Stack {
    pub(crate) frames: Py<PyTuple>,
    pub(crate) values: Py<PyTuple>,
}

#[pymethods]
impl Stack {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let frames = self.frames.bind(py).repr()?;
        Ok(format!("Stack({frames}, {})", self.values.bind(py).repr()?))
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

/// One node of `Profile.nodes`.
#[pyclass(frozen, get_all, module = "hprofiler._flamegraph")]
pub(crate) struct Node {
    parent: u32,
    depth: u32,
    name: String,
    kind: &'static str,
    self_value: i64,
    total_value: i64,
    tiers: BTreeMap<&'static str, i64>,
}

#[pymethods]
impl Node {
    fn __repr__(&self) -> String {
        format!(
            "Node({:?}, {}, depth={}, self={}, total={})",
            self.name, self.kind, self.depth, self.self_value, self.total_value
        )
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

/// One node of `Diff.nodes`.
#[pyclass(frozen, get_all, module = "hprofiler._flamegraph")]
pub(crate) struct DiffNode {
    parent: u32,
    name: String,
    kind: &'static str,
    self_before: i64,
    self_after: i64,
    total_before: i64,
    total_after: i64,
}

#[pymethods]
impl DiffNode {
    fn __repr__(&self) -> String {
        format!(
            "DiffNode({:?}, {}, self {} to {}, total {} to {})",
            self.name,
            self.kind,
            self.self_before,
            self.self_after,
            self.total_before,
            self.total_after
        )
    }
}

impl From<flamegraph::DiffNode<'_>> for DiffNode {
    fn from(node: flamegraph::DiffNode<'_>) -> DiffNode {
        DiffNode {
            parent: node.parent,
            name: node.name.to_string(),
            kind: node.kind.word(),
            self_before: node.selfs[0],
            self_after: node.selfs[1],
            total_before: node.totals[0],
            total_after: node.totals[1],
        }
    }
}

/// One method or path that changed, of `Diff`.
#[pyclass(frozen, get_all, module = "hprofiler._flamegraph")]
pub(crate) struct Change {
    path: Py<PyTuple>,
    self_before: i64,
    self_after: i64,
    total_before: i64,
    total_after: i64,
}

#[pymethods]
impl Change {
    /// The method's name, or the last one of the path.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let path = self.path.bind(py);
        Ok(path.get_item(path.len().saturating_sub(1))?.unbind())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "Change({}, self {} to {}, total {} to {})",
            self.path.bind(py).repr()?,
            self.self_before,
            self.self_after,
            self.total_before,
            self.total_after
        ))
    }
}

impl Change {
    pub(crate) fn of(py: Python<'_>, change: flamegraph::Change) -> PyResult<Change> {
        Ok(Change {
            path: PyTuple::new(py, change.path)?.unbind(),
            self_before: change.selfs[0],
            self_after: change.selfs[1],
            total_before: change.totals[0],
            total_after: change.totals[1],
        })
    }
}
