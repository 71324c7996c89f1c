//! JSON arrays, element by element: none of them is held as a whole.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::read::wrong;
use crate::profile::{Error, Result};

/// Calls `found` with the number of each element and the element.
pub(super) fn each<'a, T: Deserialize<'a>>(
    array: &'a RawValue,
    found: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    let mut failed = None;
    let elements = Elements {
        found,
        failed: &mut failed,
        element: PhantomData,
    };
    let mut json = serde_json::Deserializer::from_str(array.get());
    let done = json.deserialize_seq(elements);
    match (failed, done) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(wrong(without_place(&error))),
        (None, Ok(())) => Ok(()),
    }
}

/// The message without line and column, which are not those of the file.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ")
        .map_or(text.clone(), |end| text[..end].to_string())
}

struct Elements<'f, T, F> {
    found: F,
    failed: &'f mut Option<Error>,
    element: PhantomData<T>,
}

impl<'a, T: Deserialize<'a>, F: FnMut(usize, T) -> Result<()>> Visitor<'a> for Elements<'_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut array: A) -> std::result::Result<(), A::Error> {
        let mut number = 0;
        while let Some(element) = array.next_element()? {
            if let Err(error) = (self.found)(number, element) {
                *self.failed = Some(error);
                return Err(A::Error::custom("stopped"));
            }
            number += 1;
        }
        Ok(())
    }
}

/// The texts of the elements of an array of numbers, which is known to be JSON.
pub(super) fn numbers(array: &RawValue) -> Result<impl Iterator<Item = &str>> {
    let text = array.get().trim();
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let inner = inner.ok_or_else(|| wrong(format!("{text:.40} where an array should be")))?;
    let empty = inner.trim().is_empty();
    Ok(inner.split(',').map(str::trim).filter(move |_| !empty))
}
