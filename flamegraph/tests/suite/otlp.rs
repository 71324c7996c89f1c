//! OTLP profiles: those of other programs, of two versions, and messages that contradict themselves.

use flamegraph::{
    read, Format, Profile, ReadOptions, Row, Threads, Times, ValueType, WriteFormat, BUCKET,
};

use crate::pprof_maker::{bytes, number};
use crate::support::{detected, error, folded, written};

/// A text as an `AnyValue`.
fn text(text: &str) -> Vec<u8> {
    bytes(1, text.as_bytes())
}

/// The dictionary: strings, two functions in a location each, and two stacks: `main;work` and `main`.
fn dictionary() -> Vec<u8> {
    let strings = [
        "",
        "cpu",
        "nanoseconds",
        "main",
        "work",
        "thread.name",
        "/lib/libx.so",
    ];
    let mut dictionary = Vec::new();
    for (table, entries) in [
        (1, vec![Vec::new(), number(4, 6)]),
        (
            2,
            vec![
                Vec::new(),
                bytes(3, &number(1, 1)),
                [number(1, 1), bytes(3, &number(1, 2))].concat(),
                number(2, 0x7f00),
            ],
        ),
        (3, vec![Vec::new(), number(1, 3), number(1, 4)]),
        (
            5,
            strings
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect(),
        ),
        (
            6,
            vec![
                Vec::new(),
                [number(1, 5), bytes(2, &text("pool-1-thread-2"))].concat(),
            ],
        ),
        (
            7,
            vec![
                Vec::new(),
                bytes(1, &[2, 1]),
                bytes(1, &[1]),
                bytes(1, &[3, 1]),
            ],
        ),
    ] {
        for entry in entries {
            dictionary.extend(bytes(table, &entry));
        }
    }
    bytes(2, &dictionary)
}

/// A resource with an attribute and profiles of these samples.
fn resource(host: &str, profiles: &[&[Vec<u8>]]) -> Vec<u8> {
    let attribute = |key: &str, value: Vec<u8>| bytes(1, &[text(key), bytes(2, &value)].concat());
    let attributes = [
        attribute("host.name", text(host)),
        attribute("process.pid", number(3, 12)),
    ];
    let mut scope = bytes(1, &text("collector"));
    for samples in profiles {
        let mut profile = bytes(1, &[number(1, 1), number(2, 2)].concat());
        profile.extend(samples.iter().flat_map(|sample| bytes(2, sample)));
        scope.extend(bytes(2, &profile));
    }
    bytes(
        1,
        &[bytes(1, &attributes.concat()), bytes(2, &scope)].concat(),
    )
}

#[test]
fn profiles_of_a_collector_are_added_up() {
    let values = |numbers: &[u8]| bytes(4, numbers);
    let one = [
        [number(1, 1), bytes(2, &[1]), values(&[5, 6])].concat(),
        [number(1, 2), values(&[1])].concat(),
    ];
    // A sample without values has one for each time; one of no stack.
    let two = [
        [number(1, 1), bytes(5, &[0; 24])].concat(),
        values(&[2]),
        [number(1, 3), values(&[4])].concat(),
    ];
    let message = [
        resource("n1", &[&one, &two]),
        resource("n2", &[&one]),
        dictionary(),
    ]
    .concat();
    let profile = detected(&message).unwrap();
    assert_eq!(profile.values(), [ValueType::cpu()]);
    let expected = " 2\nmain 2\nmain;[0x7f00] 4\nmain;work 25\n";
    assert_eq!(folded(&profile, 0), expected);
    assert_eq!(
        profile.labels().iter().collect::<Vec<_>>(),
        [(&"pid".into(), &"12".into())]
    );
    assert_eq!(profile.modules().collect::<Vec<_>>(), [("work", "libx.so")]);
    let threads = ReadOptions {
        threads: Threads::Groups,
        ..ReadOptions::default()
    };
    let profile = read(&message, &threads).unwrap();
    assert!(folded(&profile, 0).starts_with(" 2\n[pool-N-thread-N];main;work 22\nmain 2\n"));
    // The dictionary first, as async-profiler writes it; values are field 2 in version 1.9.
    let old = [[number(1, 1), number(2, 7), bytes(3, &[1])].concat()];
    let message = [dictionary(), resource("n1", &[&old])].concat();
    assert_eq!(folded(&detected(&message).unwrap(), 0), "main;work 7\n");
    assert!(folded(&read(&message, &threads).unwrap(), 0).starts_with("[pool-N-thread-N];main"));
}

#[test]
fn contradictions_are_errors() {
    let refused = |more: &[u8], expected: &str| {
        let message = [more, &dictionary()].concat();
        let message = error(read(&message, &ReadOptions::of(Some(Format::Otlp))));
        assert!(
            message.starts_with(&format!("OTLP: {expected}")),
            "{message}"
        );
    };
    let sample = |sample: &[Vec<u8>]| resource("h", &[&[sample.concat()]]);
    let value = || bytes(4, &[1]);
    refused(
        &sample(&[number(1, 9), value()]),
        "profile 0: sample 0: stack 9 does not exist",
    );
    refused(
        &sample(&[number(1, 1), value(), bytes(2, &[7])]),
        "profile 0: sample 0: attribute 7 does not exist",
    );
    let negative = number(4, -3i64 as u64);
    refused(
        &resource("h", &[&[[number(1, 1), value()].concat(), negative]]),
        "profile 0: sample 1: value -3 is negative: differences of profiles are not read",
    );
    for (table, entry, expected) in [
        (2, number(1, 9), "location 0: mapping 9 does not exist"),
        (
            2,
            bytes(3, &number(1, 9)),
            "location 0: function 9 does not exist",
        ),
        (3, number(1, 99), "string 99 does not exist (there are 7)"),
    ] {
        refused(&bytes(2, &bytes(table, &entry)), expected);
    }
    refused(b"", "there is no profile");
    refused(b"\x0a\x50", "damaged or truncated");
}

#[test]
fn what_is_written_names_its_resource_and_period() {
    let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
    profile.add_stack(&["main", "a_[j]"], &[3, 30]).unwrap();
    profile.add_stack(&["main"], &[1, 10]).unwrap();
    for (name, value) in [
        ("host", "n1"),
        ("pid", "12"),
        ("process", "driver"),
        ("x", ""),
    ] {
        profile.set_label(name, value);
    }
    let message = written(&profile, WriteFormat::Otlp);
    let has = |part: &[u8]| message.windows(part.len()).any(|window| window == part);
    for name in ["host.name", "process.pid", "service.name"] {
        assert!(has(name.as_bytes()), "{name}");
    }
    let back = detected(&message).unwrap();
    assert_eq!(back.values(), profile.values());
    assert_eq!(back.labels(), profile.labels());
    assert_eq!(folded(&back, 1), folded(&profile, 1));
    // Each sample stands for 10 ns.
    let period = number(6, 10);
    assert!(has(&period));
    // Two buckets of 20 ms from the 5th microsecond of 1970 on.
    let row = |bucket| Row {
        node: 1,
        bucket,
        slice: 0,
        band: 0,
        samples: 1,
        amount: 0,
    };
    let times = Times::new(5, BUCKET, Vec::new(), vec![row(0), row(1)]);
    profile.set_times(Some(times));
    let message = written(&profile, WriteFormat::Otlp);
    let start = [&[3 << 3 | 1][..], &5000u64.to_le_bytes()].concat();
    let expected = [start, number(4, 40_000_000)].concat();
    assert!(message
        .windows(expected.len())
        .any(|window| window == expected));
}
