//! Writing OTLP profiles, the signal of OpenTelemetry: `ProfilesData` of opentelemetry-proto 1.10 (v1development).
//!
//! One profile for each value, because each has one sample type. All share a dictionary, whose tables begin with an
//! entry without content: index 0 means none. Later versions may number fields otherwise, so the version is part of
//! the format's name.

use std::collections::HashMap;
use std::io::Write;

use super::pprof::{Stack, Strings};
use crate::profile::{Kind, Order, Profile, Result, Step, ROOT};
use crate::source::wire::{put_bytes, put_message, put_varint};

/// Field numbers of messages that are written without prost.
mod field {
    pub(super) const RESOURCE_PROFILES: u64 = 1;
    pub(super) const DICTIONARY: u64 = 2;

    pub(super) const SCOPE_PROFILES: u64 = 2;
    pub(super) const SCOPE: u64 = 1;
    pub(super) const PROFILES: u64 = 2;

    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLES: u64 = 2;
    pub(super) const ATTRIBUTE_INDICES: u64 = 11;

    pub(super) const STACK_INDEX: u64 = 1;
    pub(super) const VALUES: u64 = 4;

    pub(super) const LOCATION_INDICES: u64 = 1;

    pub(super) const MAPPING_TABLE: u64 = 1;
    pub(super) const LOCATION_TABLE: u64 = 2;
    pub(super) const FUNCTION_TABLE: u64 = 3;
    pub(super) const STRING_TABLE: u64 = 5;
    pub(super) const ATTRIBUTE_TABLE: u64 = 6;
    pub(super) const STACK_TABLE: u64 = 7;
}

#[derive(Clone, PartialEq, ::prost::Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, ::prost::Message)]
struct ValueType {
    #[prost(int32, tag = "1")]
    type_string: i32,
    #[prost(int32, tag = "2")]
    unit_string: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
struct Mapping {
    #[prost(int32, tag = "4")]
    filename_string: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
struct Location {
    #[prost(int32, tag = "1")]
    mapping: i32,
    #[prost(message, repeated, tag = "3")]
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
struct Line {
    #[prost(int32, tag = "1")]
    function: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
struct Function {
    #[prost(int32, tag = "1")]
    name_string: i32,
    #[prost(int32, tag = "2")]
    system_name_string: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
struct Attribute {
    #[prost(int32, tag = "1")]
    key_string: i32,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
struct AnyValue {
    /// One of several kinds, so an empty text is written, too.
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
}

impl Profile {
    /// Writes OTLP profiles, the same bytes for the same profile. Labels are attributes of each profile.
    pub fn write_otlp(&self, mut out: impl Write) -> Result<()> {
        let mut strings = Strings::new();
        let mut dictionary = Vec::new();
        for table in field::MAPPING_TABLE..=field::STACK_TABLE {
            if table != field::STRING_TABLE {
                put_bytes(&mut dictionary, table, &[]);
            }
        }
        let locations = put_frames(self, &mut strings, &mut dictionary);
        let attributes = put_attributes(self, &mut strings, &mut dictionary);
        let samples = put_stacks(self, &locations, &mut dictionary);
        let mut scope = Vec::new();
        let name = String::from("hprofiler");
        put_message(&mut scope, field::SCOPE, &Scope { name });
        for (value, samples) in self.values().iter().zip(samples) {
            let sample_type = ValueType {
                type_string: strings.id(&value.name) as i32,
                unit_string: strings.id(&value.unit) as i32,
            };
            let mut profile = Vec::new();
            put_message(&mut profile, field::SAMPLE_TYPE, &sample_type);
            profile.extend(samples);
            if !attributes.is_empty() {
                put_bytes(&mut profile, field::ATTRIBUTE_INDICES, &attributes);
            }
            put_bytes(&mut scope, field::PROFILES, &profile);
        }
        for text in strings.texts() {
            put_bytes(&mut dictionary, field::STRING_TABLE, text.as_bytes());
        }
        let mut resource = Vec::new();
        put_bytes(&mut resource, field::SCOPE_PROFILES, &scope);
        let mut message = Vec::new();
        put_bytes(&mut message, field::RESOURCE_PROFILES, &resource);
        put_bytes(&mut message, field::DICTIONARY, &dictionary);
        out.write_all(&message)?;
        out.flush()?;
        Ok(())
    }
}

/// One function and one location, of the same index, for each frame in name order; returns the indices by frame index.
fn put_frames<'a>(
    profile: &'a Profile,
    strings: &mut Strings<'a>,
    dictionary: &mut Vec<u8>,
) -> Vec<u32> {
    let mut mappings: HashMap<&str, i32> = HashMap::new();
    let mut indices = vec![0; profile.frames.index_len()];
    for (index, frame) in (1u32..).zip(profile.frames_in_order()) {
        indices[frame.index()] = index;
        let plain = profile.frames.name_of(frame);
        let name_string = strings.id(plain) as i32;
        let system_name_string = match frame.kind() {
            Kind::Plain => name_string,
            kind => strings.push(plain, kind.suffix()) as i32,
        };
        let function = Function {
            name_string,
            system_name_string,
        };
        put_message(dictionary, field::FUNCTION_TABLE, &function);
        let mapping = match profile.modules.get(plain, frame.kind()) {
            Some(module) => {
                let next = mappings.len() as i32 + 1;
                *mappings.entry(module).or_insert_with(|| {
                    let filename_string = strings.id(module) as i32;
                    put_message(
                        dictionary,
                        field::MAPPING_TABLE,
                        &Mapping { filename_string },
                    );
                    next
                })
            }
            None => 0,
        };
        let lines = vec![Line {
            function: index as i32,
        }];
        put_message(
            dictionary,
            field::LOCATION_TABLE,
            &Location { mapping, lines },
        );
    }
    indices
}

/// The labels as attributes; returns their indices, packed.
fn put_attributes<'a>(
    profile: &'a Profile,
    strings: &mut Strings<'a>,
    dictionary: &mut Vec<u8>,
) -> Vec<u8> {
    let mut indices = Vec::new();
    for (index, (name, text)) in (1u64..).zip(profile.labels()) {
        let attribute = Attribute {
            key_string: strings.id(name) as i32,
            value: Some(AnyValue {
                text: Some(text.clone()),
            }),
        };
        put_message(dictionary, field::ATTRIBUTE_TABLE, &attribute);
        put_varint(&mut indices, index);
    }
    indices
}

/// The stacks that have samples; returns the samples of each value.
fn put_stacks(profile: &Profile, locations: &[u32], dictionary: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let columns: Vec<&[i64]> = (0..profile.values().len())
        .map(|value| profile.selves(value))
        .collect();
    let mut samples = vec![Vec::new(); columns.len()];
    let (mut stack, mut sample, mut packed, mut count) =
        (Stack::default(), Vec::new(), Vec::new(), 0);
    for step in Order::of(profile).walk() {
        let leaf = match step {
            Step::Enter(node) => node,
            Step::Leave(_) => {
                stack.pop();
                continue;
            }
        };
        let has_location = leaf != ROOT;
        stack.push(has_location.then(|| locations[profile.tree.frame(leaf).index()]));
        if columns.iter().all(|column| column[leaf as usize] == 0) {
            continue;
        }
        // The stack without frames is the first entry, as it must be there only once.
        let mut index = 0;
        if has_location {
            count += 1;
            index = count;
            packed.clear();
            put_bytes(&mut packed, field::LOCATION_INDICES, stack.leaf_first());
            put_bytes(dictionary, field::STACK_TABLE, &packed);
        }
        for (column, samples) in columns.iter().zip(&mut samples) {
            let value = column[leaf as usize];
            if value == 0 {
                continue;
            }
            sample.clear();
            put_varint(&mut sample, field::STACK_INDEX << 3);
            put_varint(&mut sample, index);
            packed.clear();
            put_varint(&mut packed, value as u64);
            put_bytes(&mut sample, field::VALUES, &packed);
            put_bytes(samples, field::SAMPLES, &sample);
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{read, ReadOptions};
    use crate::source::wire::{Fields, Numbers, Value};

    /// The messages or texts of one field.
    fn of(message: &[u8], field: u64) -> Vec<&[u8]> {
        let fields = Fields::of(message).map(std::result::Result::unwrap);
        fields
            .filter_map(|found| match found {
                (number, Value::Bytes(bytes)) if number == field => Some(bytes),
                _ => None,
            })
            .collect()
    }

    fn number(message: &[u8], field: u64) -> usize {
        let mut fields = Fields::of(message).map(std::result::Result::unwrap);
        let found = fields.find_map(|found| match found {
            (at, Value::Number(number)) if at == field => Some(number as usize),
            _ => None,
        });
        found.unwrap_or_default()
    }

    fn numbers(packed: &[u8]) -> Vec<usize> {
        Numbers::of(packed)
            .map(|found| found.unwrap() as usize)
            .collect()
    }

    #[test]
    fn stacks_values_and_labels_are_in_the_message() {
        let text = "main;a_[j];b_[k] 3\nmain;a_[j] 2\nmain;c 4\n";
        let mut profile = read(text.as_bytes(), &ReadOptions::default()).unwrap();
        profile.set_labels([(String::from("host"), String::from("n1"))].into());
        let mut written = Vec::new();
        profile.write_otlp(&mut written).unwrap();
        let dictionary = of(&written, field::DICTIONARY)[0];
        let strings = of(dictionary, field::STRING_TABLE);
        let text_at = |index: usize| String::from_utf8(strings[index].to_vec()).unwrap();
        for table in field::MAPPING_TABLE..=field::STACK_TABLE {
            assert_eq!(
                of(dictionary, table)[0],
                b"",
                "table {table} has no zero entry"
            );
        }
        let functions = of(dictionary, field::FUNCTION_TABLE);
        let locations = of(dictionary, field::LOCATION_TABLE);
        let stacks = of(dictionary, field::STACK_TABLE);
        let name_of = |location: usize| {
            let line = of(locations[location], 3)[0];
            text_at(number(functions[number(line, 1)], 2))
        };
        let scope = of(
            of(&written, field::RESOURCE_PROFILES)[0],
            field::SCOPE_PROFILES,
        )[0];
        let found = of(scope, field::PROFILES)[0];
        let mut folded = String::new();
        for sample in of(found, field::SAMPLES) {
            let stack = of(
                stacks[number(sample, field::STACK_INDEX)],
                field::LOCATION_INDICES,
            )[0];
            let names: Vec<String> = numbers(stack).into_iter().rev().map(name_of).collect();
            let values = numbers(of(sample, field::VALUES)[0]);
            folded += &format!("{} {}\n", names.join(";"), values[0]);
        }
        let mut expected = Vec::new();
        profile.write_folded(&mut expected, 0, true).unwrap();
        assert_eq!(folded.as_bytes(), expected);
        let attribute = numbers(of(found, field::ATTRIBUTE_INDICES)[0])[0];
        let label = of(dictionary, field::ATTRIBUTE_TABLE)[attribute];
        assert_eq!(text_at(number(label, 1)), "host");
        assert_eq!(of(of(label, 2)[0], 1), [b"n1"]);
    }
}
