//! Recordings made by hand.

pub fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

pub fn numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| varint(number)).collect()
}

pub fn text(text: &str) -> Vec<u8> {
    [vec![3], varint(text.len() as u64), text.as_bytes().to_vec()].concat()
}

/// An event; its size is written in four bytes, as the JDK does.
pub fn event(kind: u64, fields: &[u8]) -> Vec<u8> {
    let rest = [varint(kind), fields.to_vec()].concat();
    let size = rest.len() + 4;
    let padded = [0, 7, 14, 21]
        .map(|shift| (size >> shift) as u8 & 0x7f | if shift < 21 { 0x80 } else { 0 });
    [padded.to_vec(), rest].concat()
}

/// Types by number, with their fields: name, type, whether pooled, whether an array.
pub type Class = (
    u64,
    &'static str,
    &'static [(&'static str, u64, bool, bool)],
);

pub const CLASSES: &[Class] = &[
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
pub struct Metadata {
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

    pub fn event(classes: &[Class]) -> Vec<u8> {
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
pub fn pool(class: u64, constants: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let values = constants
        .iter()
        .flat_map(|(id, value)| [varint(*id), value.clone()].concat());
    [
        numbers(&[class, constants.len() as u64]),
        values.clone().collect(),
    ]
    .concat()
}

pub fn checkpoint(pools: &[Vec<u8>]) -> Vec<u8> {
    event(
        1,
        &[numbers(&[0, 0, 0, 1, pools.len() as u64]), pools.concat()].concat(),
    )
}

pub fn frame(method: u64, frame_type: u64) -> Vec<u8> {
    numbers(&[method, 7, frame_type])
}

pub fn constants() -> Vec<u8> {
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

pub fn samples() -> Vec<u8> {
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

pub fn header(size: u64) -> Vec<u8> {
    let words = [size, 0, 0, 1_600_000_000_000_000_000, 0, 0, 1_000_000_000];
    let words = words.iter().flat_map(|word: &u64| word.to_be_bytes());
    [
        b"FLR\0\0\x02\0\x01".to_vec(),
        words.collect(),
        vec![0, 0, 0, 1],
    ]
    .concat()
}

pub fn chunk(parts: &[Vec<u8>]) -> Vec<u8> {
    let content = parts.concat();
    [header(68 + content.len() as u64), content].concat()
}

pub fn whole_chunk() -> Vec<u8> {
    chunk(&[Metadata::event(CLASSES), samples(), constants()])
}

pub fn recording() -> Vec<u8> {
    // Metadata at the end, as the JDK's are, and constants before they are used.
    [
        whole_chunk(),
        chunk(&[constants(), samples(), Metadata::event(CLASSES)]),
    ]
    .concat()
}
