//! Arguments that Python users may give in more than one form.

use std::path::PathBuf;

use flamegraph::{Pattern, Profile};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::value_error;

/// A number that an argument is; one that is too small or too large for it is a ValueError.
pub(crate) struct Number<T>(pub(crate) T);

impl<'py, T> FromPyObject<'_, 'py> for Number<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(argument: Borrowed<'_, 'py, PyAny>) -> PyResult<Number<T>> {
        let number = argument.extract().map(Number);
        number.map_err(|error| within_bounds(error, "the number", &argument))
    }
}

/// What Python calls an overflow is a wrong value, and is said with what it is of; other errors stay.
pub(crate) fn within_bounds(error: PyErr, what: &str, value: &Bound<'_, PyAny>) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(value.py()) {
        // A number of more than 4,300 digits has no text.
        let number = value
            .str()
            .map_or("it".to_string(), |text| text.to_string());
        return PyValueError::new_err(format!("{what}: {number} is out of bounds"));
    }
    error
}

/// A value of a profile, by its place or by its name.
pub(crate) enum Value {
    Index(usize),
    Name(String),
}

impl FromPyObject<'_, '_> for Value {
    type Error = PyErr;

    fn extract(argument: Borrowed<'_, '_, PyAny>) -> PyResult<Value> {
        if argument.is_instance_of::<PyInt>() {
            let index: Number<usize> = argument.extract()?;
            return Ok(Value::Index(index.0));
        }
        argument.extract().map(Value::Name)
    }
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
pub(crate) enum Values {
    One(Value),
    Many(Vec<Value>),
}

impl FromPyObject<'_, '_> for Values {
    type Error = PyErr;

    fn extract(argument: Borrowed<'_, '_, PyAny>) -> PyResult<Values> {
        if argument.is_instance_of::<PyInt>() || argument.is_instance_of::<PyString>() {
            return argument.extract().map(Values::One);
        }
        argument.extract().map(Values::Many)
    }
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
