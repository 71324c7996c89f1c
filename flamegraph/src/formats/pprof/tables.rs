//! The tables that samples refer to: strings, functions, locations. Every reference is checked on use.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use prost::Message;

use super::mappings::Mappings;
use super::prune::Dropped;
use crate::formats::pprof::proto::{self, field};
use crate::profile::{Error, Frame, Kind, Limits, Profile, Result, ValueType};
use crate::source::wire::{Fields, Value};

/// More sample types than any real profile has.
const MOST_VALUES: usize = 32;
/// Most strings, functions or frames of locations: a few bytes on the wire take many in memory.
const MOST_ENTRIES: usize = 1 << 22;
/// Bytes of one inner message, for the same reason.
const MOST_INNER_BYTES: usize = 16 << 20;

pub(super) fn damaged(what: impl Into<String>) -> Error {
    Error::Damaged("pprof", what.into())
}

/// The inner messages of a profile except the samples, by field, found in one pass.
pub(super) struct Parts<'a> {
    values: Vec<&'a [u8]>,
    pub(super) mappings: Vec<&'a [u8]>,
    locations: Vec<&'a [u8]>,
    functions: Vec<&'a [u8]>,
    pub(super) strings: Strings<'a>,
    /// The strings of the patterns `drop_frames` and `keep_frames`; 0 if there is none.
    dropped: (i64, i64),
}

impl<'a> Parts<'a> {
    pub(super) fn of(message: &'a [u8], limits: &Limits) -> Result<Parts<'a>> {
        let mut parts = Parts {
            values: Vec::new(),
            mappings: Vec::new(),
            locations: Vec::new(),
            functions: Vec::new(),
            strings: Strings {
                strings: Vec::new(),
                most_bytes: limits.name_bytes,
            },
            dropped: (0, 0),
        };
        for found in fields(message) {
            let (number, bytes) = match found? {
                (field::DROP_FRAMES, Value::Number(index)) => {
                    parts.dropped.0 = index as i64;
                    continue;
                }
                (field::KEEP_FRAMES, Value::Number(index)) => {
                    parts.dropped.1 = index as i64;
                    continue;
                }
                (number, Value::Bytes(bytes)) => (number, bytes),
                _ => continue,
            };
            let (what, part) = match number {
                field::SAMPLE_TYPE => ("sample types", &mut parts.values),
                field::MAPPING => ("mappings of the pprof message", &mut parts.mappings),
                field::LOCATION => ("locations of the pprof message", &mut parts.locations),
                field::FUNCTION => ("functions of the pprof message", &mut parts.functions),
                field::STRING => ("strings of the pprof message", &mut parts.strings.strings),
                _ => continue,
            };
            check_entries(what, part.len())?;
            part.push(bytes);
        }
        Ok(parts)
    }

    pub(super) fn value_types(&self) -> Result<Vec<ValueType>> {
        let mut values = Vec::new();
        for (number, bytes) in self.values.iter().enumerate() {
            if number == MOST_VALUES {
                return Err(Error::Limit {
                    what: "sample types",
                    limit: MOST_VALUES as u64,
                });
            }
            let value: proto::ValueType = decode(bytes, "sample type", number)?;
            let text = |index| self.strings.text(index);
            values.push(ValueType::new(text(value.r#type)?, text(value.unit)?));
        }
        if values.is_empty() {
            return Err(damaged("no sample type; is this a profile?"));
        }
        Ok(values)
    }
}

/// The fields of a message, with their numbers.
fn fields(message: &[u8]) -> impl Iterator<Item = Result<(u64, Value<'_>)>> {
    let whole = message.len();
    Fields::of(message).map(move |found| {
        found.map_err(|left| damaged(format!("damaged or truncated at byte {}", whole - left)))
    })
}

/// The samples, with their numbers.
pub(super) fn samples(message: &[u8]) -> impl Iterator<Item = Result<(usize, &[u8])>> {
    let samples = fields(message).filter_map(|found| match found {
        Ok((field::SAMPLE, Value::Bytes(bytes))) => Some(Ok(bytes)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    samples
        .enumerate()
        .map(|(number, found)| Ok((number, found?)))
}

pub(super) fn check_inner_bytes(bytes: &[u8], what: &str, number: usize) -> Result<()> {
    if bytes.len() <= MOST_INNER_BYTES {
        return Ok(());
    }
    let size = bytes.len();
    Err(damaged(format!(
        "{what} {number}: {size} bytes (at most {MOST_INNER_BYTES} are read)"
    )))
}

pub(super) fn decode<M: Message + Default>(bytes: &[u8], what: &str, number: usize) -> Result<M> {
    check_inner_bytes(bytes, what, number)?;
    M::decode(bytes).map_err(|error| damaged(format!("{what} {number}: {error}")))
}

fn check_entries(what: &'static str, count: usize) -> Result<()> {
    if count < MOST_ENTRIES {
        return Ok(());
    }
    Err(Error::Limit {
        what,
        limit: MOST_ENTRIES as u64,
    })
}

/// The string table.
pub(super) struct Strings<'a> {
    strings: Vec<&'a [u8]>,
    most_bytes: usize,
}

impl<'a> Strings<'a> {
    pub(super) fn bytes(&self, index: i64) -> Result<&'a [u8]> {
        let count = self.strings.len();
        let found = usize::try_from(index)
            .ok()
            .and_then(|index| self.strings.get(index));
        let bytes = found
            .ok_or_else(|| damaged(format!("string {index} does not exist (there are {count})")))?;
        if bytes.len() > self.most_bytes {
            return Err(Error::Limit {
                what: "bytes of a name",
                limit: self.most_bytes as u64,
            });
        }
        Ok(bytes)
    }

    pub(super) fn text(&self, index: i64) -> Result<String> {
        Ok(String::from_utf8_lossy(self.bytes(index)?).into_owned())
    }
}

/// A map by id. Most writers count ids up from 1, which needs no look-up. Other ids come from hosts, so each table has
/// a hasher with its own seed.
pub(super) struct ById<T> {
    counted: Vec<T>,
    others: HashMap<u64, T, RandomState>,
}

impl<T> ById<T> {
    pub(super) fn new() -> ById<T> {
        ById {
            counted: Vec::new(),
            others: HashMap::default(),
        }
    }

    /// False if the id is used already.
    pub(super) fn insert(&mut self, id: u64, what: T) -> bool {
        if self.get(id).is_some() {
            return false;
        }
        if id == self.counted.len() as u64 + 1 {
            self.counted.push(what);
        } else {
            self.others.insert(id, what);
        }
        true
    }

    pub(super) fn get(&self, id: u64) -> Option<&T> {
        let place = usize::try_from(id.wrapping_sub(1)).unwrap_or(usize::MAX);
        self.counted.get(place).or_else(|| self.others.get(&id))
    }
}

/// The frames of every location, root first.
pub(super) struct Locations {
    spans: ById<Span>,
    frames: Vec<Frame>,
}

pub(super) struct Span {
    frames: Range<usize>,
    /// The length of its frames as folded text.
    pub(super) bytes: u64,
    pub(super) dropped: Part,
}

/// What of a location is left out with everything that it calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Nothing,
    /// Inlined functions, whose callers stay.
    Inlined,
    All,
}

impl Locations {
    pub(super) fn read(parts: &Parts<'_>, profile: &mut Profile) -> Result<Locations> {
        let dropped = Dropped::read(parts.dropped, &parts.strings, profile);
        let functions = read_functions(parts, dropped.as_ref(), profile)?;
        let mut mappings = Mappings::read(parts);
        let mut locations = Locations {
            spans: ById::new(),
            frames: Vec::new(),
        };
        for (number, bytes) in parts.locations.iter().enumerate() {
            let location: proto::Location = decode(bytes, "location", number)?;
            locations.add(&location, &functions, profile)?;
            let frames = locations.frames_of(location.id);
            mappings.note(location.mapping_id, frames, profile);
        }
        Ok(locations)
    }

    fn add(
        &mut self,
        location: &proto::Location,
        functions: &ById<Function>,
        profile: &mut Profile,
    ) -> Result<()> {
        let (id, start) = (location.id, self.frames.len());
        let mut dropped = Part::Nothing;
        check_entries("frames of the locations", start + location.line.len())?;
        for line in location.line.iter().rev() {
            let function = line.function_id;
            let missing = || damaged(format!("location {id}: function {function} does not exist"));
            let function = functions.get(function).ok_or_else(missing)?;
            if function.dropped && dropped == Part::Nothing {
                let is_first = self.frames.len() == start;
                dropped = if is_first { Part::All } else { Part::Inlined };
            }
            if dropped != Part::Inlined {
                self.frames.push(function.frame);
            }
        }
        if location.line.is_empty() {
            let address = format!("[{:#x}]", location.address);
            self.frames.push(profile.frames.intern(address.as_bytes())?);
        }
        let frames = start..self.frames.len();
        let lengths = self.frames[start..]
            .iter()
            .map(|&frame| profile.frames.name_of(frame).len() as u64 + 1);
        let span = Span {
            bytes: lengths.sum(),
            frames,
            dropped,
        };
        if !self.spans.insert(id, span) {
            return Err(damaged(format!("location {id} stands twice")));
        }
        Ok(())
    }

    fn frames_of(&self, location: u64) -> &[Frame] {
        let span = self.spans.get(location);
        span.map_or(&[], |span| &self.frames[span.frames.clone()])
    }

    /// The frames of a location, and what else is known of them.
    pub(super) fn get(&self, location: u64) -> Result<(&[Frame], &Span)> {
        let missing = || damaged(format!("location {location} does not exist"));
        let span = self.spans.get(location).ok_or_else(missing)?;
        Ok((&self.frames[span.frames.clone()], span))
    }
}

struct Function {
    frame: Frame,
    dropped: bool,
}

fn read_functions(
    parts: &Parts<'_>,
    dropped: Option<&Dropped>,
    profile: &mut Profile,
) -> Result<ById<Function>> {
    let mut functions = ById::new();
    for (number, bytes) in parts.functions.iter().enumerate() {
        let function: proto::Function = decode(bytes, "function", number)?;
        let (name, system_name) = (
            parts.strings.bytes(function.name)?,
            parts.strings.bytes(function.system_name)?,
        );
        let dropped = !name.is_empty() && dropped.is_some_and(|dropped| dropped.has(name));
        let frame = intern_function(name, system_name, profile)?;
        if !functions.insert(function.id, Function { frame, dropped }) {
            return Err(damaged(format!("function {} stands twice", function.id)));
        }
    }
    Ok(functions)
}

/// The system name sets the kind only if it is the name with an annotation.
pub(crate) fn intern_function(
    name: &[u8],
    system_name: &[u8],
    profile: &mut Profile,
) -> Result<Frame> {
    let (plain, kind) = Kind::split(system_name);
    if plain == name && kind != Kind::Plain {
        return Ok(Frame::new(profile.frames.intern_name(name)?, kind));
    }
    profile
        .frames
        .intern(if name.is_empty() { system_name } else { name })
}
