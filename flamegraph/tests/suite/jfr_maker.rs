//! JFR recordings made by hand.

use crate::pprof_maker::varint;

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

/// Types, one a line: number, name, and fields as `name:type`, with `*` where pooled and `[]` where an array.
pub const CLASSES: &str = "\
1 boolean
2 int
3 long
4 java.lang.String
5 float
10 java.lang.Thread osName:4 osThreadId:3 javaName:4 javaThreadId:3
11 java.lang.Class name:12* modifiers:2
12 jdk.types.Symbol string:4
13 jdk.types.Method type:11* name:12*
14 jdk.types.StackTrace truncated:1 frames:15[]
15 jdk.types.StackFrame method:13* lineNumber:2 type:16*
16 jdk.types.FrameType description:4
17 jdk.types.ThreadState name:4
18 test.Nested ratio:5 inner:19[]
19 test.Inner flag:1 label:4
30 jdk.ExecutionSample startTime:3 sampledThread:10* stackTrace:14* state:17*
31 jdk.ObjectAllocationInNewTLAB startTime:3 eventThread:10* stackTrace:14* objectClass:11* allocationSize:3 tlabSize:3
5000 jdk.JavaMonitorEnter startTime:3 duration:3 eventThread:10* stackTrace:14* monitorClass:11*
32 jdk.ActiveSetting startTime:3 id:3 name:4 value:4
";

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

    pub fn event(classes: &str) -> Vec<u8> {
        let mut metadata = Metadata::default();
        metadata.element("root", &[], 1);
        metadata.element("metadata", &[], classes.lines().count());
        for line in classes.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let fields = &words[2..];
            metadata.element(
                "class",
                &[("name", words[1]), ("id", words[0])],
                fields.len(),
            );
            for field in fields {
                let (name, class) = field.split_once(':').unwrap();
                let number = class.trim_end_matches(['*', '[', ']']);
                let mut attributes = vec![("name", name), ("class", number)];
                attributes.extend(class.contains('*').then_some(("constantPool", "true")));
                attributes.extend(class.ends_with(']').then_some(("dimension", "1")));
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
            &[(
                9,
                [text("os"), varint(1234), text("wörker 1"), varint(21)].concat(),
            )],
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
