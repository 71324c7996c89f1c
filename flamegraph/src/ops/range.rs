//! Parts of a profile by the times of its samples: a range of time, a slice, bands of durations.

use std::ops::Range;

use crate::ops::pattern::Pattern;
use crate::ops::rebuild::Rebuild;
use crate::ops::split::Split;
use crate::profile::Slice;
use crate::profile::{Error, Node, Order, Profile, Result, Row, Step, Times};

impl Profile {
    /// The samples of a half-open range of time, in microseconds since 1970. Buckets count where they begin. The values
    /// of neighbouring ranges add up exactly. An error without times.
    pub fn in_range(&self, from: i64, to: i64) -> Result<Profile> {
        let times = self.known_times()?;
        self.part(times, |row| row.bucket, times.buckets(from, to))
    }

    /// The samples from a moment on, in microseconds since 1970; their times begin there, too. An error without times.
    pub fn since(&self, from: i64) -> Result<Profile> {
        let times = self.known_times()?;
        let first = times.buckets(from, i64::MAX).start;
        let mut part = self.in_range(from, i64::MAX)?;
        let later = part.times().map(|times| times.beginning_at(first));
        part.set_times(later);
        Ok(part)
    }

    /// The samples of one slice, by number as in [`Row::slice`]; all slices add up exactly. An error without times.
    pub fn in_slice(&self, slice: u16) -> Result<Profile> {
        let slice = u32::from(slice);
        self.part(
            self.known_times()?,
            |row| u32::from(row.slice),
            slice..slice + 1,
        )
    }

    /// The samples that lasted so long, as in [`Row::band`]; all bands add up exactly. An error without times.
    pub fn in_bands(&self, bands: Range<u8>) -> Result<Profile> {
        let bands = u32::from(bands.start)..u32::from(bands.end);
        self.part(self.known_times()?, |row| u32::from(row.band), bands)
    }

    /// The same profile whose samples belong to slices by the time when they were taken: those of stacks with a frame in
    /// which any of `within` is found, and none in which any of `without` is. `ranges` are half-open ranges of buckets,
    /// in order and apart, each with a number in `slices`, counted from 1. A sample that has a slice keeps it, unless
    /// only the new one is certain; stacks with any of `without` have none. An error without times.
    pub fn assigned(
        &self,
        within: &[Pattern],
        without: &[Pattern],
        slices: &[Slice],
        ranges: &[(u32, u32, u16)],
    ) -> Result<Profile> {
        let excluded = self.reached(without);
        let nodes = self.reached(within);
        let times = self.known_times()?.assigned(&nodes, slices, ranges)?;
        let rows = times
            .rows()
            .iter()
            .map(|row| match excluded[row.node as usize] {
                true => Row { slice: 0, ..*row },
                false => *row,
            });
        let times = times.with_rows(rows);
        let mut copy = self.clone();
        copy.set_times(Some(times));
        Ok(copy)
    }

    /// The same profile whose slices have other names, where `name` gives one. An error without times.
    pub fn with_slices_named(&self, name: impl Fn(&str) -> Option<String>) -> Result<Profile> {
        let times = self.known_times()?.renamed(name);
        let mut copy = self.clone();
        copy.set_times(Some(times));
        Ok(copy)
    }

    fn known_times(&self) -> Result<&Times> {
        let unknown = || Error::Usage("it is not known when its samples were taken".to_string());
        self.times().ok_or_else(unknown)
    }

    /// The rows whose key lies in a range. Each value is dealt out in the order of keys, so that parts add up.
    fn part(&self, times: &Times, key: impl Fn(&Row) -> u32, keys: Range<u32>) -> Result<Profile> {
        let of = |weight: fn(&Row) -> u64| {
            let mut weights = Weights::new(self.tree.len());
            for row in times.rows() {
                weights.add(row.node, weight(row), key(row), &keys);
            }
            weights
        };
        let samples = of(|row| u64::from(row.samples));
        let amounts = times.has_amounts().then(|| of(|row| row.amount));
        let mut copy = Rebuild::with_values(self, self.values().to_vec(), None);
        let nodes = self.copy_paths(&mut copy, |node| samples.nodes[node as usize] > 0)?;
        let order = Order::of(self);
        for value in 0..self.values().len() {
            let has_amounts = value == times.amounts_of(self);
            let weights = amounts.as_ref().filter(|_| has_amounts);
            let weights = weights.unwrap_or(&samples);
            let mut split = Split::new(self.total(value)? as u128, weights.all);
            split.next(weights.before);
            for step in order.walk() {
                if let Step::Enter(node) = step {
                    let amount = split.next(weights.nodes[node as usize]);
                    copy.add(nodes[node as usize], value, amount)?;
                }
            }
        }
        let mut part = copy.finish();
        let rows = times.rows().iter().filter(|row| keys.contains(&key(row)));
        let rows = rows.map(|row| Row {
            node: nodes[row.node as usize],
            ..*row
        });
        part.set_times(Some(times.with_rows(rows)));
        Ok(part)
    }
}

/// What each node has in a part, and how much there is before the part and in all.
struct Weights {
    nodes: Vec<u128>,
    before: u128,
    all: u128,
}

impl Weights {
    fn new(nodes: usize) -> Weights {
        Weights {
            nodes: vec![0; nodes],
            before: 0,
            all: 0,
        }
    }

    fn add(&mut self, node: Node, weight: u64, key: u32, part: &Range<u32>) {
        let weight = u128::from(weight);
        self.all += weight;
        if part.contains(&key) {
            self.nodes[node as usize] += weight;
        } else if key < part.start {
            self.before += weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::{ValueType, ROOT};

    /// Stacks of up to three frames; samples of them in some buckets, slices and bands.
    #[derive(Clone, Debug)]
    struct Sample {
        stack: Vec<u8>,
        bucket: u32,
        slice: u16,
        band: u8,
        samples: u32,
        amount: u64,
    }

    fn samples() -> impl Strategy<Value = Vec<Sample>> {
        let stack = prop::collection::vec(0..4u8, 0..4);
        let sample = (stack, 0..9u32, 0..3u16, 0..5u8, 1..9u32, 0..1000u64);
        let sample = sample.prop_map(|(stack, bucket, slice, band, samples, amount)| Sample {
            stack,
            bucket,
            slice,
            band,
            samples,
            amount,
        });
        prop::collection::vec(sample, 0..30)
    }

    const NAMES: [&str; 4] = ["a", "[t]", "J$$Lambda$1/0x0000000800c03000.run", "b_[j]"];

    /// `amounts`: the second value is the sum of amounts; else 10 for each sample.
    fn timed(samples: &[Sample], amounts: bool) -> Profile {
        let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
        let mut rows = Vec::new();
        for sample in samples {
            let names: Vec<&str> = sample
                .stack
                .iter()
                .map(|&name| NAMES[name as usize])
                .collect();
            let amount = match amounts {
                true => sample.amount,
                false => 10 * u64::from(sample.samples),
            };
            let values = [i64::from(sample.samples), amount as i64];
            profile.add_stack(&names, &values).unwrap();
            let mut node = ROOT;
            for name in names {
                let frame = profile.frames.intern(name.as_bytes()).unwrap();
                node = profile.child(node, frame).unwrap();
            }
            rows.push(Row {
                node,
                bucket: sample.bucket,
                slice: sample.slice,
                band: sample.band,
                samples: sample.samples,
                amount: if amounts { sample.amount } else { 0 },
            });
        }
        profile.set_times(Some(Times::new(1000, 10, Vec::new(), rows)));
        profile
    }

    fn totals(profile: &Profile) -> Vec<i64> {
        let values = 0..profile.values().len();
        values.map(|value| profile.total(value).unwrap()).collect()
    }

    /// Whether the rows of each node add up to its own values; then they do so for any part.
    fn rows_add_up(profile: &Profile, per_sample: Option<i64>) -> bool {
        let mut sums = vec![[0; 2]; profile.tree.len()];
        for row in profile.times().unwrap().rows() {
            let sum = &mut sums[row.node as usize];
            sum[0] += i64::from(row.samples);
            sum[1] += per_sample.map_or(row.amount as i64, |each| each * i64::from(row.samples));
        }
        let columns = [0, 1].map(|value| profile.selves(value));
        (0..sums.len()).all(|node| sums[node] == columns.map(|column| column[node]))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn times_go_where_self_values_go(samples in samples(), amounts: bool) {
            let profile = timed(&samples, amounts);
            let per_sample = (!amounts || samples.iter().all(|sample| sample.amount == 0)).then_some(if amounts { 0 } else { 10 });
            let patterns = [crate::ops::Pattern::new("^a$|pool").unwrap()];
            let rules = crate::ops::NameRules::builtin();
            for made in [
                Ok(profile.clone()),
                profile.select(&[0, 1]),
                profile.including(&patterns),
                profile.excluding(&patterns),
                profile.focused(&patterns[0], false),
                profile.below(&patterns),
                profile.trimmed(&patterns[0]),
                profile.into_callers(&patterns, false),
                profile.without_threads(),
                profile.without_callers(),
                crate::ops::SureCallers::of(&[&profile]).cut(&profile),
                profile.canonical(rules),
                profile.merged_tiers(0),
                profile.inverted(),
                profile.clone().into_ordered(),
                profile.in_slice(1),
                profile.in_bands(1..3),
                profile.in_range(1015, 1040),
            ] {
                prop_assert!(rows_add_up(&made.unwrap(), per_sample));
            }
        }

        #[test]
        fn parts_add_up_to_the_whole(samples in samples(), amounts: bool, total in 0..10_000i64, cut in 0..12i64) {
            let profile = timed(&samples, amounts);
            let scaled = match profile.total(1).unwrap() {
                0 => profile,
                _ => profile.with_total(1, total).unwrap(),
            };
            let at = 1000 + 10 * cut;
            let ranges = [scaled.in_range(i64::MIN, at), scaled.in_range(at, i64::MAX)];
            let slices = [0, 1, 2].map(|slice| scaled.in_slice(slice));
            let bands = [scaled.in_bands(0..2), scaled.in_bands(2..9)];
            for parts in [&ranges[..], &slices, &bands] {
                let mut sums = [0, 0];
                for part in parts {
                    for (sum, total) in sums.iter_mut().zip(totals(part.as_ref().unwrap())) {
                        *sum += total;
                    }
                }
                let has_parts = samples.iter().any(|sample| !amounts || sample.amount > 0);
                prop_assert_eq!(sums[0], scaled.total(0).unwrap());
                prop_assert!(sums[1] == scaled.total(1).unwrap() || !has_parts);
            }
        }
    }

    #[test]
    fn a_range_has_the_samples_of_its_buckets() {
        let sample = |stack: u8, bucket| Sample {
            stack: vec![0, stack],
            bucket,
            slice: 0,
            band: 0,
            samples: 1,
            amount: 0,
        };
        let profile = timed(&[sample(0, 0), sample(3, 1), sample(3, 2)], false);
        let mut folded = Vec::new();
        let part = profile.in_range(1010, 1020).unwrap();
        part.write_folded(&mut folded, 1, true).unwrap();
        assert_eq!(String::from_utf8(folded).unwrap(), "a;b_[j] 10\n");
        assert_eq!(part.times().unwrap().rows().len(), 1);
        assert!(profile.in_range(1030, 1010).unwrap().is_empty());
        let rest = profile.since(1005).unwrap();
        let times = rest.times().unwrap();
        let buckets: Vec<u32> = times.rows().iter().map(|row| row.bucket).collect();
        assert_eq!((times.start, buckets), (1010, vec![0, 1]));
        assert_eq!(
            totals(&rest),
            totals(&profile.in_range(1010, 1030).unwrap())
        );
        assert_eq!(profile.since(0).unwrap().times(), profile.times());
        let mut sum = profile.clone();
        sum.merge(&profile).unwrap();
        let error = sum.in_range(0, 1).err().unwrap().to_string();
        assert!(error.contains("not known when"), "{error}");
    }
}
