//! Hostile pprof messages and text: errors that say what is wrong, before they take memory.

use flamegraph::{read, Format, Limits, Profile, ReadOptions, ValueType, WriteFormat};

use crate::pprof_maker::{bytes, message, number, sample, NAME};
use crate::support::{gzip, text, written};

fn within(limits: &Limits, format: Option<Format>) -> ReadOptions {
    ReadOptions {
        limits: limits.clone(),
        ..ReadOptions::of(format)
    }
}

fn read_message(message: &[u8]) -> Result<Profile, String> {
    read(message, &ReadOptions::of(Some(Format::Pprof))).map_err(|error| error.to_string())
}

#[test]
fn contradictions_are_errors() {
    let refused = |more: Vec<u8>, expected: &str| {
        let error = read_message(&message(&[more])).err().unwrap_or_default();
        assert!(error.starts_with(&format!("pprof: {expected}")), "{error}");
    };
    refused(sample(&[9], &[1]), "sample 0: location 9 does not exist");
    refused(
        sample(&[1], &[]),
        "sample 0: 0 values where there are 1 sample types",
    );
    refused(sample(&[1], &[u64::MAX]), "sample 0: value -1 is negative");
    let overflow = [sample(&[1], &[i64::MAX as u64]), sample(&[1], &[1])].concat();
    refused(
        overflow,
        "sample 1: samples (count): the sum does not fit in 64 bits",
    );
    refused(bytes(5, &number(1, 1)), "function 1 stands twice");
    let string = bytes(5, &[number(1, 2), number(2, 99)].concat());
    refused(string, "string 99 does not exist (there are 4)");
    let function = bytes(4, &[number(1, 2), bytes(4, &number(1, 8))].concat());
    refused(function, "location 2: function 8 does not exist");
    refused(vec![0x12, 0x50], "damaged or truncated at byte");
    assert_eq!(
        read_message(b"").err().unwrap(),
        "pprof: no sample type; is this a profile?"
    );
}

#[test]
fn a_missing_mapping_is_an_unknown_module() {
    let location = [number(1, 2), number(2, 5), bytes(4, &number(1, 1))].concat();
    let mapping = bytes(3, &[number(1, 5), number(5, NAME)].concat());
    let message = |more| message(&[bytes(4, &location), sample(&[2], &[1]), more]);
    let without = read_message(&message(Vec::new())).unwrap();
    assert_eq!(without.modules().count(), 0);
    let with = read_message(&message(mapping)).unwrap();
    assert_eq!(with.modules().collect::<Vec<_>>(), [("f", "f")]);
}

#[test]
fn a_bomb_is_refused_at_the_limit() {
    let limits = Limits {
        pprof_bytes: 1 << 20,
        text_bytes: 1 << 20,
        ..Limits::default()
    };
    let bomb = gzip(&vec![0; 2 << 20]);
    let error = read(&bomb, &within(&limits, Some(Format::Pprof)))
        .err()
        .unwrap()
        .to_string();
    assert_eq!(error, "bytes of the pprof message: more than 1048576");
    let error = read(&bomb, &within(&limits, Some(Format::Folded)))
        .err()
        .unwrap()
        .to_string();
    assert_eq!(error, "bytes of folded text: more than 1048576");
}

#[test]
fn stacks_are_limited() {
    let deep: Vec<Vec<u8>> = (0..1000).map(|_| bytes(4, &number(1, 1))).collect();
    let location = bytes(4, &[number(1, 2), deep.concat()].concat());
    let samples: Vec<u8> = sample(&[2; 100], &[1]).repeat(20);
    let limits = Limits {
        text_bytes: 1 << 20,
        ..Limits::default()
    };
    let message = message(&[location, samples]);
    let error = read(&message, &within(&limits, Some(Format::Pprof)))
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        error,
        "pprof: sample 5: the stacks are too long, all together"
    );
}

#[test]
fn a_truncated_gzip_is_an_error() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    profile.add_stack(&["a", "b"], &[1]).unwrap();
    let written = written(&profile, WriteFormat::Pprof);
    for end in 3..written.len() {
        let error = read(&written[..end], &ReadOptions::default())
            .err()
            .unwrap()
            .to_string();
        assert!(error.starts_with("gzip: "), "{end}: {error}");
    }
}

#[test]
fn an_endless_line_is_an_error_with_its_number() {
    let text = format!("a 1 2.5: 1 c: \n\tff {} (/m)\n\n", "f".repeat(1 << 20));
    let error = read(text.as_bytes(), &ReadOptions::default())
        .err()
        .unwrap();
    let expected = "perf script text, line 2: bytes of a line: more than 1048576";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn stacks_that_end_in_the_same_bytes_differ() {
    // 0x81 0x01 is 129, 0x01 alone is 1: the second stack ends in the bytes of the first, not in its ids.
    let location = |id: u64| bytes(4, &[number(1, id), bytes(4, &number(1, 1))].concat());
    let packed = |ids: &[u8]| bytes(2, &[bytes(1, ids), bytes(2, &[1])].concat());
    let one_by_one = bytes(2, &[number(1, 129), number(1, 1), number(2, 1)].concat());
    let mixed = bytes(
        2,
        &[number(1, 129), bytes(1, &[1, 0x81, 1]), bytes(2, &[1])].concat(),
    );
    let samples = [
        packed(&[1, 1]),
        packed(&[0x81, 1]),
        packed(&[1, 0x81, 1]),
        packed(&[0x81, 0x81, 0x00]),
        one_by_one,
        mixed,
        packed(&[1, 1, 1]),
    ];
    let message = message(&[location(129), samples.concat()]);
    let error = read_message(&message[..message.len() - 1]).err().unwrap();
    assert!(error.starts_with("pprof: damaged or truncated"), "{error}");
    let profile = read_message(&message).unwrap();
    assert_eq!(text(&profile), "f 2\nf;f 3\nf;f;f 2\n");
}
