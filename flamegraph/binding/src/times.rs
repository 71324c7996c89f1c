//! What Python sees of a profile's times.

use pyo3::prelude::*;

use crate::tables::row;

row! {
    /// `Profile.times`; see the library's.
    Times {
        start: i64,
        width: u64,
        end: i64,
        slices: Vec<(String, bool)>,
        has_amounts: bool,
        has_bands: bool,
        rows: usize,
        samples: u64,
        slice_samples: Vec<u64>,
    }
}

impl From<&flamegraph::Times> for Times {
    fn from(times: &flamegraph::Times) -> Times {
        let rows = times.rows();
        let buckets = rows.iter().map(|row| u64::from(row.bucket) + 1).max();
        let length = times.width.saturating_mul(buckets.unwrap_or(0));
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let slices = times.slices.iter();
        let mut slice_samples = vec![0; times.slices.len() + 1];
        for row in rows {
            slice_samples[usize::from(row.slice)] += u64::from(row.samples);
        }
        Times {
            start: times.start,
            width: times.width,
            end: times.start.saturating_add(length),
            slices: slices
                .map(|slice| (slice.name.clone(), slice.certain))
                .collect(),
            has_amounts: times.has_amounts(),
            has_bands: rows.iter().any(|row| row.band > 0),
            rows: rows.len(),
            samples: slice_samples.iter().sum(),
            slice_samples,
        }
    }
}
