//! Differences: what appeared, what vanished, what changed and by how much.

use flamegraph::{Diff, Profile, ValueType};

use crate::support::{error, samples};

#[test]
fn a_difference_is_of_shares() {
    let before = samples("a;old 50\na;same 50\n");
    let after = samples("a;same 100\na;new;deep 100\n");
    let diff = Diff::of(&before, &after, 0, true).unwrap();
    let mut out = Vec::new();
    diff.write_folded(&mut out, true).unwrap();
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
    let appeared = diff.appeared(10);
    assert_eq!(
        (appeared.len(), appeared[0].path.join(";")),
        (1, "a;new".to_string())
    );
    let vanished = diff.vanished(10);
    assert_eq!(
        (
            vanished.len(),
            vanished[0].path.join(";"),
            vanished[0].totals
        ),
        (1, "a;old".to_string(), [100, 0])
    );
    let rows: Vec<_> = diff.nodes().collect();
    assert_eq!(
        (rows[0].name, rows[0].totals, rows.len()),
        ("", [200, 200], 6)
    );
}

#[test]
fn a_difference_can_be_of_counts_and_sees_through_tiers() {
    let diff = Diff::of(&samples("f_[0] 3\n"), &samples("f_[j] 5\n"), 0, false).unwrap();
    let mut out = Vec::new();
    diff.write_folded(&mut out, true).unwrap();
    assert_eq!(out, b"f_[j] 3 5\n");
    assert!(diff.appeared(9).is_empty() && diff.vanished(9).is_empty());
}

#[test]
fn what_was_rare_and_is_rounded_away_has_not_appeared() {
    let before = samples("a 1000000\nb 1\n");
    let diff = Diff::of(&before, &samples("a 10\nb 10\n"), 0, true).unwrap();
    assert!(diff.appeared(9).is_empty());
}

#[test]
fn a_difference_wants_like_values_and_samples() {
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
