//! Arguments that Python users may give in more than one form.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use flamegraph::{Error, Pattern, Profile};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

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
        let number = text_of(value);
        return PyValueError::new_err(format!("{what}: {number} is out of bounds"));
    }
    error
}

fn text_of(number: &Bound<'_, PyAny>) -> String {
    // One of more than 4,300 digits has no text.
    let text = number.str();
    text.map_or("so large".to_string(), |text| text.to_string())
}

/// A value of a profile, by its place or by its name.
pub(crate) enum Value {
    Index(usize),
    /// A number that is no place in any profile.
    Nowhere(String),
    Name(String),
}

impl FromPyObject<'_, '_> for Value {
    type Error = PyErr;

    fn extract(argument: Borrowed<'_, '_, PyAny>) -> PyResult<Value> {
        if argument.is_instance_of::<PyInt>() {
            let nowhere = |_| Value::Nowhere(text_of(&argument));
            return Ok(argument.extract().map_or_else(nowhere, Value::Index));
        }
        argument.extract().map(Value::Name)
    }
}

impl Value {
    /// Its index in this profile.
    pub(crate) fn of(&self, profile: &Profile) -> flamegraph::Result<usize> {
        match self {
            Value::Index(index) => profile.total(*index).map(|_| *index),
            Value::Nowhere(number) => Err(Error::Usage(format!(
                "no value {number} in this profile; there are: {}",
                profile.value_list()
            ))),
            Value::Name(name) => profile.value_named(name),
        }
    }
}

impl Default for Value {
    fn default() -> Value {
        Value::Index(0)
    }
}

/// One or several.
#[derive(FromPyObject)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

impl OneOrMany<String> {
    /// These as regular expressions.
    pub(crate) fn compiled(self) -> PyResult<Vec<Pattern>> {
        let texts = self.into_vec().into_iter();
        let compile = |text: String| Pattern::new(&text).map_err(value_error);
        texts.map(compile).collect()
    }
}

/// A file to read: the number of one that is open, which is read from where it stands, or a path.
#[derive(FromPyObject)]
pub(crate) enum Source {
    Open(i32),
    Path(PathBuf),
}

impl Source {
    pub(crate) fn file(&self) -> io::Result<File> {
        match self {
            Source::Path(path) => File::open(path),
            Source::Open(number) if *number < 0 => Err(io::Error::other("Bad file descriptor")),
            Source::Open(number) => {
                // SAFETY: the number is not negative, and used for nothing but a duplicate, of which the
                // system says whether there can be one.
                let file = unsafe { BorrowedFd::borrow_raw(*number) };
                file.try_clone_to_owned().map(File::from)
            }
        }
    }

    /// What errors call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::Open(0) => "stdin".to_string(),
            Source::Open(number) => format!("file descriptor {number}"),
            Source::Path(path) => path.display().to_string(),
        }
    }
}
