//! Writing OTLP profiles.

use std::collections::HashMap;
use std::io::Write;

use super::messages::{
    field, AnyValue, Attribute, Function, KeyValue, Line, Location, Mapping, Resource, Scope,
    ValueType,
};
use super::RESOURCE_NAMES;
use crate::formats::pprof::{Stack, Strings};
use crate::profile::{Kind, Order, Profile, Result, Step, Times, ROOT};
use crate::source::wire::{put_bytes, put_message, put_varint};

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
        for (value, (meaning, samples)) in self.values().iter().zip(samples).enumerate() {
            let sample_type = ValueType {
                type_string: strings.id(&meaning.name) as i32,
                unit_string: strings.id(&meaning.unit) as i32,
            };
            let mut profile = Vec::new();
            put_message(&mut profile, field::SAMPLE_TYPE, &sample_type);
            profile.extend(samples);
            put_times(&mut profile, self.times());
            if let Some(period) = self.period(value) {
                put_message(&mut profile, field::PERIOD_TYPE, &sample_type);
                put_varint(&mut profile, field::PERIOD << 3);
                put_varint(&mut profile, period);
            }
            if !attributes.is_empty() {
                put_bytes(&mut profile, field::ATTRIBUTE_INDICES, &attributes);
            }
            put_bytes(&mut scope, field::PROFILES, &profile);
        }
        for text in strings.texts() {
            put_bytes(&mut dictionary, field::STRING_TABLE, text.as_bytes());
        }
        let mut resource = Vec::new();
        put_message(&mut resource, field::RESOURCE, &self.resource());
        put_bytes(&mut resource, field::SCOPE_PROFILES, &scope);
        let mut message = Vec::new();
        put_bytes(&mut message, field::RESOURCE_PROFILES, &resource);
        put_bytes(&mut message, field::DICTIONARY, &dictionary);
        out.write_all(&message)?;
        out.flush()?;
        Ok(())
    }

    /// What made the profile, by the names of OpenTelemetry's conventions.
    fn resource(&self) -> Resource {
        let labels = RESOURCE_NAMES.iter().filter_map(|(label, key)| {
            let text = self.labels().get(*label)?;
            let whole = (*label == "pid").then(|| text.parse().ok()).flatten();
            let value = AnyValue {
                text: whole.is_none().then(|| text.clone()),
                whole,
                ..AnyValue::default()
            };
            Some(KeyValue {
                key: (*key).to_string(),
                value: Some(value),
                key_string: 0,
            })
        });
        Resource {
            attributes: labels.collect(),
        }
    }

    /// How much of a value each sample stands for, if it is the same for all: the first value counts samples.
    fn period(&self, value: usize) -> Option<u64> {
        let is_count = self.values().first()?.unit == "count";
        if value == 0 || !is_count {
            return None;
        }
        let mut pairs = self.selves(0).iter().zip(self.selves(value));
        let (&count, &amount) = pairs.clone().find(|(&count, _)| count > 0)?;
        let period = amount.checked_div(count).filter(|&period| period > 0)?;
        let fits = pairs.all(|(&count, &amount)| count.checked_mul(period) == Some(amount));
        fits.then_some(period as u64)
    }
}

/// When the profile began, and how long it lasted, if that is known.
fn put_times(profile: &mut Vec<u8>, times: Option<&Times>) {
    let Some(times) = times else { return };
    let buckets = times.rows().iter().map(|row| u64::from(row.bucket) + 1);
    let duration = buckets.max().unwrap_or(0).saturating_mul(times.width);
    let start = u64::try_from(times.start).unwrap_or(0).saturating_mul(1000);
    put_varint(profile, field::TIME_UNIX_NANO << 3 | 1);
    profile.extend_from_slice(&start.to_le_bytes());
    put_varint(profile, field::DURATION_NANO << 3);
    put_varint(profile, duration.saturating_mul(1000));
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
            &Location {
                mapping,
                address: 0,
                lines,
            },
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
                ..AnyValue::default()
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
