//! Merging profiles, means, and tiers in pictures.

use flamegraph::svg::Options;
use flamegraph::MeanMerger;

use crate::support::{samples, svg, text, two_values};

#[test]
fn different_values_do_not_merge() {
    let mut ours = samples("a 1");
    let theirs = two_values(&[(vec!["a"], 0, 1)]).select(&[1]).unwrap();
    let error = ours.merge(&theirs).err().unwrap().to_string();
    assert_eq!(
        error,
        "unlike values do not add up: samples (count) and cpu (nanoseconds)"
    );
    assert_eq!(text(&ours), "a 1\n");
}

#[test]
fn a_merge_that_overflows_changes_nothing() {
    let mut ours = samples(&format!("a {}", i64::MAX));
    assert!(ours.merge(&samples("b 1")).is_err());
    assert_eq!(
        (ours.total(0).unwrap(), text(&ours)),
        (i64::MAX, format!("a {}\n", i64::MAX))
    );
}

#[test]
fn labels_that_disagree_are_dropped() {
    let (mut first, mut second) = (samples("a 1"), samples("a 2"));
    for (name, ours, theirs) in [("host", "h1", "h2"), ("job", "j", "j")] {
        first.set_label(name, ours);
        second.set_label(name, theirs);
    }
    second.set_label("pid", "7");
    first.merge(&second).unwrap();
    assert_eq!(
        first.labels().iter().collect::<Vec<_>>(),
        [(&"job".to_string(), &"j".to_string())]
    );
}

#[test]
fn in_a_mean_every_host_weighs_the_same() {
    let mut merger = MeanMerger::new();
    merger.add(&samples("a;x 800\na;y 200\n")).unwrap();
    merger.add(&samples("b 100\n")).unwrap();
    merger.add(&samples("")).unwrap();
    assert_eq!(text(&merger.finish().unwrap()), "a;x 220\na;y 55\nb 275\n");
    assert!(MeanMerger::new().finish().is_err());
}

#[test]
fn no_samples_are_an_error_with_a_reason() {
    let error = samples("")
        .write_svg(Vec::new(), 0, &Options::default())
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        error,
        "nothing to draw: the profile has no samples of samples (count)"
    );
}

#[test]
fn tiers_are_one_frame_in_a_picture() {
    let profile = samples("f_[0];g_[j] 1\nf_[j];g_[j] 2\n");
    let picture = svg(&profile, &Options::default());
    assert_eq!(picture.matches("<title>").count(), 3);
}
