//! What one format holds, the others give back; and merging commutes, associates, and loses nothing.
//!
//! | format | what it cannot carry |
//! |---|---|
//! | folded | more than one value, what the value means, labels; `;` and control characters in names, numbers behind a space if all end so |
//! | pprof | labels that are empty: they read as 0 |
//! | speedscope | nothing of a profile: labels and the values' names stand in members of our own |
//! | JSON | nothing, but it is not read |

use flamegraph::{
    read, write, Labels, MeanMerger, Merger, Profile, ReadOptions, ValueType, WriteFormat,
    WriteOptions,
};
use proptest::prelude::*;

use crate::support::{folded, samples, two_values};

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
    // Folded text writes a root frame that would be a comment in another way.
    let is_comment = |name: &str| name.starts_with("# ") || name.trim_end() == "#";
    let name = name.prop_filter("a comment", move |name| !is_comment(name));
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
    let mut profile = two_values(stacks);
    for (name, value) in labels {
        profile.set_label(name, value);
    }
    profile
}

fn named_values(stacks: &Stacks, names: [&str; 2]) -> Profile {
    let values = names.map(|name| ValueType::new(name, "count")).to_vec();
    let mut profile = Profile::new(values);
    for (stack, one, other) in stacks {
        profile.add_stack(stack, &[*one, *other]).unwrap();
    }
    profile
}

fn merged<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> Profile {
    let mut profiles = profiles.into_iter();
    let mut sum = profiles.next().unwrap().clone();
    for profile in profiles {
        sum.merge(profile).unwrap();
    }
    sum
}

fn labelled(stacks: &Stacks, host: &str) -> Profile {
    profile(
        stacks,
        &Labels::from([("host".into(), host.into()), ("job".into(), "j".into())]),
    )
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

fn written(profile: &Profile, format: WriteFormat, value: usize) -> Vec<u8> {
    let options = WriteOptions {
        value: Some(value),
        ..WriteOptions::default()
    };
    let mut out = Vec::new();
    write(profile, format, &mut out, &options).unwrap();
    out
}

/// The content of a profile, whatever the order in which it was made.
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
fn numbers_at_the_end_of_names_are_not_counts() {
    let values = || vec![ValueType::samples()];
    let cases = [
        (&["thread 12"][..], "thread [12] 3\n"),
        (&["a\n1", "b 7"][..], "a [1];b [7] 3\n"),
        (&[" 7"][..], " [7] 3\n"),
        (&["a 1 2"][..], "a 1 [2] 3\n"),
        (&["a 1", "12"][..], "a 1;12 3\n"),
        (&["a 1", "b 7_[j]"][..], "a 1;b 7_[j] 3\n"),
        // Nor are names comments.
        (&["# a"][..], "#_a 3\n"),
        (&["#"][..], "#_ 3\n"),
        (&["a", "# a"][..], "a;# a 3\n"),
    ];
    for (stack, expected) in cases {
        let mut profile = Profile::new(values());
        profile.add_stack(stack, &[3]).unwrap();
        let text = folded(&profile, 0);
        assert_eq!(text, expected);
        let back = samples(&text);
        assert_eq!(back.values(), values(), "{expected}");
        assert_eq!(back.total(0).unwrap(), 3, "{expected}");
    }
}

/// The format is decided by the beginning: a line further on comes too late.
#[test]
fn numbers_at_the_end_of_many_names_are_not_counts() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    for thread in 0..9000 {
        let name = format!("thread {}", 10_000 + thread);
        profile.add_stack(&[name], &[1]).unwrap();
    }
    profile.add_stack(&["zoo"], &[1]).unwrap();
    let text = folded(&profile, 0);
    assert!(text.starts_with("thread [10000] 1\n"));
    assert_eq!(samples(&text).total(0).unwrap(), 9001);
    let other = "aaa 1\n".to_string() + &text.replace(['[', ']'], "");
    assert_eq!(folded(&samples(&other), 0), other);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn formats_that_are_read_and_written_lose_nothing(mut stacks in stacks(), labels in labels()) {
        // A stack without any value leaves names behind, which samples cannot carry.
        stacks.retain(|&(_, one, other)| one > 0 || other > 0);
        let profile = profile(&stacks, &labels);
        let pprof = through(&profile, WriteFormat::Pprof);
        prop_assert_eq!(content(&pprof), content(&profile));
        let speedscope = through(&profile, WriteFormat::Speedscope);
        prop_assert_eq!(content(&speedscope), content(&profile));
        let compact = through(&profile, WriteFormat::Compact);
        prop_assert_eq!(content(&compact), content(&profile));
        prop_assert_eq!(content(&through(&profile, WriteFormat::Otlp)), content(&profile));
        prop_assert_eq!(written(&compact, WriteFormat::Compact, 0), written(&profile, WriteFormat::Compact, 0));
        let back = through(&through(&speedscope, WriteFormat::Pprof), WriteFormat::Speedscope);
        prop_assert_eq!(content(&back), content(&profile));
        for format in [WriteFormat::Pprof, WriteFormat::Speedscope, WriteFormat::Json] {
            prop_assert_eq!(written(&back, format, 0), written(&profile, format, 0));
        }
    }

    #[test]
    fn folded_text_comes_back_through_any_format(stacks in stacks()) {
        let text = written(&profile(&stacks, &Labels::new()), WriteFormat::Folded, 0);
        let profile = samples(std::str::from_utf8(&text).unwrap());
        for format in [WriteFormat::Pprof, WriteFormat::Speedscope, WriteFormat::Compact] {
            prop_assert_eq!(content(&through(&profile, format)), content(&profile));
        }
        prop_assert_eq!(written(&profile, WriteFormat::Folded, 0), text);
    }

    #[test]
    fn a_difference_comes_back_with_both_counts(stacks in stacks()) {
        let difference = named_values(&stacks, ["before", "after"]);
        // A text without a line has no counts at all.
        prop_assume!(!difference.is_empty());
        let text = differential(&difference);
        prop_assert_eq!(&content(&samples(std::str::from_utf8(&text).unwrap())), &content(&difference));
        for format in [WriteFormat::Pprof, WriteFormat::Speedscope, WriteFormat::Compact] {
            let back = through(&difference, format);
            prop_assert_eq!(content(&back), content(&difference));
            prop_assert_eq!(&differential(&back), &text);
        }
        let other = named_values(&stacks, ["before", "later"]);
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

    #[test]
    fn merging_commutes_and_associates(a in stacks(), b in stacks(), c in stacks()) {
        let (a, b, c) = (labelled(&a, "1"), labelled(&b, "1"), labelled(&c, "2"));
        prop_assert_eq!(content(&merged([&a, &b])), content(&merged([&b, &a])));
        let left = merged([&merged([&a, &b]), &c]);
        let right = merged([&a, &merged([&b, &c])]);
        prop_assert_eq!(content(&left), content(&right));
        prop_assert_eq!(left.total(1).unwrap(), [&a, &b, &c].iter().map(|p| p.total(1).unwrap()).sum::<i64>());
        prop_assert_eq!(left.labels().len(), 1, "hosts disagree, the job does not");
    }

    #[test]
    fn many_at_once_are_what_one_by_one_makes(all in prop::collection::vec(stacks(), 1..30)) {
        let profiles: Vec<Profile> = all.iter().map(|stacks| two_values(stacks)).collect();
        let mut merger = Merger::new();
        for profile in &profiles {
            merger.add(profile.clone()).unwrap();
        }
        let sum = merger.finish().unwrap().unwrap();
        prop_assert_eq!(content(&sum), content(&merged(&profiles)));
        prop_assert_eq!(sum.node_count(), merged(&profiles).node_count());
    }

    #[test]
    fn a_mean_is_exact_and_does_not_know_the_order(all in prop::collection::vec(stacks(), 1..6)) {
        let profiles: Vec<Profile> = all.iter().map(|stacks| two_values(stacks)).collect();
        let mean = |profiles: &mut dyn Iterator<Item = &Profile>| {
            let mut merger = MeanMerger::new();
            profiles.for_each(|profile| merger.add(profile).unwrap());
            merger.finish().unwrap()
        };
        let forth = mean(&mut profiles.iter());
        prop_assert_eq!(content(&forth), content(&mean(&mut profiles.iter().rev())));
        let with_samples: Vec<_> = profiles.iter().filter(|profile| !profile.is_empty()).collect();
        for value in 0..2 {
            let sum: i64 = with_samples.iter().map(|profile| profile.total(value).unwrap()).sum();
            let count = with_samples.len().max(1) as i64;
            prop_assert_eq!(forth.total(value).unwrap(), (sum + count / 2) / count);
        }
    }

}
