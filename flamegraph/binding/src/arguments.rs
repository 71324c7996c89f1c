//! Arguments that Python users may give in more than one form.

use std::path::PathBuf;

use flamegraph::{Pattern, Profile};
use pyo3::prelude::*;

use crate::value_error;

/// A value of a profile, by its place or by its name.
#[derive(FromPyObject)]
pub(crate) enum Value {
    Index(usize),
    Name(String),
}

impl Value {
    /// Its index in this profile.
    pub(crate) fn of(&self, profile: &Profile) -> flamegraph::Result<usize> {
        match self {
            Value::Index(index) => profile.total(*index).map(|_| *index),
            Value::Name(name) => profile.value_named(name),
        }
    }
}

impl Default for Value {
    fn default() -> Value {
        Value::Index(0)
    }
}

/// One value or several.
#[derive(FromPyObject)]
pub(crate) enum Values {
    One(Value),
    Many(Vec<Value>),
}

impl Values {
    pub(crate) fn into_vec(self) -> Vec<Value> {
        match self {
            Values::One(value) => vec![value],
            Values::Many(values) => values,
        }
    }
}

/// One path or several.
#[derive(FromPyObject)]
pub(crate) enum Paths {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

impl Paths {
    pub(crate) fn into_vec(self) -> Vec<PathBuf> {
        match self {
            Paths::One(path) => vec![path],
            Paths::Many(paths) => paths,
        }
    }
}

/// One regular expression or several.
#[derive(FromPyObject)]
pub(crate) enum Patterns {
    One(String),
    Many(Vec<String>),
}

impl Patterns {
    pub(crate) fn compiled(&self) -> PyResult<Vec<Pattern>> {
        let texts = match self {
            Patterns::One(text) => std::slice::from_ref(text),
            Patterns::Many(texts) => texts.as_slice(),
        };
        let compile = |text: &String| Pattern::new(text).map_err(value_error);
        texts.iter().map(compile).collect()
    }
}
