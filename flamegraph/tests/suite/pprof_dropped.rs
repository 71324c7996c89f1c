//! The frames that a pprof message asks to drop, and those that are negative.

use flamegraph::Error;

use crate::pprof_maker::{bytes, number, sample};
use crate::support::{detected, text};

/// A message whose locations 1, 2, … have these functions, innermost first, and each sample has these locations.
fn message(drop: &str, keep: &str, locations: &[&[&str]], samples: &[&[u64]]) -> Vec<u8> {
    let mut strings = vec!["", "samples", "count", drop, keep];
    let mut message = bytes(1, &[number(1, 1), number(2, 2)].concat());
    message.extend([number(7, 3), number(8, 4)].concat());
    for (id, names) in (1u64..).zip(locations) {
        let mut lines = Vec::new();
        for name in *names {
            let function = strings.len() as u64;
            strings.push(name);
            message.extend(bytes(
                5,
                &[number(1, function), number(2, function)].concat(),
            ));
            lines.extend(bytes(4, &number(1, function)));
        }
        message.extend(bytes(4, &[number(1, id), lines].concat()));
    }
    for stack in samples {
        message.extend(sample(stack, &[1]));
    }
    for string in strings {
        message.extend(bytes(6, string.as_bytes()));
    }
    message
}

/// The expected stacks are those of `go tool pprof`.
#[test]
fn dropped_frames_end_a_stack() {
    let locations: &[&[&str]] = &[
        &["main"],
        &["work"],
        &["grow"],
        &["tc_new(int)"],
        &["inner", "grow", "outer"],
        &["a::(anonymous namespace)::grow(int)"],
        &["shrink"],
    ];
    let samples: &[&[u64]] = &[
        &[4, 3, 2, 1],
        &[7, 4, 2, 1],
        &[5, 2, 1],
        &[7, 5, 2, 1],
        &[2, 5],
        &[3],
        &[2, 3],
        &[3, 2, 3],
        &[6, 1],
    ];
    for (drop, keep, expected) in [
        (
            "grow|tc_.*",
            "",
            "grow 1\ngrow;work 2\nmain;a::(anonymous namespace)::grow(int) 1\nmain;work 2\nmain;work;outer 2\nouter;work 1\n",
        ),
        (
            "grow|tc_.*|.*space\\)::grow",
            "tc.*",
            "grow 1\ngrow;work 2\nmain 1\nmain;work 1\nmain;work;outer 2\nmain;work;tc_new(int);shrink 1\nouter;work 1\n",
        ),
    ] {
        let profile = detected(&message(drop, keep, locations, samples)).unwrap();
        assert_eq!(text(&profile), expected, "{drop}, {keep}");
        assert!(profile.warnings().is_empty());
    }
    let profile = detected(&message("gro(w", "", &[&["grow"]], &[&[1]])).unwrap();
    assert_eq!(text(&profile), "grow 1\n");
    let warning = "drop_frames is not a valid pattern, so it was ignored: gro(w";
    assert_eq!(profile.warnings(), [warning]);
}

#[test]
fn a_difference_is_named() {
    let negative = sample(&[1], &[-3i64 as u64]);
    let message = [message("", "", &[&["a"]], &[&[1]]), negative].concat();
    let error = flamegraph::read(&message, &flamegraph::ReadOptions::default())
        .err()
        .unwrap();
    assert!(matches!(error, Error::Negative(..)), "{error:?}");
    assert_eq!(error.code(), "negative");
    assert_eq!(
        error.to_string(),
        "pprof: sample 1: value -3 is negative: differences of profiles are not read"
    );
}
