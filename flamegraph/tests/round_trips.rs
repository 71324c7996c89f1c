//! What one format holds, the others give back.
//!
//! | format | what it cannot carry |
//! |---|---|
//! | folded | more than one value, what the value means, labels; `;` and control characters in names, numbers behind a space if all end so |
//! | pprof | labels that are empty: they read as 0 |
//! | speedscope | nothing of a profile: labels and the values' names stand in members of our own |
//! | JSON | nothing, but it is not read |

#![cfg(feature = "formats")]

use flamegraph::{
    read, write, Format, Labels, Profile, ReadOptions, ValueType, WriteFormat, WriteOptions,
};
use proptest::prelude::*;

type Stacks = Vec<(Vec<String>, i64, i64)>;

/// Few names, so that stacks share and recurse; among them what formats stumble over.
fn frame() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        "[a-c]{1,2}",
        "[ -:<-~]{1,6}",
        Just("\"quoted\\\"".to_string()),
        Just("tab\tand é".to_string()),
        Just("é中\u{1f525}".to_string()),
        Just("{\"$schema\":".to_string()),
    ];
    let suffix = prop::sample::select(vec!["", "_[0]", "_[1]", "_[j]", "_[i]", "_[k]", "_[w]"]);
    (name, suffix).prop_map(|(name, suffix)| format!("{name}{suffix}"))
}

fn stacks() -> impl Strategy<Value = Stacks> {
    let amount = || prop_oneof![0..100i64, 0..=i64::MAX >> 8];
    let stack = (prop::collection::vec(frame(), 0..7), amount(), amount());
    prop::collection::vec(stack, 0..20)
}

fn labels() -> impl Strategy<Value = Labels> {
    prop::collection::btree_map("[a-z]{1,4}", "[ -~é]{1,5}", 0..3)
}

fn profile(stacks: &Stacks, labels: &Labels) -> Profile {
    let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
    add(&mut profile, stacks);
    for (name, value) in labels {
        profile.set_label(name, value);
    }
    profile
}

fn add(profile: &mut Profile, stacks: &Stacks) {
    for (stack, one, other) in stacks {
        profile.add_stack(stack, &[*one, *other]).unwrap();
    }
}

fn two_values(stacks: &Stacks, names: [&str; 2], unit: &str) -> Profile {
    let mut profile = Profile::new(names.map(|name| ValueType::new(name, unit)).to_vec());
    add(&mut profile, stacks);
    profile
}

/// Folded text as it is written when no value is named.
fn differential(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    write(
        profile,
        WriteFormat::Folded,
        &mut out,
        &WriteOptions::default(),
    )
    .unwrap();
    out
}

fn folded(text: &[u8]) -> Profile {
    read(text, &ReadOptions::of(Some(Format::Folded))).unwrap()
}

fn written(profile: &Profile, format: WriteFormat, value: usize) -> Vec<u8> {
    let options = WriteOptions {
        value: Some(value),
        ..WriteOptions::default()
    };
    let mut out = Vec::new();
    write(profile, format, &mut out, &options).unwrap();
    out
}

/// All there is to a profile, independent of the order in which it was made.
fn content(profile: &Profile) -> (Vec<ValueType>, Labels, Vec<Vec<u8>>) {
    let values = profile.values().to_vec();
    let texts = (0..values.len()).map(|value| written(profile, WriteFormat::Folded, value));
    let texts = texts.collect();
    (values, profile.labels().clone(), texts)
}

fn through(profile: &Profile, format: WriteFormat) -> Profile {
    read(&written(profile, format, 0), &ReadOptions::default()).unwrap()
}

/// `thread 12 3` would be read as two counts, 12 and 3, if no other line said otherwise.
#[test]
fn names_that_end_in_numbers_are_no_counts() {
    let samples = || vec![ValueType::samples()];
    let cases = [
        (&["thread 12"][..], "thread [12] 3\n"),
        (&["a\n1", "b 7"][..], "a [1];b [7] 3\n"),
        (&[" 7"][..], " [7] 3\n"),
        (&["a 1 2"][..], "a 1 [2] 3\n"),
        (&["a 1", "12"][..], "a 1;12 3\n"),
        (&["a 1", "b 7_[j]"][..], "a 1;b 7_[j] 3\n"),
    ];
    for (stack, expected) in cases {
        let mut profile = Profile::new(samples());
        profile.add_stack(stack, &[3]).unwrap();
        let text = written(&profile, WriteFormat::Folded, 0);
        assert_eq!(String::from_utf8_lossy(&text), expected);
        let back = folded(&text);
        assert_eq!(back.values(), samples(), "{expected}");
        assert_eq!(back.total(0).unwrap(), 3, "{expected}");
    }
}

/// What is read is the beginning: a name that is none further on comes too late.
#[test]
fn many_names_that_end_in_numbers_are_no_counts() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    for thread in 0..9000 {
        let name = format!("thread {}", 10_000 + thread);
        profile.add_stack(&[name], &[1]).unwrap();
    }
    profile.add_stack(&["zoo"], &[1]).unwrap();
    let text = written(&profile, WriteFormat::Folded, 0);
    assert!(text.starts_with(b"thread [10000] 1\n"));
    assert_eq!(folded(&text).total(0).unwrap(), 9001);
    let other = "aaa 1\n".to_string() + &String::from_utf8(text).unwrap().replace(['[', ']'], "");
    let plain = folded(other.as_bytes());
    assert_eq!(written(&plain, WriteFormat::Folded, 0), other.as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pprof_and_speedscope_lose_nothing(mut stacks in stacks(), labels in labels()) {
        // A stack without any value leaves names behind, which samples cannot carry.
        stacks.retain(|&(_, one, other)| one > 0 || other > 0);
        let profile = profile(&stacks, &labels);
        let pprof = through(&profile, WriteFormat::Pprof);
        prop_assert_eq!(content(&pprof), content(&profile));
        let speedscope = through(&profile, WriteFormat::Speedscope);
        prop_assert_eq!(content(&speedscope), content(&profile));
        let back = through(&through(&speedscope, WriteFormat::Pprof), WriteFormat::Speedscope);
        prop_assert_eq!(content(&back), content(&profile));
        for format in [WriteFormat::Pprof, WriteFormat::Speedscope, WriteFormat::Json] {
            prop_assert_eq!(written(&back, format, 0), written(&profile, format, 0));
        }
    }

    #[test]
    fn folded_text_comes_back_through_any_format(stacks in stacks()) {
        let text = written(&profile(&stacks, &Labels::new()), WriteFormat::Folded, 0);
        let profile = folded(&text);
        for format in [WriteFormat::Pprof, WriteFormat::Speedscope, WriteFormat::Compact] {
            prop_assert_eq!(content(&through(&profile, format)), content(&profile));
        }
        prop_assert_eq!(written(&profile, WriteFormat::Folded, 0), text);
    }

    #[test]
    fn a_difference_comes_back_with_both_counts(stacks in stacks()) {
        let difference = two_values(&stacks, ["before", "after"], "count");
        // A text without a line has no counts at all.
        prop_assume!(!difference.is_empty());
        let text = differential(&difference);
        prop_assert_eq!(&content(&folded(&text)), &content(&difference));
        for format in [WriteFormat::Pprof, WriteFormat::Speedscope, WriteFormat::Compact] {
            let back = through(&difference, format);
            prop_assert_eq!(content(&back), content(&difference));
            prop_assert_eq!(&differential(&back), &text);
        }
        let other = two_values(&stacks, ["before", "later"], "count");
        prop_assert_eq!(differential(&other), written(&other, WriteFormat::Folded, 0));
    }

    #[test]
    fn json_has_every_node_and_every_value(stacks in stacks(), labels in labels()) {
        let profile = profile(&stacks, &labels);
        let json: serde_json::Value = serde_json::from_slice(&written(&profile, WriteFormat::Json, 0)).unwrap();
        let mut open = vec![&json["root"]];
        let (mut nodes, mut selves) = (0, [0, 0]);
        while let Some(node) = open.pop() {
            nodes += 1;
            let children = node["children"].as_array().unwrap();
            for value in 0..2 {
                let own = node["self"][value].as_i64().unwrap();
                let below: i64 = children.iter().map(|child| child["total"][value].as_i64().unwrap()).sum();
                prop_assert_eq!(node["total"][value].as_i64().unwrap(), own + below);
                selves[value] += own;
            }
            open.extend(children);
        }
        prop_assert_eq!(nodes, profile.node_count() + 1);
        prop_assert_eq!(selves, [profile.total(0).unwrap(), profile.total(1).unwrap()]);
        let written_labels: Labels = serde_json::from_value(json["labels"].clone()).unwrap();
        prop_assert_eq!(&written_labels, profile.labels());
    }
}
