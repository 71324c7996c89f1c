//! What holds for every profile: merging commutes and associates, totals never change, and what is
//! written is what is read back.

use flamegraph::{
    folded, read, Format, Limits, MeanMerger, Merger, Profile, ReadOptions, ValueType,
};
use proptest::prelude::*;

type Stacks = Vec<(Vec<String>, i64, i64)>;

/// Few names, so that stacks share and recurse; among them what formats stumble over.
fn frame() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        "[a-c]{1,2}",
        Just("thread 12".to_string()),
        Just("two  spaces".to_string()),
        Just("<clinit>&\"é".to_string()),
        Just("x_[j]_[k]".to_string()),
    ];
    let suffix = prop_oneof![
        Just(""),
        Just("_[0]"),
        Just("_[1]"),
        Just("_[j]"),
        Just("_[i]"),
        Just("_[k]"),
        Just("_[w]")
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
    let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
    for (stack, samples, nanoseconds) in stacks {
        profile.add_stack(stack, &[*samples, *nanoseconds]).unwrap();
    }
    profile
}

fn text(profile: &Profile, value: usize) -> String {
    let mut out = Vec::new();
    profile.write_folded(&mut out, value, true).unwrap();
    String::from_utf8(out).unwrap()
}

fn pprof(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    profile.write_pprof(&mut out).unwrap();
    out
}

/// All there is to a profile, independent of the order in which it was made.
fn content(profile: &Profile) -> (String, String, i64, i64, flamegraph::Labels) {
    let total = |value| profile.total(value).unwrap();
    (
        text(profile, 0),
        text(profile, 1),
        total(0),
        total(1),
        profile.labels().clone(),
    )
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
    let mut profile = profile(stacks);
    profile.set_label("host", host);
    profile.set_label("job", "j");
    profile
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

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
        let profiles: Vec<Profile> = all.iter().map(profile).collect();
        let mut merger = Merger::new();
        for profile in &profiles {
            merger.add(profile.clone()).unwrap();
        }
        let sum = merger.finish().unwrap().unwrap();
        prop_assert_eq!(content(&sum), content(&merged(&profiles)));
        prop_assert_eq!(sum.node_count(), merged(&profiles).node_count());
    }

    #[test]
    fn pprof_comes_back_exactly(stacks in stacks()) {
        let profile = labelled(&stacks, "h");
        let written = pprof(&profile);
        let back = read(&written, &ReadOptions::default()).unwrap();
        prop_assert_eq!(content(&back), content(&profile));
        prop_assert_eq!(back.values(), profile.values());
        prop_assert_eq!(pprof(&back), written);
    }

    #[test]
    fn folded_text_comes_back_exactly(stacks in stacks()) {
        let profile = profile(&stacks);
        let mut both = Vec::new();
        profile.write_differential(&mut both, true).unwrap();
        let back = folded::read_differential(&both[..], &Limits::default());
        prop_assert_eq!(content(&back.unwrap()), content(&profile));
        let back = folded::read(text(&profile, 0).as_bytes(), ValueType::samples(), &Limits::default()).unwrap();
        prop_assert_eq!(text(&back, 0), text(&profile, 0));
    }

    #[test]
    fn annotations_do_not_change_totals(stacks in stacks()) {
        let profile = profile(&stacks);
        let mut plain = Vec::new();
        profile.write_folded(&mut plain, 1, false).unwrap();
        let back = folded::read(&plain[..], ValueType::cpu(), &Limits::default()).unwrap();
        prop_assert_eq!(back.total(0).unwrap(), profile.total(1).unwrap());
    }

    #[test]
    fn selfs_of_methods_add_up(stacks in stacks()) {
        let stacks: Stacks = stacks.into_iter().filter(|(stack, ..)| !stack.is_empty()).collect();
        let profile = profile(&stacks);
        let methods = profile.top(usize::MAX, 1).unwrap();
        let total = profile.total(1).unwrap();
        prop_assert_eq!(methods.iter().map(|method| method.self_value).sum::<i64>(), total);
        prop_assert!(methods.iter().all(|method| method.self_value <= method.total_value && method.total_value <= total));
    }

    #[test]
    fn a_mean_is_exact_and_does_not_know_the_order(all in prop::collection::vec(stacks(), 1..6)) {
        let profiles: Vec<Profile> = all.iter().map(profile).collect();
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

    #[test]
    fn the_mean_of_one_is_itself(stacks in stacks()) {
        let profile = profile(&stacks);
        let mut merger = MeanMerger::new();
        merger.add(&profile).unwrap();
        prop_assert_eq!(content(&merger.finish().unwrap()), content(&profile));
    }

    #[test]
    fn no_bytes_make_a_reader_crash(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in std::iter::once(None).chain(Format::all().map(Some)) {
            let _ = read(&bytes, &ReadOptions::of(format));
        }
    }

    #[test]
    fn damaged_pprof_is_an_error_or_a_profile(stacks in stacks(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut message = inflate(&pprof(&labelled(&stacks, "h")));
        let at = at.index(message.len());
        let _ = read(&message[..at], &ReadOptions::of(Some(Format::Pprof)));
        message[at] = byte;
        if let Ok(profile) = read(&message, &ReadOptions::of(Some(Format::Pprof))) {
            text(&profile, 0);
            pprof(&profile);
        }
    }
}

fn inflate(compressed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(compressed), &mut out).unwrap();
    out
}
