//! speedscope's files: those of others, those that lie, and fractions.

#![cfg(feature = "formats")]

use flamegraph::{read, Profile, ReadOptions, Threads, ValueType, WriteFormat};

mod texts;

use texts::*;

const FRAMES: &str =
    r#""shared":{"frames":[{"name":"a"},{"name":"b_[j]","file":"x","line":3},{"name":"\u0063"}]}"#;

fn speedscope(profiles: &str) -> Result<Profile, String> {
    let schema = "https://www.speedscope.app/file-format-schema.json";
    detected(format!(r#"{{"$schema":"{schema}",{FRAMES},"profiles":[{profiles}]}}"#).as_bytes())
}

#[test]
fn speedscope_files_of_others_are_read() {
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
fn speedscope_profiles_of_threads_can_be_told_apart() {
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
fn what_a_speedscope_file_lies_about_is_named() {
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
    let cases = [
        (
            sampled("[[3]]", "[1]"),
            "sample 0: frame 3 does not exist (there are 3)",
        ),
        (
            sampled("[[0],[0]]", "[1]"),
            "sample 1: there is no weight for it",
        ),
        (sampled("[[0]]", "[1,2]"), "1 weights more than samples"),
        (
            sampled("[[0]]", "[-1]"),
            "sample 0: samples (count): -1 is negative",
        ),
        (
            sampled("[[0]]", "[1e30]"),
            "sample 0: 1e30 does not fit in 64 bits",
        ),
        (
            sampled("[[0.5]]", "[1]"),
            "sample 0: 0.5 is not a frame's number",
        ),
        (
            sampled("[0]", "[1]"),
            "sample 0: 0 where an array should be",
        ),
        (
            sampled("[[0]]", "[\"1\"]"),
            "sample 0: \"1\" where a number should be",
        ),
        (
            evented(r#"{"type":"C","frame":0,"at":1}"#),
            "event 0: frame 0 closes and none is open",
        ),
        (
            evented(r#"{"type":"O","frame":0,"at":2},{"type":"C","frame":0,"at":1}"#),
            "event 1: 1 comes after 2",
        ),
        (
            evented(r#"{"type":"O","frame":0,"at":2},{"type":"C","frame":1,"at":3}"#),
            "event 1: frame 1 closes while 0 is open",
        ),
        (
            evented(r#"{"type":"O","frame":0,"at":20}"#),
            "endValue: 9 comes after 20",
        ),
        (
            evented(r#"{"type":"O","frame":9,"at":2}"#),
            "event 0: frame 9 does not exist (there are 3)",
        ),
        (
            evented(r#"{"type":"O","frame":"x","at":2}"#),
            "invalid type: string \"x\", expected u32",
        ),
        (
            r#"{"type":"heap","name":"t","unit":"none"}"#.to_string(),
            "unknown type \"heap\"",
        ),
        (
            r#"{"type":"sampled","name":"t","unit":"parsec"}"#.to_string(),
            "unknown unit \"parsec\"",
        ),
    ];
    for (profile, expected) in cases {
        let error = speedscope(&profile).err().unwrap();
        assert_eq!(
            error,
            format!("speedscope: profiles: profile 0 (t): {expected}")
        );
    }
    let error = detected(b"{\"$schema\": 1, \"shared\": [}").err().unwrap();
    assert!(error.contains("at line 1 column"), "{error}");
}

#[test]
fn deep_stacks_and_nesting_do_not_matter() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    let deep: Vec<String> = (0..100_000)
        .map(|depth| format!("f{}", depth % 7))
        .collect();
    profile.add_stack(&deep, &[1]).unwrap();
    let json = String::from_utf8(written(&profile, WriteFormat::Json)).unwrap();
    assert_eq!(json.matches("\"children\"").count(), 100_001);
    let back = detected(&written(&profile, WriteFormat::Speedscope)).unwrap();
    assert_eq!(folded(&back, 0), folded(&profile, 0));
    let nested = format!("{{\"shared\":{}", "[".repeat(100_000));
    assert!(detected(nested.as_bytes()).is_err());
}
