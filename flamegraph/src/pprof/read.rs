//! Reading pprof. Every index is checked, and nothing is trusted to be small.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;

use flate2::read::MultiGzDecoder;
use prost::Message;

use crate::error::{Error, Result};
use crate::frames::{Frame, Kind};
use crate::limits::{Bounded, Limits};
use crate::profile::{Labels, Profile};
use crate::proto::{self, field};
use crate::tree::ROOT;
use crate::values::ValueType;
use crate::wire::{Fields, Value};

/// More than any real profile has of either.
const MOST_VALUES: usize = 32;
const MOST_LABELS: usize = 256;

/// Reads a pprof message, gzipped or not. Labels common to all samples become the profile's.
pub fn read(mut input: impl Read, limits: &Limits) -> Result<Profile> {
    let mut head = Vec::new();
    input.by_ref().take(2).read_to_end(&mut head)?;
    let whole = head.chain(input);
    let message = if head == [0x1f, 0x8b] {
        read_bounded(MultiGzDecoder::new(whole), limits)?
    } else {
        read_bounded(whole, limits)?
    };
    read_message(&message, limits)
}

fn read_bounded(input: impl Read, limits: &Limits) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    Bounded::new(input, "bytes of the pprof message", limits.pprof_bytes)
        .read_to_end(&mut message)?;
    Ok(message)
}

fn read_message(message: &[u8], limits: &Limits) -> Result<Profile> {
    let tables = Tables::read(message)?;
    let values = tables.values()?;
    let mut profile = Profile::bounded(values, limits.cells);
    let stacks = Stacks::resolve(&tables, &mut profile, limits)?;
    let labels = add_samples(message, &tables, &stacks, &mut profile, limits)?;
    profile.set_labels(labels);
    Ok(profile)
}

fn damaged(what: impl Into<String>) -> Error {
    Error::Pprof(what.into())
}

/// The fields of the outermost message, with the place of any damage.
fn fields(message: &[u8]) -> impl Iterator<Item = Result<(u64, Value<'_>)>> {
    Fields::of(message).map(|field| {
        field.map_err(|left| {
            damaged(format!(
                "damaged or truncated at byte {}",
                message.len() - left
            ))
        })
    })
}

fn decode<M: Message + Default>(bytes: &[u8], what: &str, number: usize) -> Result<M> {
    M::decode(bytes).map_err(|error| damaged(format!("{what} {number}: {error}")))
}

/// All that samples refer to, as it stands in the message.
#[derive(Default)]
struct Tables<'a> {
    values: Vec<proto::ValueType>,
    strings: Vec<&'a [u8]>,
    locations: Vec<proto::Location>,
    functions: Vec<proto::Function>,
}

impl<'a> Tables<'a> {
    fn read(message: &'a [u8]) -> Result<Tables<'a>> {
        let mut tables = Tables::default();
        for found in fields(message) {
            let (number, value) = found?;
            let Value::Bytes(bytes) = value else { continue };
            match number {
                field::SAMPLE_TYPE => {
                    tables
                        .values
                        .push(decode(bytes, "sample type", tables.values.len())?)
                }
                field::LOCATION => {
                    tables
                        .locations
                        .push(decode(bytes, "location", tables.locations.len())?)
                }
                field::FUNCTION => {
                    tables
                        .functions
                        .push(decode(bytes, "function", tables.functions.len())?)
                }
                field::STRING => tables.strings.push(bytes),
                _ => {}
            }
        }
        Ok(tables)
    }

    fn values(&self) -> Result<Vec<ValueType>> {
        if self.values.is_empty() || self.values.len() > MOST_VALUES {
            return Err(damaged(format!(
                "{} sample types (1 to {MOST_VALUES} are read)",
                self.values.len()
            )));
        }
        self.values
            .iter()
            .map(|value| {
                Ok(ValueType::new(
                    self.text(value.r#type)?,
                    self.text(value.unit)?,
                ))
            })
            .collect()
    }

    fn string(&self, index: i64) -> Result<&'a [u8]> {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.strings.get(index).copied())
            .ok_or_else(|| {
                damaged(format!(
                    "string {index} does not exist (there are {})",
                    self.strings.len()
                ))
            })
    }

    fn text(&self, index: i64) -> Result<String> {
        Ok(String::from_utf8_lossy(self.string(index)?).into_owned())
    }
}

/// The frames of every location, root first.
struct Stacks {
    spans: HashMap<u64, Range<usize>>,
    frames: Vec<Frame>,
}

impl Stacks {
    fn resolve(tables: &Tables<'_>, profile: &mut Profile, limits: &Limits) -> Result<Stacks> {
        let functions = intern_functions(tables, profile, limits)?;
        let mut stacks = Stacks {
            spans: HashMap::new(),
            frames: Vec::new(),
        };
        for location in &tables.locations {
            let start = stacks.frames.len();
            for line in location.line.iter().rev() {
                let frame = functions.get(&line.function_id).ok_or_else(|| {
                    damaged(format!(
                        "location {}: function {} does not exist",
                        location.id, line.function_id
                    ))
                })?;
                stacks.frames.push(*frame);
            }
            if location.line.is_empty() {
                stacks.frames.push(
                    profile
                        .frames
                        .intern(format!("[{:#x}]", location.address).as_bytes())?,
                );
            }
            if stacks
                .spans
                .insert(location.id, start..stacks.frames.len())
                .is_some()
            {
                return Err(damaged(format!("location {} stands twice", location.id)));
            }
        }
        Ok(stacks)
    }

    fn of(&self, location: u64) -> Option<&[Frame]> {
        self.spans
            .get(&location)
            .map(|span| &self.frames[span.clone()])
    }
}

fn intern_functions(
    tables: &Tables<'_>,
    profile: &mut Profile,
    limits: &Limits,
) -> Result<HashMap<u64, Frame>> {
    let mut functions = HashMap::new();
    for function in &tables.functions {
        let (name, system_name) = (
            tables.string(function.name)?,
            tables.string(function.system_name)?,
        );
        if name.len().max(system_name.len()) > limits.name_bytes {
            return Err(Error::Limit {
                what: "bytes of a frame name",
                limit: limits.name_bytes as u64,
            });
        }
        let frame = intern_function(name, system_name, profile)?;
        if functions.insert(function.id, frame).is_some() {
            return Err(damaged(format!("function {} stands twice", function.id)));
        }
    }
    Ok(functions)
}

/// The system name is believed about the kind only if it is the name with an annotation.
fn intern_function(name: &[u8], system_name: &[u8], profile: &mut Profile) -> Result<Frame> {
    match Kind::split(system_name) {
        (plain, kind) if plain == name && kind != Kind::Plain => {
            Ok(Frame::new(profile.frames.intern_name(name)?, kind))
        }
        _ if name.is_empty() => profile.frames.intern(system_name),
        _ => profile.frames.intern(name),
    }
}

/// Adds all samples; returns the labels all of them have.
fn add_samples(
    message: &[u8],
    tables: &Tables<'_>,
    stacks: &Stacks,
    profile: &mut Profile,
    limits: &Limits,
) -> Result<Labels> {
    let mut common: Option<Vec<(String, String)>> = None;
    let (mut number, mut walked) = (0, 0);
    for found in fields(message) {
        let (field::SAMPLE, Value::Bytes(bytes)) = found? else {
            continue;
        };
        let sample: proto::Sample = decode(bytes, "sample", number)?;
        walked += add_sample(&sample, stacks, profile, limits.walked_frames - walked)
            .map_err(|error| at_sample(error, number))?;
        let labels = sample_labels(&sample, tables).map_err(|error| at_sample(error, number))?;
        match &mut common {
            Some(common) => common.retain(|label| labels.contains(label)),
            None => common = Some(labels),
        }
        number += 1;
    }
    Ok(common.unwrap_or_default().into_iter().collect())
}

fn at_sample(error: Error, number: usize) -> Error {
    match error {
        Error::Pprof(reason) => damaged(format!("sample {number}: {reason}")),
        other => damaged(format!("sample {number}: {other}")),
    }
}

/// Adds one sample; returns how many frames were walked.
fn add_sample(
    sample: &proto::Sample,
    stacks: &Stacks,
    profile: &mut Profile,
    most: u64,
) -> Result<u64> {
    let expected = profile.values().len();
    if sample.value.len() != expected {
        return Err(damaged(format!(
            "{} values where there are {expected} sample types",
            sample.value.len()
        )));
    }
    if let Some(negative) = sample.value.iter().find(|&&value| value < 0) {
        return Err(damaged(format!("value {negative} is negative")));
    }
    if sample.value.iter().all(|&value| value == 0) {
        return Ok(0);
    }
    let (mut node, mut walked) = (ROOT, 0);
    for &location in sample.location_id.iter().rev() {
        let frames = stacks
            .of(location)
            .ok_or_else(|| damaged(format!("location {location} does not exist")))?;
        walked += frames.len() as u64;
        if walked > most {
            return Err(Error::Limit {
                what: "frames over all samples",
                limit: most,
            });
        }
        for &frame in frames {
            node = profile.child(node, frame)?;
        }
    }
    for (value, &amount) in sample.value.iter().enumerate() {
        profile.add(node, value, amount)?;
    }
    Ok(walked)
}

fn sample_labels(sample: &proto::Sample, tables: &Tables<'_>) -> Result<Vec<(String, String)>> {
    if sample.label.len() > MOST_LABELS {
        return Err(Error::Limit {
            what: "labels of a sample",
            limit: MOST_LABELS as u64,
        });
    }
    let text = |label: &proto::Label| match label.str {
        0 => Ok(label.num.to_string()),
        text => tables.text(text),
    };
    sample
        .label
        .iter()
        .map(|label| Ok((tables.text(label.key)?, text(label)?)))
        .collect()
}
