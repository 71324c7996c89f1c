//! Puts the parts of a recording together that follow one another, with the times of their samples.

use std::collections::HashMap;

use crate::profile::{Error, Profile, Result, Row, Slice, Times, TimesBuilder};

/// The sum of the parts of one recording. Its times have at most `rows` rows: buckets become longer where there are more.
/// They are known if those of every part with samples are. No parts are an error.
pub fn of_parts(parts: Vec<Profile>, rows: usize) -> Result<Profile> {
    let known = |part: &Profile| part.times().is_some() || part.is_empty();
    let timed: Vec<&Times> = match parts.iter().all(known) {
        true => parts.iter().filter_map(Profile::times).collect(),
        false => Vec::new(),
    };
    // Where the rows of one part have no amounts, each of its samples stands for the same.
    let amounts = timed
        .iter()
        .all(|times| times.has_amounts() || times.rows().is_empty());
    let start = timed.iter().map(|times| times.start).min();
    let width = timed.iter().map(|times| times.width).max().unwrap_or(0);
    let mut collected = TimesBuilder::of_width(rows, width);
    let mut slices = Slices::default();
    let nothing = || Error::Empty("a sum of no parts".to_owned());
    let mut sum = Profile::new(parts.first().ok_or_else(nothing)?.values().to_vec());
    for (number, part) in parts.iter().enumerate() {
        sum.check_sums(part)?;
        let nodes = sum.add_part(part, number == 0)?;
        let (Some(start), Some(times)) = (start, part.times()) else {
            continue;
        };
        let numbers = slices.numbers(&times.slices);
        let ahead = times.start.saturating_sub(start);
        for row in times.rows() {
            let bucket = u64::from(row.bucket).saturating_mul(times.width);
            let moment = ahead.saturating_add(i64::try_from(bucket).unwrap_or(i64::MAX));
            let row = Row {
                node: nodes[row.node as usize],
                slice: numbers.get(usize::from(row.slice)).copied().unwrap_or(0),
                amount: if amounts { row.amount } else { 0 },
                ..*row
            };
            collected.add(0, moment, row);
        }
    }
    if let Some(start) = start {
        sum.set_times(Some(collected.times(0, start, slices.all, Some)));
    }
    Ok(sum)
}

/// The slices of all parts, each once.
#[derive(Default)]
struct Slices {
    all: Vec<Slice>,
    known: HashMap<Slice, u16>,
}

impl Slices {
    /// What rows of a part refer to, and to what here; 0: none, also those that are too many.
    fn numbers(&mut self, slices: &[Slice]) -> Vec<u16> {
        let mut numbers = vec![0];
        for slice in slices {
            let next = u16::try_from(self.all.len() + 1).ok();
            let number = self.known.get(slice).copied().or(next);
            if let (Some(number), true) = (number, number == next) {
                self.all.push(slice.clone());
                self.known.insert(slice.clone(), number);
            }
            numbers.push(number.unwrap_or(0));
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ValueType;

    fn slice(name: &str) -> Slice {
        Slice {
            name: name.to_owned(),
            certain: true,
        }
    }

    /// Stacks of one frame with so many samples in a bucket of a slice.
    fn part(start: i64, width: u64, slices: &[&str], stacks: &[(&str, u32, u16)]) -> Profile {
        let mut profile = Profile::new(vec![ValueType::new("samples", "count")]);
        let mut rows = Vec::new();
        for (frame, bucket, slice) in stacks {
            rows.push(Row {
                node: profile.add_stack(&[frame], &[2]).unwrap(),
                bucket: *bucket,
                slice: *slice,
                samples: 2,
                ..Row::default()
            });
        }
        let slices = slices.iter().map(|name| self::slice(name)).collect();
        profile.set_times(Some(Times::new(start, width, slices, rows)));
        profile
    }

    #[test]
    fn parts_that_follow_one_another() {
        let parts = vec![
            part(1_000_000, 20_000, &["stage 1"], &[("a", 0, 1), ("b", 3, 0)]),
            part(
                1_100_000,
                40_000,
                &["stage 2", "stage 1"],
                &[("b", 1, 1), ("a", 2, 2)],
            ),
        ];
        let sum = of_parts(parts, 100).unwrap();
        assert_eq!(sum.total(0).unwrap(), 8);
        let times = sum.times().unwrap();
        assert_eq!((times.start, times.width), (1_000_000, 40_000));
        assert_eq!(times.slices, [slice("stage 1"), slice("stage 2")]);
        let mut rows: Vec<_> = times
            .rows()
            .iter()
            .map(|row| (row.bucket, row.slice, row.samples))
            .collect();
        rows.sort();
        assert_eq!(rows, [(0, 1, 2), (1, 0, 2), (3, 2, 2), (4, 1, 2)]);
    }

    #[test]
    fn times_that_are_not_known_of_all_are_left_out() {
        let mut without = part(0, 20_000, &[], &[("a", 0, 0)]);
        without.set_times(None);
        let empty = Profile::new(vec![ValueType::new("samples", "count")]);
        let with = || part(0, 20_000, &[], &[("a", 0, 0)]);
        assert!(of_parts(vec![with(), without], 9)
            .unwrap()
            .times()
            .is_none());
        assert!(of_parts(vec![empty, with()], 9).unwrap().times().is_some());
        assert!(of_parts(Vec::new(), 9).is_err());
    }

    #[test]
    fn buckets_become_longer_where_parts_have_too_many_rows() {
        let many: Vec<_> = (0..40).map(|bucket| ("a", bucket, 0)).collect();
        let sum = of_parts(vec![part(0, 20_000, &[], &many)], 10).unwrap();
        let times = sum.times().unwrap();
        assert!(times.width > 20_000 && times.rows().len() <= 20);
        assert_eq!(times.rows().iter().map(|row| row.samples).sum::<u32>(), 80);
    }
}
