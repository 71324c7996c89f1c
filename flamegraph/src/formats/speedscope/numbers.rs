//! The numbers of a file: arrays, the values they belong to, and remainders of fractions.

use std::collections::hash_map::Entry;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use serde_json::value::RawValue;

use super::read::{wrong, Head};
use crate::profile::{Error, Node, Profile, Result, ValueType};

/// More values than any real file has.
const MOST_VALUES: usize = 32;

/// The value that a number belongs to.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) value: usize,
    /// The file's unit in units of the value.
    factor: i64,
}

impl Column {
    /// The value of a profile of the file; profiles with the same unit share one.
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
        // Our own files have one profile for each value, and values may be equal.
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

    /// A number of the file in the value's unit, rounded.
    pub(super) fn scale(self, number: &str) -> Result<i64> {
        let (whole, fraction) = self.parts(number)?;
        Ok(whole + i64::from(fraction >= 0.5))
    }

    /// The same without rounding: a whole number, and a fraction below 1.
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
        // 2^63 is the first number that does not fit; NaN and infinities are not JSON.
        if scaled.abs() >= 9_223_372_036_854_775_808.0 {
            return Err(too_large());
        }
        // The largest numbers have no fractions, so rounding up always fits.
        Ok((scaled.floor() as i64, scaled - scaled.floor()))
    }
}

/// The file does not say whether it is CPU time or wall-clock time.
fn time() -> ValueType {
    ValueType::new("time", "nanoseconds")
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

/// Most stacks whose fractions are summed; the weights of further ones are rounded one by one.
const MOST: usize = 1 << 20;

/// The remaining fraction, below 1, of each stack and value.
#[derive(Default)]
pub(crate) struct Fractions {
    left: HashMap<(usize, Node), f64, RandomState>,
}

impl Fractions {
    /// Adds a fraction below 1; returns what became a whole number.
    pub(crate) fn take(&mut self, leaf: Node, value: usize, fraction: f64) -> i64 {
        if fraction == 0.0 {
            return 0;
        }
        let full = self.left.len() >= MOST;
        let left = match self.left.entry((value, leaf)) {
            Entry::Vacant(_) if full => return i64::from(fraction >= 0.5),
            entry => entry.or_insert(0.0),
        };
        *left += fraction;
        let whole = left.floor();
        *left -= whole;
        whole as i64
    }

    /// Distributes what is missing of the totals to the largest fractions.
    pub(crate) fn share_out(self, profile: &mut Profile) -> Result<()> {
        for value in 0..profile.values().len() {
            let of_value = self.left.iter().filter(|((of, _), _)| *of == value);
            let mut left: Vec<(Node, f64)> =
                of_value.map(|(&(_, leaf), &left)| (leaf, left)).collect();
            // Equal fractions are sorted by node, so that the result and the rounding of the sum are reproducible.
            left.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
            let missing = left.iter().map(|&(_, left)| left).sum::<f64>().round();
            for &(leaf, _) in left.iter().take(missing as usize) {
                profile.add(leaf, value, 1)?;
            }
        }
        Ok(())
    }
}
