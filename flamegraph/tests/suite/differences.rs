//! Differences: what appeared, what vanished, what changed and by how much.

use flamegraph::{Diff, Profile, ValueType};

use crate::support::{error, samples};

#[test]
fn a_difference_is_of_shares() {
    let before = samples("a;old 50\na;same 50\n");
    let after = samples("a;same 100\na;new;deep 100\n");
    let diff = Diff::of(&before, &after, 0, true).unwrap();
    let mut out = Vec::new();
    diff.tree().write_differential(&mut out, true).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "a;new;deep 0 100\na;old 100 0\na;same 100 100\n"
    );
    assert_eq!((diff.before_total(), diff.is_normalized()), (100, true));
    let changes = diff.changes(10).unwrap();
    let names: Vec<_> = changes
        .iter()
        .map(|change| (change.path.join(";"), change.selfs, change.totals))
        .collect();
    assert_eq!(
        names,
        [
            ("deep".to_string(), [0, 100], [0, 100]),
            ("old".to_string(), [100, 0], [100, 0]),
            ("new".to_string(), [0, 0], [0, 100]),
        ]
    );
    let paths = |changes: Vec<flamegraph::Change>| -> Vec<String> {
        changes.iter().map(|change| change.path.join(";")).collect()
    };
    assert_eq!(paths(diff.appeared(10)), ["a;new"]);
    assert_eq!(paths(diff.vanished(10)), ["a;old"]);
    assert_eq!(diff.tree().node_count(), 5);
}

#[test]
fn rare_paths_have_not_appeared() {
    let before = samples("a 1000000\nb 1\n");
    let diff = Diff::of(&before, &samples("a 10\nb 10\n"), 0, true).unwrap();
    assert!(diff.appeared(9).is_empty());
}

#[test]
fn differences_need_equal_values_and_samples() {
    let mut cpu = Profile::new(vec![ValueType::cpu()]);
    cpu.add_stack(&["a"], &[10]).unwrap();
    assert_eq!(
        error(Diff::of(&cpu, &samples("a 1"), 0, true)),
        "unlike values do not add up: cpu (nanoseconds) and samples (count)"
    );
    assert_eq!(
        error(Diff::of(&samples(""), &samples("a 1"), 0, true)),
        "nothing to compare: no samples (count) before"
    );
    let diff = Diff::of(&samples(""), &samples("a;b 1"), 0, false).unwrap();
    assert_eq!(diff.appeared(9)[0].path, ["a"]);
    assert!(Diff::of(&cpu, &samples("a 1"), 3, true).is_err());
}
