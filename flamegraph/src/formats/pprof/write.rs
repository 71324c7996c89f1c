//! Writing pprof: samples are encoded one by one as the tree is walked.

use std::collections::HashMap;
use std::io::Write;

use flate2::write::GzEncoder;
use flate2::Compression;

use crate::formats::pprof::proto::{self, field, sample_field};
use crate::profile::{Kind, Node, Order, Profile, Result, Step, ROOT};
use crate::source::wire::{put_bytes, put_message, put_varint};

/// The number of bytes to buffer before writing.
const BLOCK_BYTES: usize = 64 << 10;
/// As many nodes as a large cluster's. Compressing them well would take longer than everything else, and save a sixth
/// of the file.
const MANY_NODES: usize = 1 << 19;

impl Profile {
    /// Writes gzipped pprof, the same bytes for the same profile. Every sample has the labels.
    pub fn write_pprof(&self, out: impl Write) -> Result<()> {
        self.write_pprof_as(out, false)
    }

    /// The same; an outermost frame in brackets, `[name]`, is each sample's label `thread` instead.
    pub fn write_pprof_threads(&self, out: impl Write) -> Result<()> {
        self.write_pprof_as(out, true)
    }

    fn write_pprof_as(&self, out: impl Write, thread_label: bool) -> Result<()> {
        let level = if self.node_count() < MANY_NODES {
            Compression::default()
        } else {
            Compression::fast()
        };
        let mut out = GzEncoder::new(out, level);
        let mut strings = Strings::new();
        let mut block = Vec::new();
        for value in self.values() {
            let (name, unit) = (strings.id(&value.name), strings.id(&value.unit));
            put_message(
                &mut block,
                field::SAMPLE_TYPE,
                &proto::ValueType { r#type: name, unit },
            );
        }
        let labels: Vec<proto::Label> = self
            .labels()
            .iter()
            .map(|(name, value)| proto::Label {
                key: strings.id(name),
                str: strings.id(value),
                num: 0,
            })
            .collect();
        if let Some(last) = self.values().last() {
            put_varint(&mut block, field::DEFAULT_SAMPLE_TYPE << 3);
            put_varint(&mut block, strings.id(&last.name) as u64);
        }
        let threads = match thread_label {
            true => thread_labels(self, &mut strings),
            false => HashMap::new(),
        };
        let locations = write_frames(self, &mut strings, &mut block, &mut out)?;
        write_samples(self, &locations, (&labels, &threads), &mut block, &mut out)?;
        for text in strings.texts() {
            put_bytes(&mut block, field::STRING, text.as_bytes());
            write_full(&mut block, &mut out)?;
        }
        out.write_all(&block)?;
        out.finish()?.flush()?;
        Ok(())
    }
}

/// The string table under construction; the first string is empty. Names can be long, so they are not copied.
pub(crate) struct Strings<'a> {
    in_order: Vec<(&'a str, &'static str)>,
    ids: HashMap<&'a str, i64>,
}

impl<'a> Strings<'a> {
    pub(crate) fn new() -> Strings<'a> {
        let mut strings = Strings {
            in_order: Vec::new(),
            ids: HashMap::new(),
        };
        strings.id("");
        strings
    }

    pub(crate) fn id(&mut self, text: &'a str) -> i64 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.push(text, "");
        self.ids.insert(text, id);
        id
    }

    /// Adds a text with a suffix, which is not looked up again.
    pub(crate) fn push(&mut self, text: &'a str, suffix: &'static str) -> i64 {
        self.in_order.push((text, suffix));
        self.in_order.len() as i64 - 1
    }

    /// All texts in the order of their ids.
    pub(crate) fn texts(self) -> impl Iterator<Item = String> + 'a {
        let in_order = self.in_order.into_iter();
        in_order.map(|(text, suffix)| [text, suffix].concat())
    }
}

/// One function and one location, of the same id, for each frame in name order; returns the ids by frame index.
fn write_frames<'a>(
    profile: &'a Profile,
    strings: &mut Strings<'a>,
    block: &mut Vec<u8>,
    out: &mut impl Write,
) -> Result<Vec<u32>> {
    let mut mappings = Mappings::default();
    let mut ids = vec![0; profile.frames.index_len()];
    for (id, frame) in (1u32..).zip(profile.frames_in_order()) {
        ids[frame.index()] = id;
        let plain = profile.frames.name_of(frame);
        let name = strings.id(plain);
        let system_name = match frame.kind() {
            Kind::Plain => name,
            kind => strings.push(plain, kind.suffix()),
        };
        let id = u64::from(id);
        put_message(
            block,
            field::FUNCTION,
            &proto::Function {
                id,
                name,
                system_name,
            },
        );
        let mapping_id = match profile.modules.get(plain, frame.kind()) {
            Some(module) => mappings.id(strings.id(module), block),
            None => 0,
        };
        let line = vec![proto::Line { function_id: id }];
        put_message(
            block,
            field::LOCATION,
            &proto::Location {
                id,
                mapping_id,
                address: 0,
                line,
            },
        );
        write_full(block, out)?;
    }
    Ok(ids)
}

/// Writes the buffer if it is full.
fn write_full(block: &mut Vec<u8>, out: &mut impl Write) -> Result<()> {
    if block.len() >= BLOCK_BYTES {
        out.write_all(block)?;
        block.clear();
    }
    Ok(())
}

/// The modules as mappings, by the string ids of their names.
#[derive(Default)]
struct Mappings {
    ids: HashMap<i64, u64>,
}

impl Mappings {
    /// The id of a mapping, which is written on first use. pprof takes the first one for the program, which is unknown,
    /// so it has no name and no location. Its end differs from the next one's start, because pprof would merge them.
    fn id(&mut self, filename: i64, block: &mut Vec<u8>) -> u64 {
        if self.ids.is_empty() {
            self.put(0, 1, block);
        }
        match self.ids.get(&filename) {
            Some(&known) => known,
            None => self.put(filename, 0, block),
        }
    }

    fn put(&mut self, filename: i64, memory_limit: u64, block: &mut Vec<u8>) -> u64 {
        let id = self.ids.len() as u64 + 1;
        self.ids.insert(filename, id);
        let mapping = proto::Mapping {
            id,
            memory_limit,
            filename,
            has_functions: true,
        };
        put_message(block, field::MAPPING, &mapping);
        id
    }
}

/// The encoded label of each node below the root that is a thread.
fn thread_labels<'a>(profile: &'a Profile, strings: &mut Strings<'a>) -> HashMap<Node, Vec<u8>> {
    let key = strings.id(super::THREAD);
    let mut labels = HashMap::new();
    for node in profile.tree.nodes() {
        if let Some(thread) = profile.thread_at(node) {
            let str = strings.id(thread);
            let label = proto::Label { key, str, num: 0 };
            let mut field = Vec::new();
            put_message(&mut field, sample_field::LABEL, &label);
            labels.insert(node, field);
        }
    }
    labels
}

fn write_samples(
    profile: &Profile,
    locations: &[u32],
    (labels, threads): (&[proto::Label], &HashMap<Node, Vec<u8>>),
    block: &mut Vec<u8>,
    out: &mut impl Write,
) -> Result<()> {
    let columns: Vec<&[i64]> = (0..profile.values().len())
        .map(|value| profile.selves(value))
        .collect();
    let mut label_fields = Vec::new();
    for label in labels {
        put_message(&mut label_fields, sample_field::LABEL, label);
    }
    let common = label_fields.len();
    let (mut stack, mut behind) = (Stack::default(), Vec::new());
    for step in Order::of(profile).walk() {
        let leaf = match step {
            Step::Enter(node) => node,
            Step::Leave(_) => {
                stack.pop();
                continue;
            }
        };
        let mut has_location = leaf != ROOT;
        if has_location && profile.tree.parent(leaf) == ROOT {
            label_fields.truncate(common);
            if let Some(thread) = threads.get(&leaf) {
                label_fields.extend_from_slice(thread);
                has_location = false;
            }
        }
        stack.push(has_location.then(|| locations[profile.tree.frame(leaf).index()]));
        // A profile without samples has one empty sample, which carries its labels.
        let carrier = leaf == ROOT && profile.is_empty() && !labels.is_empty();
        if !carrier && columns.iter().all(|column| column[leaf as usize] == 0) {
            continue;
        }
        let values = columns.iter().map(|column| column[leaf as usize] as u64);
        put_values(&mut behind, values, &label_fields);
        put_sample(block, stack.leaf_first(), &behind);
        write_full(block, out)?;
    }
    Ok(())
}

/// Encodes a sample's values and labels, which follow its locations.
fn put_values(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, label_fields: &[u8]) {
    out.clear();
    let mut packed = Vec::new();
    values.for_each(|value| put_varint(&mut packed, value));
    if !packed.is_empty() {
        put_bytes(out, sample_field::VALUE, &packed);
    }
    out.extend_from_slice(label_fields);
}

fn put_sample(block: &mut Vec<u8>, locations: &[u8], behind: &[u8]) {
    let mut head = Vec::new();
    if !locations.is_empty() {
        put_varint(&mut head, sample_field::LOCATION << 3 | 2);
        put_varint(&mut head, locations.len() as u64);
    }
    put_varint(block, field::SAMPLE << 3 | 2);
    put_varint(block, (head.len() + locations.len() + behind.len()) as u64);
    block.extend_from_slice(&head);
    block.extend_from_slice(locations);
    block.extend_from_slice(behind);
}

/// The packed ids of the current stack, leaf first. The buffer fills from its end, so a callee is put before its caller
/// and ids need not be encoded or reversed for each sample.
#[derive(Default)]
pub(crate) struct Stack {
    buffer: Vec<u8>,
    /// The length of the ids before each frame was added, outermost first.
    starts: Vec<usize>,
    start: usize,
}

impl Stack {
    /// Enters a frame, or the root, which has none.
    pub(crate) fn push(&mut self, id: Option<u32>) {
        self.starts.push(self.buffer.len() - self.start);
        let Some(id) = id else { return };
        let mut bytes = Vec::with_capacity(5);
        put_varint(&mut bytes, u64::from(id));
        if self.start < bytes.len() {
            self.grow();
        }
        self.start -= bytes.len();
        self.buffer[self.start..self.start + bytes.len()].copy_from_slice(&bytes);
    }

    pub(crate) fn pop(&mut self) {
        self.start = self.buffer.len() - self.starts.pop().unwrap_or(0);
    }

    pub(crate) fn leaf_first(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Makes room before the ids.
    fn grow(&mut self) {
        let more = self.buffer.len().max(4096);
        let mut larger = vec![0; more];
        larger.extend_from_slice(&self.buffer);
        self.buffer = larger;
        self.start += more;
    }
}
