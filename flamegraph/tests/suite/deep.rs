//! Stacks of 100,000 frames go through every format, picture and operation.

use flamegraph::svg::Options;
use flamegraph::{Diff, Keep, MeanMerger, NameRules, Pattern, Profile, ValueType, WriteFormat};

use crate::support::{detected, samples, svg, text, written};

const DEEP: usize = 100_000;

fn deep() -> Profile {
    let stack: Vec<String> = (0..DEEP).map(|depth| format!("f{}", depth % 10)).collect();
    let mut profile = Profile::new(vec![ValueType::samples()]);
    profile.add_stack(&stack, &[3]).unwrap();
    profile
}

#[test]
fn formats_and_pictures() {
    let profile = deep();
    assert_eq!(text(&samples(&text(&profile))), text(&profile));
    for format in [
        WriteFormat::Compact,
        WriteFormat::Pprof,
        WriteFormat::Speedscope,
    ] {
        let mut back = detected(&written(&profile, format)).unwrap();
        assert_eq!(text(&back), text(&profile), "{format:?}");
        back.merge(&profile).unwrap();
        assert_eq!((back.total(0).unwrap(), back.node_count()), (6, DEEP));
    }
    let json = String::from_utf8(written(&profile, WriteFormat::Json)).unwrap();
    assert_eq!(json.matches("\"children\"").count(), DEEP + 1);
    let picture = svg(&profile, &Options::default());
    assert_eq!(picture.matches("<title>").count(), DEEP + 1);
    let nested = format!("{{\"shared\":{}", "[".repeat(DEEP));
    assert!(detected(nested.as_bytes()).is_err());
}

#[test]
fn operations() {
    let profile = deep();
    let f5 = Pattern::new("^f5$").unwrap();
    let nodes = |profile: flamegraph::Result<Profile>| profile.unwrap().node_count();
    assert_eq!(nodes(profile.inverted()), DEEP);
    assert_eq!(nodes(profile.including(std::slice::from_ref(&f5))), DEEP);
    assert_eq!(nodes(profile.trimmed(&f5)), DEEP - 5);
    assert_eq!(nodes(profile.canonical(NameRules::builtin())), DEEP);
    assert_eq!(nodes(profile.select(&[0])), DEEP);
    assert_eq!(nodes(profile.merged_tiers(0)), DEEP);
    assert_eq!(nodes(profile.pruned(Keep::Frames(10))), 11);
    assert_eq!(profile.scaled(2.0).unwrap().total(0).unwrap(), 6);
    assert_eq!(profile.nodes(0).unwrap().last().unwrap().depth, DEEP as u32);
    assert_eq!(profile.top(1, 0).unwrap()[0].total_value, 3);
    let diff = Diff::of(&profile, &profile, 0, true).unwrap();
    assert!(diff.changes(5).unwrap().is_empty());
    let mut merger = MeanMerger::new();
    merger.add(&profile).unwrap();
    assert_eq!(text(&merger.finish().unwrap()), text(&profile));
}
