//! What samples refer to: strings, functions, locations. Every reference is checked when it is followed.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use prost::Message;

use crate::error::{Error, Result};
use crate::frames::{Frame, Kind};
use crate::limits::Limits;
use crate::profile::Profile;
use crate::proto::{self, field};
use crate::values::ValueType;
use crate::wire::{Fields, Value};

/// More sample types than any real profile has.
const MOST_VALUES: usize = 32;
/// Strings, functions or frames of locations: a few bytes on the wire take many in memory.
const MOST_ENTRIES: usize = 1 << 22;
/// Bytes of one inner message, for the same reason.
const MOST_INNER_BYTES: usize = 16 << 20;

pub(super) fn damaged(what: impl Into<String>) -> Error {
    Error::Pprof(what.into())
}

/// The inner messages of one field, with their numbers.
pub(super) fn inner(message: &[u8], wanted: u64) -> impl Iterator<Item = Result<(usize, &[u8])>> {
    let whole = message.len();
    let chosen = Fields::of(message).filter_map(move |found| match found {
        Ok((number, Value::Bytes(bytes))) if number == wanted => Some(Ok(bytes)),
        Ok(_) => None,
        Err(left) => {
            let place = whole - left;
            Some(Err(damaged(format!(
                "damaged or truncated at byte {place}"
            ))))
        }
    });
    chosen
        .enumerate()
        .map(|(number, bytes)| Ok((number, bytes?)))
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
    pub(super) fn read(message: &'a [u8], limits: &Limits) -> Result<Strings<'a>> {
        let mut strings = Vec::new();
        for found in inner(message, field::STRING) {
            check_entries("strings of the pprof message", strings.len())?;
            strings.push(found?.1);
        }
        Ok(Strings {
            strings,
            most_bytes: limits.name_bytes,
        })
    }

    fn bytes(&self, index: i64) -> Result<&'a [u8]> {
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

    pub(super) fn values(&self, message: &[u8]) -> Result<Vec<ValueType>> {
        let mut values = Vec::new();
        for found in inner(message, field::SAMPLE_TYPE) {
            let (number, bytes) = found?;
            if number == MOST_VALUES {
                return Err(Error::Limit {
                    what: "sample types",
                    limit: MOST_VALUES as u64,
                });
            }
            let value: proto::ValueType = decode(bytes, "sample type", number)?;
            values.push(ValueType::new(
                self.text(value.r#type)?,
                self.text(value.unit)?,
            ));
        }
        if values.is_empty() {
            return Err(damaged("no sample type; is this a profile?"));
        }
        Ok(values)
    }
}

/// What an id stands for. Ids come from hosts; the hasher is seeded anew for each table.
type ById<T> = HashMap<u64, T, RandomState>;

/// The frames of every location, root first.
pub(super) struct Locations {
    spans: ById<Span>,
    frames: Vec<Frame>,
}

struct Span {
    frames: Range<usize>,
    /// How long its frames are in folded text.
    bytes: u64,
}

impl Locations {
    pub(super) fn read(
        message: &[u8],
        strings: &Strings<'_>,
        profile: &mut Profile,
    ) -> Result<Locations> {
        let functions = read_functions(message, strings, profile)?;
        let mut locations = Locations {
            spans: ById::default(),
            frames: Vec::new(),
        };
        for found in inner(message, field::LOCATION) {
            let (number, bytes) = found?;
            let location: proto::Location = decode(bytes, "location", number)?;
            locations.add(&location, &functions, profile)?;
        }
        Ok(locations)
    }

    fn add(
        &mut self,
        location: &proto::Location,
        functions: &ById<Frame>,
        profile: &mut Profile,
    ) -> Result<()> {
        let (id, start) = (location.id, self.frames.len());
        check_entries("frames of the locations", start + location.line.len())?;
        for line in location.line.iter().rev() {
            let function = line.function_id;
            let missing = || damaged(format!("location {id}: function {function} does not exist"));
            self.frames
                .push(*functions.get(&function).ok_or_else(missing)?);
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
        };
        if self.spans.insert(id, span).is_some() {
            return Err(damaged(format!("location {id} stands twice")));
        }
        Ok(())
    }

    /// The frames of a location and how long they are in folded text.
    pub(super) fn get(&self, location: u64) -> Result<(&[Frame], u64)> {
        let missing = || damaged(format!("location {location} does not exist"));
        let span = self.spans.get(&location).ok_or_else(missing)?;
        Ok((&self.frames[span.frames.clone()], span.bytes))
    }
}

fn read_functions(
    message: &[u8],
    strings: &Strings<'_>,
    profile: &mut Profile,
) -> Result<ById<Frame>> {
    let mut functions = ById::default();
    for found in inner(message, field::FUNCTION) {
        let (number, bytes) = found?;
        check_entries("functions of the pprof message", number)?;
        let function: proto::Function = decode(bytes, "function", number)?;
        let (name, system_name) = (
            strings.bytes(function.name)?,
            strings.bytes(function.system_name)?,
        );
        if functions
            .insert(function.id, intern(name, system_name, profile)?)
            .is_some()
        {
            return Err(damaged(format!("function {} stands twice", function.id)));
        }
    }
    Ok(functions)
}

/// The system name is believed about the kind only if it is the name with an annotation.
fn intern(name: &[u8], system_name: &[u8], profile: &mut Profile) -> Result<Frame> {
    let (plain, kind) = Kind::split(system_name);
    if plain == name && kind != Kind::Plain {
        return Ok(Frame::new(profile.frames.intern_name(name)?, kind));
    }
    profile
        .frames
        .intern(if name.is_empty() { system_name } else { name })
}
