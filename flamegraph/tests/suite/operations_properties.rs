//! Properties of every operation: totals stay where they must, and the parts of a profile add up to it.

use std::collections::BTreeMap;

use flamegraph::{smaller_frames, Diff, Keep, Kind, NameRules, Pattern, Profile};
use proptest::prelude::*;

use crate::support::two_values;

type Stacks = Vec<(Vec<String>, i64, i64)>;

/// Few names, so that stacks share and recurse; some that operations look at.
fn frame() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        "[a-d]",
        Just("[pool-1-thread-7 tid=12]".to_string()),
        Just("[pool-2-thread-9 tid=5]".to_string()),
        Just("J$$Lambda$1/0x0000000800c03000.run".to_string()),
        Just("J$$Lambda$2/0x0000000800c04000.run".to_string()),
        Just("(3 smaller frames)".to_string()),
    ];
    let suffix = prop_oneof![
        Just(""),
        Just("_[0]"),
        Just("_[j]"),
        Just("_[i]"),
        Just("_[k]")
    ];
    (name, suffix).prop_map(|(name, suffix)| name + suffix)
}

fn stacks() -> impl Strategy<Value = Stacks> {
    let stack = (
        prop::collection::vec(frame(), 0..7),
        0..1000i64,
        0..1_000_000_000_000i64,
    );
    prop::collection::vec(stack, 0..20)
}

fn profile(stacks: &Stacks) -> Profile {
    let mut profile = two_values(stacks);
    profile.set_label("host", "h");
    profile
}

/// Every stack with its values, and the totals.
fn content(profile: &Profile) -> (Vec<(String, Vec<i64>)>, Vec<i64>) {
    let mut rows = Vec::new();
    profile
        .each_stack::<()>(|frames, values| {
            let names: Vec<String> = frames
                .iter()
                .map(|(name, kind)| format!("{name}{}", kind.suffix()))
                .collect();
            rows.push((names.join(";"), values.to_vec()));
            Ok(())
        })
        .unwrap();
    (rows, totals(profile))
}

fn totals(profile: &Profile) -> Vec<i64> {
    (0..profile.values().len())
        .map(|value| profile.total(value).unwrap())
        .collect()
}

/// The total of every path, by names and kinds.
fn path_totals(profile: &Profile, value: usize) -> BTreeMap<String, i64> {
    let mut paths: Vec<String> = Vec::new();
    let mut totals = BTreeMap::new();
    for row in profile.nodes(value).unwrap() {
        let path = match paths.get(row.parent as usize) {
            None => String::new(),
            Some(parent) => format!("{parent};{}{}", row.name, row.kind.suffix()),
        };
        totals.insert(path.clone(), row.total_value);
        paths.push(path);
    }
    totals
}

fn merged(first: &Profile, second: &Profile) -> Profile {
    let mut sum = first.clone();
    sum.merge(second).unwrap();
    sum
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just("^a$"),
        Just("[bc]"),
        Just("Lambda"),
        Just("pool"),
        Just("nowhere")
    ]
    .prop_map(|text| Pattern::new(text).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn including_and_excluding_partition_the_whole(stacks in stacks(), patterns in prop::collection::vec(pattern(), 0..3)) {
        let profile = profile(&stacks);
        let (ours, others) = (profile.including(&patterns).unwrap(), profile.excluding(&patterns).unwrap());
        prop_assert_eq!(content(&merged(&ours, &others)), content(&profile));
        prop_assert_eq!(content(&ours.excluding(&patterns).unwrap()).0, vec![]);
        prop_assert_eq!(ours.labels(), profile.labels());
    }

    #[test]
    fn focus_is_inclusion_and_ends_at_the_same_leaves(stacks in stacks(), pattern in pattern()) {
        let profile = profile(&stacks);
        let whole = profile.focused(&pattern, true).unwrap();
        let included = profile.including(std::slice::from_ref(&pattern)).unwrap();
        prop_assert_eq!(content(&whole), content(&included));
        let from_there = profile.focused(&pattern, false).unwrap();
        prop_assert_eq!(totals(&from_there), totals(&whole));
        for (stack, _) in content(&from_there).0 {
            let first = stack.split(';').next().unwrap();
            let (name, _) = Kind::split(first.as_bytes());
            prop_assert!(pattern.is_in(std::str::from_utf8(name).unwrap()));
        }
    }

    #[test]
    fn trimming_is_idempotent_and_keeps_totals(stacks in stacks(), pattern in pattern()) {
        let profile = profile(&stacks);
        let trimmed = profile.trimmed(&pattern).unwrap();
        prop_assert_eq!(totals(&trimmed), totals(&profile));
        prop_assert_eq!(content(&trimmed.trimmed(&pattern).unwrap()), content(&trimmed));
    }

    #[test]
    fn inverting_twice_changes_nothing(stacks in stacks()) {
        let profile = profile(&stacks);
        let inverted = profile.inverted().unwrap();
        prop_assert_eq!(totals(&inverted), totals(&profile));
        prop_assert_eq!(content(&inverted.inverted().unwrap()), content(&profile));
    }

    #[test]
    fn canonical_names_keep_totals_and_commute_with_merging(a in stacks(), b in stacks()) {
        let (a, b, rules) = (profile(&a), profile(&b), NameRules::builtin());
        let canonical = |profile: &Profile| profile.canonical(rules).unwrap();
        prop_assert_eq!(totals(&canonical(&a)), totals(&a));
        let before = merged(&canonical(&a), &canonical(&b));
        let after = canonical(&merged(&a, &b));
        prop_assert_eq!(content(&before), content(&after));
        prop_assert_eq!(before.raw_names().collect::<Vec<_>>(), after.raw_names().collect::<Vec<_>>());
        for (name, raws) in after.raw_names() {
            prop_assert!(raws.iter().all(|raw| rules.canonical(raw) == name));
        }
        prop_assert_eq!(content(&canonical(&after)), content(&after));
    }

    #[test]
    fn scaling_is_exact_where_it_can_be(stacks in stacks(), factor in 1..1000i32, exponent in -8..8i32) {
        let profile = profile(&stacks);
        let times = profile.scaled(f64::from(factor)).unwrap();
        for ((_, scaled), (_, original)) in content(&times).0.iter().zip(&content(&profile).0) {
            let expected: Vec<i64> = original.iter().map(|amount| amount * i64::from(factor)).collect();
            prop_assert_eq!(scaled, &expected);
        }
        let real = f64::from(factor) * 2f64.powi(exponent);
        for (scaled, original) in totals(&profile.scaled(real).unwrap()).iter().zip(totals(&profile)) {
            prop_assert!((*scaled as f64 - original as f64 * real).abs() <= 0.5);
        }
    }

    #[test]
    fn merged_tiers_keep_totals_and_every_tier(stacks in stacks()) {
        let profile = profile(&stacks);
        for value in 0..2 {
            let tiers = profile.merged_tiers(value).unwrap();
            prop_assert_eq!(totals(&tiers), totals(&profile));
            for row in tiers.nodes(value).unwrap().skip(1) {
                prop_assert_eq!(row.tiers.iter().map(|(_, total)| total).sum::<i64>(), row.total_value);
                let most = row.tiers.iter().map(|(_, total)| *total).max().unwrap_or(0);
                let own = row.tiers.iter().find(|(kind, _)| *kind == row.kind).map_or(0, |(_, total)| *total);
                prop_assert_eq!(own, most);
            }
        }
    }

    #[test]
    fn pruning_keeps_every_surviving_total(stacks in stacks(), share in 0.0..1.0f64, frames in 1..30usize) {
        let profile = profile(&stacks);
        for keep in [Keep::Share(share), Keep::Frames(frames)] {
            let pruned = profile.pruned(keep).unwrap();
            prop_assert_eq!(totals(&pruned), totals(&profile));
            for value in 0..2 {
                let before = path_totals(&profile, value);
                for (path, total) in path_totals(&pruned, value) {
                    let own = path.rsplit(';').next().unwrap_or("");
                    if smaller_frames(own).is_none() {
                        prop_assert_eq!(Some(&total), before.get(&path), "{}", path);
                    }
                }
            }
            prop_assert!(pruned.node_count() <= profile.node_count());
            if let Keep::Frames(frames) = keep {
                prop_assert!(pruned.node_count() <= 2 * frames + 1);
            }
        }
    }

    #[test]
    fn equal_profiles_do_not_differ(stacks in stacks(), factor in 1..9i32) {
        let profile = profile(&stacks);
        prop_assume!(profile.total(0).unwrap() > 0);
        let times = profile.scaled(f64::from(factor)).unwrap();
        for (before, after, normalize) in [(&profile, &profile, false), (&profile, &times, true), (&times, &profile, true)] {
            let diff = Diff::of(before, after, 0, normalize).unwrap();
            prop_assert_eq!(diff.changes(usize::MAX).unwrap(), vec![]);
            prop_assert!(diff.appeared(9).is_empty() && diff.vanished(9).is_empty());
        }
    }

    #[test]
    fn a_difference_has_both_sides(a in stacks(), b in stacks()) {
        let (a, b) = (profile(&a), profile(&b));
        let diff = Diff::of(&a, &b, 1, false).unwrap();
        prop_assert_eq!(totals(diff.tree()), vec![a.total(1).unwrap(), b.total(1).unwrap()]);
        let plain = |profile: &Profile| path_totals(&profile.merged_tiers(1).unwrap(), 1).into_values().sum::<i64>();
        let sums = [0, 1].map(|side| diff.tree().nodes(side).unwrap().map(|node| node.total_value).sum::<i64>());
        prop_assert_eq!(sums, [plain(&a), plain(&b)]);
        if let Ok(shares) = Diff::of(&a, &b, 1, true) {
            prop_assert_eq!(totals(shares.tree()), vec![b.total(1).unwrap(); 2]);
            let (appeared, there) = (shares.appeared(usize::MAX), diff.appeared(usize::MAX));
            prop_assert_eq!(appeared.iter().map(|one| &one.path).collect::<Vec<_>>(), there.iter().map(|one| &one.path).collect::<Vec<_>>());
        }
    }

}
