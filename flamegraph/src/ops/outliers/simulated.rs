//! Simulated clusters: identical hosts, with samples alone and in bursts, and one that burns more.

use super::compare::Samples;
use super::{Distance, Outliers};
use crate::profile::{Profile, ValueType};

/// A small random number generator with a fixed seed.
struct Random(u64);

impl Random {
    /// Between 0 and 1, both excluded.
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A random method, given the cumulated shares.
    fn method(&mut self, sums: &[f64]) -> usize {
        let at = self.next();
        sums.partition_point(|&sum| sum < at).min(sums.len() - 1)
    }
}

/// A cluster of identical hosts: the nth method has 1/n of the first one's samples.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    methods: usize,
    hosts: usize,
    /// Of the first host; the next two have twice and three times as many, and so on in turn.
    samples: usize,
    /// How many samples of the same method follow each other on average.
    burst: f64,
}

impl Cluster {
    fn shares(self) -> Vec<f64> {
        let weights = (1..=self.methods).map(|rank| 1.0 / rank as f64);
        let sum: f64 = weights.clone().sum();
        weights.map(|weight| weight / sum).collect()
    }

    fn host(self, shares: &[f64], number: usize, random: &mut Random) -> Vec<u64> {
        let sums = shares.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        let sums: Vec<f64> = sums.collect();
        let mut counts = vec![0; self.methods];
        let mut left = self.samples * (1 + number % 3);
        while left > 0 {
            let method = random.method(&sums);
            let longer = match self.burst > 1.0 {
                true => (random.next().ln() / (1.0 - 1.0 / self.burst).ln()) as usize,
                false => 0,
            };
            let run = (1 + longer).min(left);
            counts[method] += run as u64;
            left -= run;
        }
        counts
    }

    fn recorded(self, random: &mut Random) -> Vec<Vec<u64>> {
        let shares = self.shares();
        let hosts = 0..self.hosts;
        hosts
            .map(|number| self.host(&shares, number, random))
            .collect()
    }
}

pub(super) fn distances(hosts: &[Vec<u64>]) -> Vec<Option<Distance>> {
    let mut outliers = Outliers::new();
    for counts in hosts {
        outliers.add(&profile(counts), 0, None).unwrap();
    }
    outliers.distances()
}

fn profile(counts: &[u64]) -> Profile {
    let mut profile = Profile::new(vec![ValueType::new("samples", "count")]);
    for (method, &count) in counts.iter().enumerate() {
        let stack = ["main".to_string(), format!("Job.m{method}")];
        profile.add_stack(&stack, &[count as i64]).unwrap();
    }
    profile
}

fn alarms(distances: &[Option<Distance>]) -> usize {
    let odd = distances.iter().flatten().filter(|one| one.outlier);
    odd.count()
}

#[test]
fn identical_hosts_are_never_outliers() {
    let mut random = Random(1);
    let few = [(2, 3, 300), (2, 3, 3000), (2, 8, 1000), (3, 4, 1000)];
    let many = [(3, 3, 2000), (20, 3, 500), (60, 5, 700), (60, 40, 200)];
    for (methods, hosts, samples) in few.into_iter().chain(many) {
        for burst in [1.0, 5.0, 25.0] {
            let cluster = Cluster {
                methods,
                hosts,
                samples,
                burst,
            };
            let clusters = (0..100).map(|_| alarms(&distances(&cluster.recorded(&mut random))));
            assert_eq!(clusters.sum::<usize>(), 0, "{cluster:?}");
        }
    }
}

#[test]
fn a_host_that_burns_a_tenth_more_in_one_method_is_found_and_nobody_else() {
    let mut random = Random(2);
    for (methods, hosts, samples) in [(30, 3, 12_000), (100, 5, 6000), (200, 40, 4000)] {
        let cluster = Cluster {
            methods,
            hosts,
            samples,
            burst: 1.0,
        };
        let mut shares: Vec<f64> = cluster.shares().iter().map(|share| share / 1.1).collect();
        shares[1] += 0.1 / 1.1;
        for _ in 0..20 {
            let mut recorded = cluster.recorded(&mut random);
            recorded[2] = cluster.host(&shares, 0, &mut random);
            let found = distances(&recorded);
            let odd = found[2].as_ref().unwrap();
            assert!(odd.outlier, "{cluster:?} {odd:?}");
            assert_eq!(odd.methods[0].name, "Job.m1");
            let more = odd.methods[0].share - odd.methods[0].usual;
            assert!((0.05..0.11).contains(&more), "{odd:?}");
            assert!(odd.divergence > odd.noise, "{odd:?}");
            assert_eq!(alarms(&found), 1, "{cluster:?}");
        }
    }
}

#[test]
fn noise_is_what_the_divergence_of_identical_hosts_is_on_average() {
    let mut random = Random(3);
    let cluster = Cluster {
        methods: 50,
        hosts: 10,
        samples: 5000,
        burst: 1.0,
    };
    let (mut measured, mut expected_noise) = (0.0, 0.0);
    for _ in 0..50 {
        for one in distances(&cluster.recorded(&mut random)).iter().flatten() {
            measured += one.divergence;
            expected_noise += one.noise;
        }
    }
    assert!(
        (0.7..1.3).contains(&(measured / expected_noise)),
        "{measured} {expected_noise}"
    );
}

#[test]
fn two_hosts_have_distances_but_neither_is_the_odd_one() {
    let found = distances(&[vec![900_000, 100_000], vec![100_000, 900_000]]);
    assert_eq!(alarms(&found), 0);
    let (left, right) = (found[0].as_ref().unwrap(), found[1].as_ref().unwrap());
    assert!((left.divergence - right.divergence).abs() < 1e-12 && left.divergence > 0.1);
    assert!(left.noise < 0.001, "{left:?}");
    assert!((left.moved - 0.4).abs() < 1e-9 && left.cosine < 0.9);
}

#[test]
fn profiles_without_samples_are_passed_over() {
    assert!(distances(&[]).is_empty());
    assert_eq!(distances(&[vec![], vec![0, 0]]), [None, None]);
    let found = distances(&[vec![0, 10], vec![], vec![0, 30], vec![0, 20]]);
    assert_eq!(found[1], None);
    for one in found.iter().flatten() {
        assert_eq!((one.divergence, one.moved, one.outlier), (0.0, 0.0, false));
        assert!((one.cosine - 1.0).abs() < 1e-12 && one.methods.is_empty());
    }
}

#[test]
fn amounts_are_weighed_by_the_samples_they_stand_for() {
    let mut random = Random(5);
    let cluster = Cluster {
        methods: 20,
        hosts: 5,
        samples: 200,
        burst: 1.0,
    };
    for _ in 0..100 {
        let recorded = cluster.recorded(&mut random);
        let mut weighed = Outliers::new();
        for counts in &recorded {
            let samples = counts.iter().sum();
            let bytes: Vec<u64> = counts.iter().map(|count| count * 524_288).collect();
            weighed.add(&profile(&bytes), 0, Some(samples)).unwrap();
        }
        let weighed = weighed.distances();
        assert_eq!(alarms(&weighed), 0);
        for (one, other) in weighed
            .iter()
            .flatten()
            .zip(distances(&recorded).iter().flatten())
        {
            assert!((one.divergence - other.divergence).abs() < 1e-9);
            assert!((one.noise - other.noise).abs() < 1e-9);
        }
    }
}

#[test]
fn a_value_that_is_not_there_is_an_error() {
    let error = Outliers::new().add(&profile(&[1]), 1, None).unwrap_err();
    assert!(error.is_usage());
    let nothing: Vec<Samples> = Vec::new();
    assert!(super::compare::distances(&[], &nothing).is_empty());
}
