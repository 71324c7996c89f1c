//! Reading OTLP profiles. Every reference into the dictionary is checked, and samples are decoded one at a time.

use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use prost::Message;

use super::messages::{
    field, AnyValue, Attribute, Function, Location, Mapping, Resource, ValueType,
};
use super::RESOURCE_NAMES;
use crate::formats::pprof::intern_function;
use crate::formats::ReadOptions;
use crate::profile::{self, Error, Frame, Labels, Node, Profile, Result, ROOT};
use crate::source::wire::{varint, Fields, Numbers, Value};
use crate::source::Input;

const NAME: &str = "OTLP";
/// Most entries of one table, and frames of all locations: a few bytes on the wire take many in memory.
const MOST_ENTRIES: usize = 1 << 22;
/// Bytes of one inner message that is decoded as a whole, for the same reason.
const MOST_INNER_BYTES: usize = 16 << 20;
/// More values than any real file has.
const MOST_VALUES: usize = 32;
/// The field of a sample that has its timestamps.
const TIMES: u64 = 5;
/// The attribute of a sample that names its thread.
const THREAD: &str = "thread.name";

fn wrong(what: impl Into<String>) -> Error {
    Error::Damaged(NAME, what.into())
}

/// Whether a message begins with a resource or with a dictionary. A pprof message begins with numbers of a value, or
/// with the locations of a sample, where an entry of the dictionary has no content.
pub(crate) fn detect(head: &[u8]) -> bool {
    let mut rest = head;
    let mut part = || match varint(&mut rest)? {
        key if key & 7 == 2 => Some((key >> 3, varint(&mut rest)?)),
        _ => None,
    };
    match part() {
        Some((field::DICTIONARY, _)) => {
            matches!(part(), Some((field::MAPPING_TABLE..=field::STACK_TABLE, 0)))
        }
        Some((field::RESOURCE_PROFILES, whole)) => {
            let inner = match part() {
                Some((field::RESOURCE, 0)) => part(),
                other => other,
            };
            let Some((field::RESOURCE | field::SCOPE_PROFILES, inner)) = inner else {
                return false;
            };
            inner < whole && matches!(part(), Some((1..=3, innermost)) if innermost < inner)
        }
        _ => false,
    }
}

/// Reads all profiles of a message. Those with the same type of sample are added up.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let limits = &options.limits;
    let message = input.into_bytes("bytes of the OTLP message", limits.pprof_bytes)?;
    let mut profile = Profile::bounded(Vec::new(), limits.cells);
    let dictionary = Dictionary::read(&message, &mut profile, options)?;
    let mut reader = Reader {
        options,
        dictionary: &dictionary,
        profile,
        layout: layout(&message)?,
        nodes: HashMap::default(),
        threads: HashMap::default(),
        labels: None,
        left: limits.text_bytes,
    };
    let mut number = 0;
    for resource in parts(&message, field::RESOURCE_PROFILES) {
        let resource = resource?;
        let labels = reader.labels_of(resource)?;
        for scope in parts(resource, field::SCOPE_PROFILES) {
            for one in parts(scope?, field::PROFILES) {
                let done = reader.add_profile(one?, &labels);
                done.map_err(|error| within(error, &format!("profile {number}")))?;
                number += 1;
            }
        }
    }
    if number == 0 {
        return Err(wrong("there is no profile"));
    }
    let mut profile = reader.profile;
    profile.set_labels(reader.labels.unwrap_or_default());
    profile.into_ordered()
}

/// Prefixes an error with its place in the file.
fn within(error: Error, place: &str) -> Error {
    match error {
        Error::Damaged(_, reason) => wrong(format!("{place}: {reason}")),
        Error::Negative(format, number) => Error::Negative(format, format!("{place}: {number}")),
        Error::Limit { .. } => error,
        other => wrong(format!("{place}: {other}")),
    }
}

fn fields(message: &[u8]) -> impl Iterator<Item = Result<(u64, Value<'_>)>> {
    Fields::of(message).map(|found| found.map_err(|_| wrong("damaged or truncated")))
}

/// The messages or texts of one field.
fn parts(message: &[u8], wanted: u64) -> impl Iterator<Item = Result<&[u8]>> {
    fields(message).filter_map(move |found| match found {
        Ok((number, Value::Bytes(bytes))) if number == wanted => Some(Ok(bytes)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

fn decoded<M: Message + Default>(bytes: &[u8], what: &str) -> Result<M> {
    if bytes.len() > MOST_INNER_BYTES {
        let size = bytes.len();
        let reason = format!("{what}: {size} bytes (at most {MOST_INNER_BYTES} are read)");
        return Err(wrong(reason));
    }
    M::decode(bytes).map_err(|error| wrong(format!("{what}: {error}")))
}

/// The numbers of a field that is packed, or one of several that are not.
fn numbers<'a>(value: &'a Value<'a>) -> impl Iterator<Item = Result<u64>> + 'a {
    let (single, packed): (Option<u64>, &[u8]) = match value {
        Value::Number(number) => (Some(*number), &[]),
        Value::Bytes(bytes) => (None, bytes),
        Value::Fixed => (None, &[]),
    };
    let packed = Numbers::of(packed).map(|found| found.ok_or_else(|| wrong("a damaged number")));
    single.map(Ok).into_iter().chain(packed)
}

/// Which fields of a sample are its values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Values are field 4, attributes field 2.
    V1_10,
    /// Values are field 2, attributes field 3.
    V1_9,
}

/// The first sample that only one of the versions can have decides. In both, field 5 has times.
fn layout(message: &[u8]) -> Result<Layout> {
    for resource in parts(message, field::RESOURCE_PROFILES) {
        for scope in parts(resource?, field::SCOPE_PROFILES) {
            for profile in parts(scope?, field::PROFILES) {
                for sample in parts(profile?, field::SAMPLES) {
                    let mut has = [false; 6];
                    for found in fields(sample?) {
                        match found? {
                            (field::VALUES, Value::Bytes(_)) => return Ok(Layout::V1_10),
                            (number @ 0..=5, _) => has[number as usize] = true,
                            _ => {}
                        }
                    }
                    if has[2] && !has[5] {
                        return Ok(Layout::V1_9);
                    }
                }
            }
        }
    }
    Ok(Layout::V1_10)
}

/// The tables that profiles refer to.
struct Dictionary<'a> {
    strings: Vec<&'a [u8]>,
    attributes: Vec<&'a [u8]>,
    /// The packed locations of each stack, leaf first.
    stacks: Vec<&'a [u8]>,
    /// The frames of each location, root first, within `frames`.
    locations: Vec<Range<usize>>,
    frames: Vec<Frame>,
    most_bytes: usize,
}

impl<'a> Dictionary<'a> {
    fn read(
        message: &'a [u8],
        profile: &mut Profile,
        options: &ReadOptions,
    ) -> Result<Dictionary<'a>> {
        let mut tables: [Vec<&[u8]>; 8] = Default::default();
        for dictionary in parts(message, field::DICTIONARY) {
            for found in fields(dictionary?) {
                let (number @ 1..=7, Value::Bytes(entry)) = found? else {
                    continue;
                };
                let table = &mut tables[number as usize];
                if table.len() == MOST_ENTRIES {
                    let limit = MOST_ENTRIES as u64;
                    let what = "entries of a table of the dictionary";
                    return Err(Error::Limit { what, limit });
                }
                table.push(entry);
            }
        }
        let [_, mappings, locations, functions, _, strings, attributes, stacks] = tables;
        let mut dictionary = Dictionary {
            strings,
            attributes,
            stacks,
            locations: Vec::new(),
            frames: Vec::new(),
            most_bytes: options.limits.name_bytes,
        };
        let functions = dictionary.functions(&functions, profile)?;
        let mut modules = Modules::read(&mappings)?;
        for (number, bytes) in locations.iter().enumerate() {
            let location = decoded(bytes, &format!("location {number}"))?;
            let added = dictionary.add_location(&location, &functions, profile);
            let noted = added.and_then(|()| modules.note(&location, &dictionary, profile));
            noted.map_err(|error| within(error, &format!("location {number}")))?;
        }
        Ok(dictionary)
    }

    fn functions(&self, functions: &[&[u8]], profile: &mut Profile) -> Result<Vec<Frame>> {
        let mut frames = Vec::new();
        for (number, bytes) in functions.iter().enumerate() {
            let function: Function = decoded(bytes, &format!("function {number}"))?;
            let name = self.bytes(function.name_string)?;
            let system_name = self.bytes(function.system_name_string)?;
            frames.push(intern_function(name, system_name, profile)?);
        }
        Ok(frames)
    }

    fn add_location(
        &mut self,
        location: &Location,
        functions: &[Frame],
        profile: &mut Profile,
    ) -> Result<()> {
        let start = self.frames.len();
        if start + location.lines.len() > MOST_ENTRIES {
            let limit = MOST_ENTRIES as u64;
            let what = "frames of the locations";
            return Err(Error::Limit { what, limit });
        }
        for line in location.lines.iter().rev() {
            let function = usize::try_from(line.function).ok();
            let frame = function.and_then(|function| functions.get(function));
            let missing = || wrong(format!("function {} does not exist", line.function));
            self.frames.push(*frame.ok_or_else(missing)?);
        }
        if location.lines.is_empty() {
            let address = format!("[{:#x}]", location.address);
            self.frames.push(profile.frames.intern(address.as_bytes())?);
        }
        self.locations.push(start..self.frames.len());
        Ok(())
    }

    fn frames_of(&self, location: u64) -> Result<&[Frame]> {
        let index = usize::try_from(location).ok();
        let range = index.and_then(|index| self.locations.get(index).cloned());
        let range = range.ok_or_else(|| wrong(format!("location {location} does not exist")))?;
        Ok(&self.frames[range])
    }

    fn bytes(&self, index: i32) -> Result<&'a [u8]> {
        let count = self.strings.len();
        let found = usize::try_from(index).ok();
        let found = found.and_then(|index| self.strings.get(index).copied());
        let bytes = match found {
            None if index == 0 => &[],
            found => found.ok_or_else(|| {
                wrong(format!("string {index} does not exist (there are {count})"))
            })?,
        };
        if bytes.len() > self.most_bytes {
            return Err(Error::Limit {
                what: "bytes of a name",
                limit: self.most_bytes as u64,
            });
        }
        Ok(bytes)
    }

    fn text(&self, index: i32) -> Result<String> {
        Ok(String::from_utf8_lossy(self.bytes(index)?).into_owned())
    }
}

/// The files of locations. Names and paths are long and repeat often, so each pair is noted once.
struct Modules {
    /// The string of each mapping's path.
    paths: Vec<i32>,
    noted: HashSet<(usize, i32), RandomState>,
}

impl Modules {
    fn read(mappings: &[&[u8]]) -> Result<Modules> {
        let mut paths = Vec::new();
        for (number, bytes) in mappings.iter().enumerate() {
            let mapping: Mapping = decoded(bytes, &format!("mapping {number}"))?;
            paths.push(mapping.filename_string);
        }
        Ok(Modules {
            paths,
            noted: HashSet::default(),
        })
    }

    /// Sets the module of the frames of the location that was added last.
    fn note(
        &mut self,
        location: &Location,
        dictionary: &Dictionary<'_>,
        profile: &mut Profile,
    ) -> Result<()> {
        let index = usize::try_from(location.mapping).unwrap_or(usize::MAX);
        let path = match self.paths.get(index) {
            Some(&path) => path,
            None if index == 0 => return Ok(()),
            None => {
                return Err(wrong(format!(
                    "mapping {} does not exist",
                    location.mapping
                )))
            }
        };
        let frames = dictionary.locations.last().cloned().unwrap_or_default();
        for frame in &dictionary.frames[frames] {
            if self.noted.insert((frame.index(), path)) {
                let name = profile.frames.name_of(*frame);
                let module = dictionary.text(path)?;
                profile.modules.insert(name, frame.kind(), &module);
            }
        }
        Ok(())
    }
}

struct Reader<'a, 'd> {
    options: &'a ReadOptions,
    dictionary: &'d Dictionary<'d>,
    profile: Profile,
    layout: Layout,
    /// The nodes of stacks below a root.
    nodes: HashMap<(Node, u64), Node, RandomState>,
    /// The root of each attribute, if it names a thread.
    threads: HashMap<u64, Option<Node>, RandomState>,
    /// Those that all profiles so far have.
    labels: Option<Labels>,
    /// How many bytes of names and labels may still be copied: a small file can name long ones again and again.
    left: u64,
}

impl Reader<'_, '_> {
    /// The attributes of a resource, under our names.
    fn labels_of(&mut self, resource_profiles: &[u8]) -> Result<Labels> {
        let mut labels = Labels::new();
        for resource in parts(resource_profiles, field::RESOURCE) {
            let resource: Resource = decoded(resource?, "resource")?;
            for attribute in resource.attributes {
                let key = match attribute.key_string {
                    0 => attribute.key,
                    index => self.dictionary.text(index)?,
                };
                let ours = RESOURCE_NAMES.iter().find(|(_, theirs)| *theirs == key);
                let name = ours.map_or(key, |(label, _)| (*label).to_string());
                let value = self.value(attribute.value.unwrap_or_default())?;
                self.copy(name.len())?;
                labels.insert(name, value);
            }
        }
        Ok(labels)
    }

    /// Counts a name, or a label, and what is around it.
    fn copy(&mut self, bytes: usize) -> Result<()> {
        let left = self.left.checked_sub(bytes as u64 + 1);
        self.left =
            left.ok_or_else(|| wrong("the stacks and labels are too long, all together"))?;
        Ok(())
    }

    /// The key and the value of an attribute; a value that is a list is empty.
    fn attribute(&mut self, index: u64) -> Result<(String, String)> {
        let found = usize::try_from(index).ok();
        let found = found.and_then(|index| self.dictionary.attributes.get(index));
        let bytes = found.ok_or_else(|| wrong(format!("attribute {index} does not exist")))?;
        self.copy(bytes.len())?;
        let attribute: Attribute = decoded(bytes, &format!("attribute {index}"))?;
        let key = self.dictionary.text(attribute.key_string)?;
        self.copy(key.len())?;
        let value = attribute.value.unwrap_or_default();
        Ok((key, self.value(value)?))
    }

    fn value(&mut self, value: AnyValue) -> Result<String> {
        let text = match value {
            AnyValue {
                text: Some(text), ..
            } => text,
            AnyValue {
                string: Some(index),
                ..
            } => self.dictionary.text(index)?,
            AnyValue {
                whole: Some(whole), ..
            } => whole.to_string(),
            AnyValue {
                truth: Some(truth), ..
            } => truth.to_string(),
            AnyValue {
                number: Some(number),
                ..
            } => number.to_string(),
            _ => String::new(),
        };
        self.copy(text.len())?;
        Ok(text)
    }

    fn add_profile(&mut self, message: &[u8], resource: &Labels) -> Result<()> {
        let lengths = resource
            .iter()
            .map(|(name, value)| name.len() + value.len());
        self.copy(lengths.sum())?;
        let mut labels = resource.clone();
        let mut meaning = ValueType::default();
        for found in fields(message) {
            match found? {
                (field::SAMPLE_TYPE, Value::Bytes(bytes)) => {
                    meaning = decoded(bytes, "type of samples")?;
                }
                (field::ATTRIBUTE_INDICES, indices) => {
                    for index in numbers(&indices) {
                        let (key, value) = self.attribute(index?)?;
                        labels.insert(key, value);
                    }
                }
                _ => {}
            }
        }
        match &mut self.labels {
            Some(common) => common.retain(|name, value| labels.get(name) == Some(value)),
            None => self.labels = Some(labels),
        }
        let value = self.value_of(&meaning)?;
        for (number, sample) in parts(message, field::SAMPLES).enumerate() {
            let added = sample.and_then(|sample| self.add_sample(sample, value));
            added.map_err(|error| within(error, &format!("sample {number}")))?;
        }
        Ok(())
    }

    fn value_of(&mut self, meaning: &ValueType) -> Result<usize> {
        let name = self.dictionary.text(meaning.type_string)?;
        let meaning = profile::ValueType::new(name, self.dictionary.text(meaning.unit_string)?);
        let known = self
            .profile
            .values()
            .iter()
            .position(|value| *value == meaning);
        match known {
            Some(known) => Ok(known),
            None if self.profile.values().len() == MOST_VALUES => Err(Error::Limit {
                what: "types of samples",
                limit: MOST_VALUES as u64,
            }),
            None => self.profile.push_value(meaning, self.options.limits.cells),
        }
    }

    fn add_sample(&mut self, sample: &[u8], value: usize) -> Result<()> {
        let (values_at, attributes_at) = match self.layout {
            Layout::V1_10 => (field::VALUES, 2),
            Layout::V1_9 => (2, 3),
        };
        let (mut stack, mut root, mut amount, mut times) = (0, ROOT, None, 0);
        for found in fields(sample) {
            match found? {
                (field::STACK_INDEX, Value::Number(index)) => stack = index,
                (at, numbers_of) if at == values_at => {
                    for number in numbers(&numbers_of) {
                        let number = number? as i64;
                        if number < 0 {
                            return Err(Error::Negative(NAME, format!("value {number}")));
                        }
                        let sum = amount.unwrap_or(0i64).checked_add(number);
                        let sum = sum.ok_or_else(|| wrong("the sum does not fit in 64 bits"))?;
                        amount = Some(sum);
                    }
                }
                (at, indices) if at == attributes_at => {
                    for index in numbers(&indices) {
                        root = self.thread(index?)?.unwrap_or(root);
                    }
                }
                (TIMES, Value::Bytes(packed)) => times += packed.len() as i64 / 8,
                (TIMES, Value::Fixed) => times += 1,
                _ => {}
            }
        }
        // Without values, each time is one observation.
        let amount = amount.unwrap_or(times);
        let node = self.node(root, stack)?;
        self.profile.add(node, value, amount)
    }

    /// The root frame's node, if an attribute names a thread and threads are requested.
    fn thread(&mut self, index: u64) -> Result<Option<Node>> {
        if let Some(known) = self.threads.get(&index) {
            return Ok(*known);
        }
        let (key, name) = self.attribute(index)?;
        let frame = self.options.threads.frame_of_label(&name);
        let root = match frame.filter(|_| key == THREAD) {
            Some(name) => {
                let frame = self.profile.frames.intern(name.as_bytes())?;
                Some(self.profile.child(ROOT, frame)?)
            }
            None => None,
        };
        self.threads.insert(index, root);
        Ok(root)
    }

    /// The node of a stack below a root.
    fn node(&mut self, root: Node, stack: u64) -> Result<Node> {
        if let Some(&known) = self.nodes.get(&(root, stack)) {
            return Ok(known);
        }
        let dictionary = self.dictionary;
        let found = usize::try_from(stack).ok();
        let found = found.and_then(|index| dictionary.stacks.get(index).copied());
        let bytes = found.ok_or_else(|| {
            let other = "the file may be of another version of OTLP than 1.9 or 1.10";
            wrong(format!("stack {stack} does not exist; {other}"))
        })?;
        let mut node = root;
        let mut locations = Vec::new();
        for entry in fields(bytes) {
            if let (field::LOCATION_INDICES, indices) = entry? {
                for location in numbers(&indices) {
                    locations.push(location?);
                }
            }
        }
        for location in locations.into_iter().rev() {
            for &frame in dictionary.frames_of(location)? {
                self.copy(self.profile.frames.name_of(frame).len())?;
                node = self.profile.child(node, frame)?;
            }
        }
        self.nodes.insert((root, stack), node);
        Ok(node)
    }
}
