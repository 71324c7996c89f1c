//! JFR recordings made by hand: every encoding, chunks one after the other, and every way to be damaged.

use flamegraph::{read, Format, Profile, ReadOptions, Threads};

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

fn numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| varint(number)).collect()
}

fn text(text: &str) -> Vec<u8> {
    [vec![3], varint(text.len() as u64), text.as_bytes().to_vec()].concat()
}

/// An event; its size is written in four bytes, as the JDK does.
fn event(kind: u64, fields: &[u8]) -> Vec<u8> {
    let rest = [varint(kind), fields.to_vec()].concat();
    let size = rest.len() + 4;
    let padded = [0, 7, 14, 21]
        .map(|shift| (size >> shift) as u8 & 0x7f | if shift < 21 { 0x80 } else { 0 });
    [padded.to_vec(), rest].concat()
}

/// Types by number, with their fields: name, type, whether pooled, whether an array.
type Class = (
    u64,
    &'static str,
    &'static [(&'static str, u64, bool, bool)],
);

const CLASSES: &[Class] = &[
    (1, "boolean", &[]),
    (2, "int", &[]),
    (3, "long", &[]),
    (4, "java.lang.String", &[]),
    (5, "float", &[]),
    (
        10,
        "java.lang.Thread",
        &[
            ("osName", 4, false, false),
            ("osThreadId", 3, false, false),
            ("javaName", 4, false, false),
        ],
    ),
    (
        11,
        "java.lang.Class",
        &[("name", 12, true, false), ("modifiers", 2, false, false)],
    ),
    (12, "jdk.types.Symbol", &[("string", 4, false, false)]),
    (
        13,
        "jdk.types.Method",
        &[("type", 11, true, false), ("name", 12, true, false)],
    ),
    (
        14,
        "jdk.types.StackTrace",
        &[("truncated", 1, false, false), ("frames", 15, false, true)],
    ),
    (
        15,
        "jdk.types.StackFrame",
        &[
            ("method", 13, true, false),
            ("lineNumber", 2, false, false),
            ("type", 16, true, false),
        ],
    ),
    (
        16,
        "jdk.types.FrameType",
        &[("description", 4, false, false)],
    ),
    (17, "jdk.types.ThreadState", &[("name", 4, false, false)]),
    (
        18,
        "test.Nested",
        &[("ratio", 5, false, false), ("inner", 19, false, true)],
    ),
    (
        19,
        "test.Inner",
        &[("flag", 1, false, false), ("label", 4, false, false)],
    ),
    (
        30,
        "jdk.ExecutionSample",
        &[
            ("startTime", 3, false, false),
            ("sampledThread", 10, true, false),
            ("stackTrace", 14, true, false),
            ("state", 17, true, false),
        ],
    ),
    (
        31,
        "jdk.ObjectAllocationInNewTLAB",
        &[
            ("startTime", 3, false, false),
            ("eventThread", 10, true, false),
            ("stackTrace", 14, true, false),
            ("objectClass", 11, true, false),
            ("allocationSize", 3, false, false),
            ("tlabSize", 3, false, false),
        ],
    ),
    (
        5000,
        "jdk.JavaMonitorEnter",
        &[
            ("startTime", 3, false, false),
            ("duration", 3, false, false),
            ("eventThread", 10, true, false),
            ("stackTrace", 14, true, false),
            ("monitorClass", 11, true, false),
        ],
    ),
    (
        32,
        "jdk.ActiveSetting",
        &[
            ("startTime", 3, false, false),
            ("id", 3, false, false),
            ("name", 4, false, false),
            ("value", 4, false, false),
        ],
    ),
];

/// Texts, each once, and elements that refer to them.
#[derive(Default)]
struct Metadata {
    texts: Vec<String>,
    elements: Vec<u8>,
}

impl Metadata {
    fn text(&mut self, text: &str) -> u64 {
        let found = self.texts.iter().position(|known| known == text);
        let index = found.unwrap_or(self.texts.len());
        if found.is_none() {
            self.texts.push(text.to_string());
        }
        index as u64
    }

    fn element(&mut self, name: &str, attributes: &[(&str, &str)], children: usize) {
        let mut words = vec![self.text(name), attributes.len() as u64];
        for (key, value) in attributes {
            words.extend([self.text(key), self.text(value)]);
        }
        words.push(children as u64);
        self.elements.extend(numbers(&words));
    }

    fn event(classes: &[Class]) -> Vec<u8> {
        let mut metadata = Metadata::default();
        metadata.element("root", &[], 1);
        metadata.element("metadata", &[], classes.len());
        for (id, name, fields) in classes {
            metadata.element(
                "class",
                &[("name", name), ("id", &id.to_string())],
                fields.len(),
            );
            for (name, class, pooled, array) in *fields {
                let class = class.to_string();
                let mut attributes = vec![("name", *name), ("class", class.as_str())];
                attributes.extend(pooled.then_some(("constantPool", "true")));
                attributes.extend(array.then_some(("dimension", "1")));
                metadata.element("field", &attributes, 0);
            }
        }
        let texts: Vec<u8> = metadata
            .texts
            .iter()
            .flat_map(|known| text(known))
            .collect();
        let fields = [
            numbers(&[0, 0, 1, metadata.texts.len() as u64]),
            texts,
            metadata.elements,
        ]
        .concat();
        event(0, &fields)
    }
}

/// One pool of a checkpoint.
fn pool(class: u64, constants: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let values = constants
        .iter()
        .flat_map(|(id, value)| [varint(*id), value.clone()].concat());
    [
        numbers(&[class, constants.len() as u64]),
        values.clone().collect(),
    ]
    .concat()
}

fn checkpoint(pools: &[Vec<u8>]) -> Vec<u8> {
    event(
        1,
        &[numbers(&[0, 0, 0, 1, pools.len() as u64]), pools.concat()].concat(),
    )
}

fn frame(method: u64, frame_type: u64) -> Vec<u8> {
    numbers(&[method, 7, frame_type])
}

fn constants() -> Vec<u8> {
    let symbols = [
        (1, text("demo/Main")),
        // Latin-1, UTF-16, and a text of the pool of strings.
        (2, vec![5, 4, b'c', b'a', b'f', 0xe9]),
        (3, [vec![4, 2, b'h'], varint(0x456)].concat()),
        (4, vec![2, 77]),
        (5, text("[[Ldemo/Thing;")),
        (6, vec![1]),
    ];
    let stack =
        |frames: &[Vec<u8>]| [vec![0], varint(frames.len() as u64), frames.concat()].concat();
    checkpoint(&[
        // Of a type that nobody asks for, between the others: its layout alone says where it ends.
        pool(
            18,
            &[(
                1,
                [vec![0, 0, 0, 0], varint(2), vec![1, 0], vec![0], text("x")].concat(),
            )],
        ),
        pool(
            10,
            &[(9, [text("os"), varint(1234), text("wörker 1")].concat())],
        ),
        pool(
            11,
            &[
                (1, numbers(&[1, 0])),
                (2, numbers(&[5, 0])),
                (3, numbers(&[6, 0])),
            ],
        ),
        pool(12, &symbols),
        pool(4, &[(77, text("leaf"))]),
        pool(
            13,
            &[
                (1, numbers(&[1, 2])),
                (2, numbers(&[1, 3])),
                (3, numbers(&[3, 4])),
            ],
        ),
        pool(
            14,
            &[
                (1, stack(&[frame(3, 5), frame(2, 2), frame(1, 1)])),
                (2, stack(&[frame(1, 0)])),
            ],
        ),
        pool(
            16,
            &[
                (0, text("Interpreted")),
                (1, text("JIT compiled")),
                (2, text("Inlined")),
                (5, text("Kernel")),
            ],
        ),
        pool(
            17,
            &[(1, text("STATE_DEFAULT")), (2, text("STATE_SLEEPING"))],
        ),
    ])
}

fn samples() -> Vec<u8> {
    [
        event(
            32,
            &[numbers(&[0, 30]), text("interval"), text("1000")].concat(),
        ),
        event(30, &numbers(&[1_000, 9, 1, 1])),
        event(30, &numbers(&[2_000_000_000, 9, 1, 1])),
        event(30, &numbers(&[1_000, 8, 2, 2])),
        event(30, &numbers(&[1_000, 9, 0, 1])),
        event(31, &numbers(&[1_000, 9, 2, 2, 16, 4096])),
        event(5000, &numbers(&[1_000, 500, 9, 2, 0])),
    ]
    .concat()
}

fn header(size: u64) -> Vec<u8> {
    let words = [size, 0, 0, 1_600_000_000_000_000_000, 0, 0, 1_000_000_000];
    let words = words.iter().flat_map(|word: &u64| word.to_be_bytes());
    [
        b"FLR\0\0\x02\0\x01".to_vec(),
        words.collect(),
        vec![0, 0, 0, 1],
    ]
    .concat()
}

fn chunk(parts: &[Vec<u8>]) -> Vec<u8> {
    let content = parts.concat();
    [header(68 + content.len() as u64), content].concat()
}

fn whole_chunk() -> Vec<u8> {
    chunk(&[Metadata::event(CLASSES), samples(), constants()])
}

fn recording() -> Vec<u8> {
    // Metadata at the end, as the JDK's are, and constants before they are used.
    [
        whole_chunk(),
        chunk(&[constants(), samples(), Metadata::event(CLASSES)]),
    ]
    .concat()
}

fn options(threads: bool) -> ReadOptions {
    let threads = if threads { Threads::Each } else { Threads::Off };
    ReadOptions {
        threads,
        ..ReadOptions::default()
    }
}

fn folded(profile: &Profile, value: &str) -> String {
    let mut out = Vec::new();
    let value = profile.value_named(value).unwrap();
    profile.write_folded(&mut out, value, true).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn both_chunks_count_in_every_value() {
    let profile = read(&recording(), &options(false)).unwrap();
    assert_eq!(
        folded(&profile, "samples"),
        "[unknown] 2\ndemo/Main.café_[j];demo/Main.hі_[i];leaf_[k] 4\n"
    );
    assert_eq!(
        folded(&profile, "cpu").lines().next(),
        Some("[unknown] 2000")
    );
    assert_eq!(folded(&profile, "wall_samples"), "demo/Main.café_[0] 2\n");
    assert_eq!(
        folded(&profile, "alloc_space"),
        "demo/Main.café_[0];demo.Thing[][]_[i] 8192\n"
    );
    assert_eq!(folded(&profile, "delay"), "demo/Main.café_[0] 1000\n");
    assert!(profile.warnings().is_empty());
}

#[test]
fn threads_are_roots() {
    let profile = read(&recording(), &options(true)).unwrap();
    assert_eq!(
        folded(&profile, "wall_samples"),
        "[tid=8];demo/Main.café_[0] 2\n"
    );
    assert_eq!(
        folded(&profile, "contentions"),
        "[wörker 1 tid=1234];demo/Main.café_[0] 2\n"
    );
}

#[test]
fn a_span_of_time_has_its_samples_only() {
    let late = ReadOptions {
        time: Some((1.5, f64::INFINITY)),
        ..ReadOptions::default()
    };
    let profile = read(&recording(), &late).unwrap();
    assert_eq!(profile.values().len(), 2);
    assert_eq!(profile.total(0).unwrap(), 2);
}

#[test]
fn a_chunk_that_was_never_finished_is_said_and_left_out() {
    let unfinished = [header(0), Metadata::event(CLASSES), samples()].concat();
    let profile = read(
        &[whole_chunk(), unfinished.clone()].concat(),
        &options(false),
    )
    .unwrap();
    assert_eq!(profile.total(0).unwrap(), 3);
    let place = whole_chunk().len();
    let said = format!("JFR recording, byte {place}: the chunk was never finished and has no names; it was left out");
    assert_eq!(profile.warnings(), [said]);
    let error = read(&unfinished, &options(false))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("JFR recording, byte 0: the chunk was never finished"),
        "{error}"
    );
}

#[test]
fn what_follows_the_chunks_is_said() {
    let profile = read(
        &[whole_chunk(), b"garbage".to_vec()].concat(),
        &options(false),
    )
    .unwrap();
    assert_eq!(profile.total(0).unwrap(), 3);
    assert!(profile.warnings()[0].ends_with("no chunk begins here"));
}

#[test]
fn a_recording_cut_anywhere_gives_what_is_complete() {
    let (recording, first) = (recording(), whole_chunk().len());
    for end in 4..recording.len() {
        match read(&recording[..end], &options(true)) {
            Ok(profile) if end == first => assert!(profile.warnings().is_empty()),
            Ok(profile) => assert!(!profile.warnings().is_empty(), "cut at {end}"),
            Err(error) => assert!(end < first, "cut at {end}: {error}"),
        }
        if end >= first {
            let profile = read(&recording[..end], &options(false)).unwrap();
            assert!(
                profile
                    .total(profile.value_named("samples").unwrap())
                    .unwrap()
                    >= 3
            );
        }
    }
}

#[test]
fn any_byte_may_be_another() {
    let recording = recording();
    for place in 0..recording.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = recording.clone();
            damaged[place] ^= change;
            let forced = ReadOptions {
                threads: Threads::Each,
                ..ReadOptions::of(Some(Format::Jfr))
            };
            let _ = read(&damaged, &forced);
        }
    }
}

#[test]
fn numbers_may_be_as_large_as_they_like() {
    let recording = recording();
    for place in 68..recording.len() {
        let huge = [&recording[..place], &[0xff; 9][..], &recording[place + 1..]].concat();
        let _ = read(&huge, &options(true));
    }
}

#[test]
fn types_within_themselves_are_refused() {
    const ENDLESS: &[Class] = &[
        (2, "int", &[]),
        (
            20,
            "test.A",
            &[("a", 20, false, false), ("b", 20, false, true)],
        ),
        (
            21,
            "test.B",
            &[
                ("a", 22, false, false),
                ("b", 22, false, false),
                ("c", 22, false, true),
            ],
        ),
        (
            22,
            "test.C",
            &[
                ("a", 21, false, true),
                ("b", 21, false, false),
                ("c", 21, false, false),
            ],
        ),
        (23, "test.D", &[("empty", 24, false, true)]),
        (24, "test.E", &[]),
    ];
    for class in [20, 21, 22, 23] {
        let pools = checkpoint(&[pool(class, &[(1, vec![0xff; 64])])]);
        let recording = chunk(&[Metadata::event(ENDLESS), pools]);
        let profile = read(&recording, &options(false)).unwrap();
        assert!(
            profile.warnings()[0].contains("damaged checkpoints"),
            "{:?}",
            profile.warnings()
        );
        assert!(profile.is_empty());
    }
}

#[test]
fn another_version_is_refused_with_its_place() {
    let mut old = whole_chunk();
    old[5] = 0;
    let error = read(&old, &options(false)).err().unwrap().to_string();
    assert_eq!(
        error,
        "JFR recording, byte 0: version 0 of the format is not known (2 is)"
    );
}

#[test]
fn sums_that_do_not_fit_are_an_error() {
    let large = event(31, &numbers(&[1, 9, 2, 2, 16, i64::MAX as u64 >> 1]));
    let recording = chunk(&[Metadata::event(CLASSES), large.repeat(3), constants()]);
    let error = read(&recording, &options(false)).err().unwrap().to_string();
    assert_eq!(
        error,
        "JFR recording, byte 0: in the chunk: alloc_space (bytes): the sum does not fit in 64 bits"
    );
}
