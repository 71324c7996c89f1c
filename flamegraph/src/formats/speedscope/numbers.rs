//! The numbers of a file: arrays of them, the value they count to, and what is left of fractions.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::read::{wrong, Head};
use crate::profile::{Error, Profile, Result, ValueType};

/// More values than any real file has.
const MOST_VALUES: usize = 32;

/// Where a number goes.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) value: usize,
    /// By how much its unit is coarser than the value's.
    factor: i64,
}

impl Column {
    /// The value a profile of the file speaks of; profiles of one unit share one.
    pub(super) fn of(head: &Head<'_>, profile: &mut Profile, cells: usize) -> Result<Column> {
        let (meaning, factor) = match (&head.value, &*head.unit) {
            (Some(value), _) => (ValueType::new(&*value.name, &*value.unit), 1),
            (None, "none") => (ValueType::samples(), 1),
            (None, "bytes") => (ValueType::new("space", "bytes"), 1),
            (None, "nanoseconds") => (time(), 1),
            (None, "microseconds") => (time(), 1_000),
            (None, "milliseconds") => (time(), 1_000_000),
            (None, "seconds") => (time(), 1_000_000_000),
            (None, other) => return Err(wrong(format!("unknown unit {other:?}"))),
        };
        let known = profile.values().iter().position(|value| *value == meaning);
        // Our own files have one profile for each value, and values may be alike.
        let known = known.filter(|_| head.value.is_none());
        let value = match known {
            Some(known) => known,
            None if profile.values().len() == MOST_VALUES => {
                let limit = MOST_VALUES as u64;
                return Err(Error::Limit {
                    what: "values of the speedscope file",
                    limit,
                });
            }
            None => profile.push_value(meaning, cells)?,
        };
        Ok(Column { value, factor })
    }

    /// A number of the file in the value's unit, rounded where it has a fraction.
    pub(super) fn scale(self, number: &str) -> Result<i64> {
        let (whole, fraction) = self.parts(number)?;
        Ok(whole + i64::from(fraction >= 0.5))
    }

    /// The same without rounding: a whole number, and the fraction that is left, below 1.
    pub(super) fn parts(self, number: &str) -> Result<(i64, f64)> {
        let too_large = || wrong(format!("{number} does not fit in 64 bits"));
        if let Ok(whole) = number.parse::<i64>() {
            let whole = whole.checked_mul(self.factor).ok_or_else(too_large)?;
            return Ok((whole, 0.0));
        }
        let parsed: f64 = number
            .parse()
            .map_err(|_| wrong(format!("{number:.40} where a number should be")))?;
        let scaled = parsed * self.factor as f64;
        // 2^63 is the first that does not fit; NaN and infinities are not JSON.
        if scaled.abs() >= 9_223_372_036_854_775_808.0 {
            return Err(too_large());
        }
        // Numbers this large have no fractions, so that one more of a whole number fits.
        Ok((scaled.floor() as i64, scaled - scaled.floor()))
    }
}

/// Nothing says whether it is CPU time or time on the clock.
fn time() -> ValueType {
    ValueType::new("time", "nanoseconds")
}

/// Calls `found` with the number of each element and the element.
pub(super) fn each<'a, T: Deserialize<'a>>(
    array: &'a RawValue,
    found: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    let mut json = serde_json::Deserializer::from_str(array.get());
    let done = json.deserialize_seq(Elements(found, PhantomData));
    done.unwrap_or_else(|error| {
        // Without line and column, which are not those of the file.
        let error = error.to_string();
        let place = error.rfind(" at line ").unwrap_or(error.len());
        Err(wrong(&error[..place]))
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

/// For each value the fraction, below 1, that is left of its weights so far: it counts to the next one, so that totals
/// are right.
#[derive(Default)]
pub(super) struct Fractions([f64; MOST_VALUES]);

impl Fractions {
    /// Adds a fraction below 1; returns what became a whole number.
    pub(super) fn take(&mut self, value: usize, fraction: f64) -> i64 {
        let sum = self.0[value] + fraction;
        let whole = (sum + 0.5).floor();
        self.0[value] = sum - whole;
        whole as i64
    }
}
