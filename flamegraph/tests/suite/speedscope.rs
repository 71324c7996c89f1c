//! speedscope's files: of other writers, with contradictions, and with fractions.

use flamegraph::{read, Profile, ReadOptions, Threads, ValueType};

use crate::support::{detected, folded};

const FRAMES: &str =
    r#""shared":{"frames":[{"name":"a"},{"name":"b_[j]","file":"x","line":3},{"name":"\u0063"}]}"#;

fn speedscope(profiles: &str) -> Result<Profile, String> {
    let schema = "https://www.speedscope.app/file-format-schema.json";
    detected(format!(r#"{{"$schema":"{schema}",{FRAMES},"profiles":[{profiles}]}}"#).as_bytes())
}

#[test]
fn files_of_other_writers_are_read() {
    let sampled = r#"{"type":"sampled","name":"t1","unit":"milliseconds","startValue":0,"endValue":3,
        "samples":[[0,1],[0],[],[2]],"weights":[1.5,1,0.5,0]}"#;
    let evented = r#"{"type":"evented","name":"t2","unit":"seconds","startValue":10,"endValue":14,"events":[
        {"type":"O","frame":0,"at":10.5},{"type":"O","frame":2,"at":11},{"type":"C","frame":2,"at":12.25},
        {"type":"C","frame":0,"at":13},{"type":"O","frame":1,"at":13.5}]}"#;
    let counts = r#"{"type":"sampled","name":"n","unit":"none","startValue":0,"endValue":3,"samples":[[1]],"weights":[3]}"#;
    let profile = speedscope(&[sampled, evented, counts].join(",")).unwrap();
    let time = ValueType::new("time", "nanoseconds");
    assert_eq!(profile.values(), [time, ValueType::samples()]);
    assert_eq!(
        folded(&profile, 0),
        " 500000\na 1251000000\na;b_[j] 1500000\na;c 1250000000\nb_[j] 500000000\n"
    );
    assert_eq!(folded(&profile, 1), "b_[j] 3\n");
}

#[test]
fn fractions_of_weights_are_not_lost() {
    let sampled = |weights: &str| {
        let samples = vec!["[0]"; weights.split(',').count()].join(",");
        speedscope(&format!(
            r#"{{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":9,
                "samples":[{samples}],"weights":[{weights}]}}"#
        ))
    };
    for (weights, total) in [
        ("1.5,1.5", 3),
        ("0.25,0.25,0.25,0.25", 1),
        ("0.5,0.0,0.0,1", 2),
        ("0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1", 1),
        ("0.49999999999999994,0.5,0.0", 1),
        ("9007199254740993,0.5", 9_007_199_254_740_994),
    ] {
        let profile = sampled(weights).unwrap();
        assert_eq!(profile.total(0).unwrap(), total, "{weights}");
    }
    assert!(sampled("0.5,-1.5").is_err());
    assert_eq!(sampled("0.5,-0.3").unwrap().total(0).unwrap(), 1);
}

#[test]
fn fractions_of_weights_stay_with_their_stacks() {
    let thread = |samples: &str, weights: &str| {
        format!(
            r#"{{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":9,
                "samples":[{samples}],"weights":[{weights}]}}"#
        )
    };
    let turns = thread("[0],[1],[0],[1]", "0.5,0.5,0.5,0.5");
    assert_eq!(folded(&speedscope(&turns).unwrap(), 0), "a 1\nb_[j] 1\n");
    let rests = thread("[0],[1],[0,1]", "10.3,2.4,0.3");
    let rests = speedscope(&rests).unwrap();
    assert_eq!(folded(&rests, 0), "a 10\nb_[j] 3\n");
    let threads = vec![thread("[0]", "0.3"); 10].join(",");
    assert_eq!(speedscope(&threads).unwrap().total(0).unwrap(), 3);
}

#[test]
fn threads_can_be_kept_apart() {
    let one = r#"{"type":"sampled","name":"main","unit":"none","startValue":0,"endValue":1,"samples":[[0]],"weights":[1]}"#;
    let text = format!(r#"{{"profiles":[{one}],{FRAMES}}}"#);
    let options = ReadOptions {
        threads: Threads::Each,
        ..ReadOptions::default()
    };
    assert_eq!(
        folded(&read(text.as_bytes(), &options).unwrap(), 0),
        "[main];a 1\n"
    );
}

#[test]
fn contradictions_are_errors() {
    let sampled = |samples: &str, weights: &str| {
        format!(
            r#"{{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":0,"samples":{samples},"weights":{weights}}}"#
        )
    };
    let evented = |events: &str| {
        format!(
            r#"{{"type":"evented","name":"t","unit":"none","startValue":0,"endValue":9,"events":[{events}]}}"#
        )
    };
    let refused = |profile: &str, expected: &str| {
        let error = speedscope(profile).err().unwrap();
        assert_eq!(
            error,
            format!("speedscope: profiles: profile 0 (t): {expected}")
        );
    };
    for (samples, weights, expected) in [
        (
            "[[3]]",
            "[1]",
            "sample 0: frame 3 does not exist (there are 3)",
        ),
        ("[[0],[0]]", "[1]", "sample 1: there is no weight for it"),
        ("[[0]]", "[1,2]", "1 weights more than samples"),
    ] {
        refused(&sampled(samples, weights), expected);
    }
    let negative = speedscope(&sampled("[[0]]", "[-1]")).err().unwrap();
    let expected = "speedscope: profile 0 (t): sample 0: weight -1 is negative";
    assert!(negative.starts_with(expected), "{negative}");
    let (open, close) = (
        r#"{"type":"O","frame":0,"at":"#,
        r#"{"type":"C","frame":0,"at":1}"#,
    );
    refused(&evented(close), "event 0: frame 0 closes and none is open");
    refused(
        &evented(&format!("{open}2}},{close}")),
        "event 1: 1 comes after 2",
    );
    refused(
        &evented(&format!("{open}20}}")),
        "endValue: 9 comes after 20",
    );
    let unknown = r#"{"type":"heap","name":"t","unit":"none"}"#;
    refused(unknown, "unknown type \"heap\"");
    let error = detected(b"{\"$schema\": 1, \"shared\": [}").err().unwrap();
    assert!(error.contains("at line 1 column"), "{error}");
}
