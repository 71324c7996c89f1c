//! The elements of a JSON array, one at a time.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::profile::{Error, Result};

/// Calls `found` with the number of each element and the element.
pub(crate) fn each<'a, T: Deserialize<'a>>(
    format: &'static str,
    array: &'a RawValue,
    found: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    let mut json = serde_json::Deserializer::from_str(array.get());
    let done = json.deserialize_seq(Elements(found, PhantomData));
    done.unwrap_or_else(|error| {
        // Without line and column, which are relative to the array.
        let error = error.to_string();
        let place = error.rfind(" at line ").unwrap_or(error.len());
        Err(Error::Damaged(format, error[..place].to_string()))
    })
}

/// Holds one element at a time: a small file can have a billion of them.
struct Elements<F, T>(F, PhantomData<T>);

impl<'a, T: Deserialize<'a>, F: FnMut(usize, T) -> Result<()>> Visitor<'a> for Elements<F, T> {
    type Value = Result<()>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(
        mut self,
        mut array: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let mut done = Ok(());
        for number in 0.. {
            if done.is_err() {
                // The parser expects that the whole array is read.
                while array.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
            let Some(element) = array.next_element()? else {
                break;
            };
            done = (self.0)(number, element);
        }
        Ok(done)
    }
}
