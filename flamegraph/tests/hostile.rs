//! Input that means harm: it gets an error that says what is wrong, and no memory.

use std::io::Write;

use flamegraph::{read, Format, Limits, Profile, ReadOptions, ValueType};
use flate2::write::GzEncoder;
use flate2::Compression;

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [
        varint(field << 3 | 2),
        varint(content.len() as u64),
        content.to_vec(),
    ]
    .concat()
}

const SAMPLES: u64 = 1;
const COUNT: u64 = 2;
const NAME: u64 = 3;

/// A message with one value, one function (1) and one location (1), and what else is given.
fn message(more: &[Vec<u8>]) -> Vec<u8> {
    let mut message = Vec::new();
    for string in ["", "samples", "count", "f"] {
        message.extend(bytes(6, string.as_bytes()));
    }
    message.extend(bytes(1, &[number(1, SAMPLES), number(2, COUNT)].concat()));
    message.extend(bytes(5, &[number(1, 1), number(2, NAME)].concat()));
    message.extend(bytes(4, &[number(1, 1), bytes(4, &number(1, 1))].concat()));
    message.extend(more.concat());
    message
}

fn sample(locations: &[u64], values: &[u64]) -> Vec<u8> {
    let pack = |numbers: &[u64]| numbers.iter().flat_map(|&n| varint(n)).collect::<Vec<u8>>();
    bytes(
        2,
        &[bytes(1, &pack(locations)), bytes(2, &pack(values))].concat(),
    )
}

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
fn the_message_itself_is_good() {
    let profile = read_message(&message(&[sample(&[1, 1], &[7])])).unwrap();
    assert_eq!((profile.total(0).unwrap(), profile.node_count()), (7, 2));
}

#[test]
fn each_lie_is_named() {
    let cases: &[(&str, Vec<u8>, &str)] = &[
        (
            "location",
            sample(&[9], &[1]),
            "pprof: sample 0: location 9 does not exist",
        ),
        (
            "too many values",
            sample(&[1], &[1, 2]),
            "pprof: sample 0: 2 values where there are 1 sample types",
        ),
        (
            "no values",
            sample(&[1], &[]),
            "pprof: sample 0: 0 values where there are 1 sample types",
        ),
        (
            "negative",
            sample(&[1], &[u64::MAX]),
            "pprof: sample 0: value -1 is negative",
        ),
        (
            "overflow",
            [sample(&[1], &[i64::MAX as u64]), sample(&[1], &[1])].concat(),
            "pprof: sample 1: samples (count): the sum does not fit in 64 bits",
        ),
        (
            "location twice",
            bytes(4, &number(1, 1)),
            "pprof: location 1 stands twice",
        ),
        (
            "function twice",
            bytes(5, &number(1, 1)),
            "pprof: function 1 stands twice",
        ),
        (
            "string",
            bytes(5, &[number(1, 2), number(2, 99)].concat()),
            "pprof: string 99 does not exist (there are 4)",
        ),
        (
            "negative string",
            bytes(5, &[number(1, 2), number(2, u64::MAX)].concat()),
            "pprof: string -1 does not exist (there are 4)",
        ),
        (
            "function",
            bytes(4, &[number(1, 2), bytes(4, &number(1, 8))].concat()),
            "pprof: location 2: function 8 does not exist",
        ),
        (
            "truncated",
            vec![0x12, 0x50],
            "pprof: damaged or truncated at byte",
        ),
    ];
    for (what, more, expected) in cases {
        let error = read_message(&message(std::slice::from_ref(more)))
            .err()
            .unwrap_or_default();
        assert!(error.starts_with(expected), "{what}: {error:?}");
    }
    assert_eq!(
        read_message(b"").err().unwrap(),
        "pprof: no sample type; is this a profile?"
    );
}

#[test]
fn a_mapping_that_is_not_there_is_a_module_that_is_not_known() {
    let location = [number(1, 2), number(2, 5), bytes(4, &number(1, 1))].concat();
    let mapping = bytes(3, &[number(1, 5), number(5, NAME)].concat());
    let message = |more| message(&[bytes(4, &location), sample(&[2], &[1]), more]);
    let without = read_message(&message(Vec::new())).unwrap();
    assert_eq!(without.modules().count(), 0);
    let with = read_message(&message(mapping)).unwrap();
    assert_eq!(with.modules().collect::<Vec<_>>(), [("f", "f")]);
}

#[test]
fn what_is_wrong_with_a_mapping_is_a_module_that_is_not_known() {
    let location = [number(1, 2), number(2, 5), bytes(4, &number(1, 1))].concat();
    let wrong = [
        bytes(3, b"").repeat(2),
        bytes(3, &[number(1, 5), number(5, 99)].concat()),
        bytes(3, &[number(1, 5), number(5, u64::MAX)].concat()),
        bytes(3, &[5 << 3 | 2, 50]),
    ];
    for more in wrong {
        let mappings = message(&[bytes(4, &location), sample(&[2], &[1]), more]);
        let profile = read_message(&mappings).unwrap();
        assert_eq!(
            (profile.total(0).unwrap(), profile.modules().count()),
            (1, 0)
        );
    }
}

/// A file's name, and a function's, as long as names may be.
fn long(start: &str) -> Vec<u8> {
    bytes(6, format!("{start}{}", "n".repeat(65_000)).as_bytes())
}

/// A figure of this process, or of this thread, from a file of the kernel's.
fn figure(path: &str, after: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    let (_, text) = text.split_once(after).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn mappings_of_one_long_name_take_the_memory_of_one() {
    let peak = || figure("/proc/self/status", "VmHWM:");
    let mapping = |id| bytes(3, &[number(1, id), number(5, 4)].concat());
    let location = [number(1, 2), number(2, 9_999), bytes(4, &number(1, 1))].concat();
    let mappings: Vec<Vec<u8>> = (1..10_000).map(mapping).collect();
    let more = [long("/x/m.so"), mappings.concat(), bytes(4, &location)];
    let message = message(&[more.concat(), sample(&[2], &[1])]);
    let before = peak();
    read_message(&message).unwrap();
    let kibibytes = peak() - before;
    assert!(
        kibibytes < 200 << 10,
        "650 MB if each has its own: {kibibytes} KiB"
    );
}

#[test]
fn lines_of_one_long_name_take_the_time_of_one() {
    let nanoseconds = || figure("/proc/thread-self/schedstat", "");
    let function = bytes(5, &[number(1, 2), number(2, 5)].concat());
    let mapping = bytes(3, &[number(1, 1), number(5, NAME)].concat());
    let lines = bytes(4, &number(1, 2)).repeat(400_000);
    let location = bytes(4, &[number(1, 2), number(2, 1), lines].concat());
    let names = [bytes(6, b"m.so"), long("f")].concat();
    let message = message(&[names, function, mapping, location, sample(&[1], &[1])]);
    let before = nanoseconds();
    read_message(&message).unwrap();
    let seconds = (nanoseconds() - before) as f64 / 1e9;
    assert!(
        seconds < 8.0,
        "a minute and more if each is looked at: {seconds} s"
    );
}

#[test]
fn a_bomb_is_refused_at_the_limit() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    let limits = Limits {
        pprof_bytes: 1 << 20,
        text_bytes: 1 << 20,
        ..Limits::default()
    };
    bomb.write_all(&vec![0; 2 << 20]).unwrap();
    let bomb = bomb.finish().unwrap();
    let error = read(&bomb, &within(&limits, None))
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
fn few_bytes_cannot_stand_for_endless_stacks() {
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
fn a_truncated_gzip_says_so() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    profile.add_stack(&["a", "b"], &[1]).unwrap();
    let mut written = Vec::new();
    profile.write_pprof(&mut written).unwrap();
    for end in 3..written.len() {
        let error = read(&written[..end], &ReadOptions::default())
            .err()
            .unwrap()
            .to_string();
        assert!(error.starts_with("gzip: "), "{end}: {error}");
    }
}

#[test]
fn a_line_without_an_end_is_told_with_its_number() {
    let text = format!("a 1 2.5: 1 c: \n\tff {} (/m)\n\n", "f".repeat(1 << 20));
    let error = read(text.as_bytes(), &ReadOptions::default())
        .err()
        .unwrap();
    let expected = "perf script text, line 2: bytes of a line: more than 1048576";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn stacks_that_end_in_the_same_bytes_are_told_apart() {
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
    let mut folded = Vec::new();
    let profile = read_message(&message).unwrap();
    profile.write_folded(&mut folded, 0, true).unwrap();
    assert_eq!(folded, b"f 2\nf;f 3\nf;f;f 2\n");
}
