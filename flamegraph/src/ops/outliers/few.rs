//! Tests which outliers are found among few methods and few hosts.

use super::simulated::distances;
use super::Distance;

/// (outlier, differs) of each host.
fn verdicts(hosts: &[Vec<u64>]) -> Vec<(bool, bool)> {
    let verdict = |one: &Distance| (one.outlier, one.differs);
    distances(hosts).iter().flatten().map(verdict).collect()
}

const ODD: (bool, bool) = (true, true);
const PERHAPS: (bool, bool) = (false, true);
const ALIKE: (bool, bool) = (false, false);

#[test]
fn who_does_something_else_all_the_time_is_found() {
    for samples in [1000, 100_000] {
        let found = verdicts(&[vec![samples, 0], vec![0, samples], vec![0, samples]]);
        assert_eq!(found, [ODD, ALIKE, ALIKE], "{samples}");
    }
}

#[test]
fn a_short_recording_may_be_one_burst() {
    let found = verdicts(&[vec![100, 0], vec![0, 100], vec![0, 100]]);
    assert_eq!(found, [PERHAPS, ALIKE, ALIKE]);
}

#[test]
fn a_driver_beside_three_executors_is_found_once_it_has_samples_enough() {
    let executors = |scale: u64| {
        let each = [[390, 120, 5], [400, 125, 6], [380, 122, 5]];
        each.map(|counts| counts.map(|count| count * scale).to_vec())
    };
    let with_driver = |samples: u64, scale: u64| {
        let mut hosts = vec![vec![0, 0, samples]];
        hosts.extend(executors(scale));
        verdicts(&hosts)
    };
    assert_eq!(with_driver(37, 1), [PERHAPS, ALIKE, ALIKE, ALIKE]);
    assert_eq!(with_driver(3700, 100), [ODD, ALIKE, ALIKE, ALIKE]);
}

#[test]
fn of_two_groups_as_large_as_each_other_none_is_the_odd_one() {
    for samples in [1000, 100_000] {
        let (left, right) = (vec![samples, 0], vec![0, samples]);
        let two = [left.clone(), right.clone()];
        assert_eq!(verdicts(&two), [PERHAPS; 2]);
        let four = [left.clone(), left, right.clone(), right];
        assert_eq!(verdicts(&four), [PERHAPS; 4]);
    }
}
