//! Reading pprof. Samples are decoded one at a time, and all sizes are bounded.

use super::samples::{Sample, Samples};
use super::tables::{damaged, decode, samples, Locations, Parts, Strings};
use super::threads::ThreadLabels;
use crate::formats::pprof::proto::{self, field};
use crate::formats::ReadOptions;
use crate::profile::{Error, Labels, Limits, Profile, Result};
use crate::source::wire::{Fields, Value};
use crate::source::Input;

/// A protobuf message always has control characters. Text seldom has any, and does not begin like a profile.
pub(crate) fn detect(head: &[u8]) -> bool {
    let control = |byte: &u8| *byte < 0x20 && !matches!(byte, b'\n' | b'\r' | b'\t');
    let begin = &head[..head.len().min(4096)];
    begin.iter().any(control) && (begins_with_a_value(head) || has_known_fields(head))
}

/// Whether the first field is a value's type and unit, as with most writers.
fn begins_with_a_value(head: &[u8]) -> bool {
    const VALUE_TYPE: u8 = (field::SAMPLE_TYPE as u8) << 3 | 2;
    const MOST_BYTES: u8 = 2 * 11;
    const TYPE: u8 = 1 << 3;
    const UNIT: u8 = 2 << 3;
    match head {
        [VALUE_TYPE, 0..=MOST_BYTES] => true,
        [VALUE_TYPE, 1..=MOST_BYTES, first, ..] => matches!(first, &TYPE | &UNIT),
        _ => false,
    }
}

/// Whether it begins with fields of a profile; the last one may be truncated.
fn has_known_fields(head: &[u8]) -> bool {
    let mut whole = 0;
    for found in Fields::of(head) {
        match found {
            Ok((1..=6 | 11 | 13, Value::Bytes(_))) => whole += 1,
            Ok((7..=10 | 12..=15, Value::Number(_))) => whole += 1,
            Ok(_) => return false,
            // Truncated, not damaged: profiles have no fields of other wire types.
            Err(left) => return whole > 1 && matches!(head[head.len() - left] & 7, 0 | 2),
        }
    }
    whole > 0
}

/// Reads a pprof message. Labels common to all samples become the profile's.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let limits = &options.limits;
    let message = input.into_bytes("bytes of the pprof message", limits.pprof_bytes)?;
    let parts = Parts::of(&message, limits)?;
    let mut profile = Profile::bounded(parts.value_types()?, limits.cells);
    let locations = Locations::read(&parts, &mut profile)?;
    let threads = ThreadLabels::of(&parts.strings, options.threads);
    let common = add_samples(&message, &locations, threads, &mut profile, limits)?;
    profile.set_labels(label_texts(&common, &parts.strings)?);
    profile.into_ordered()
}

/// Adds all samples; returns their common labels.
fn add_samples(
    message: &[u8],
    locations: &Locations,
    mut threads: ThreadLabels<'_, '_>,
    profile: &mut Profile,
    limits: &Limits,
) -> Result<Vec<proto::Label>> {
    let mut adder = Samples::new(locations, profile, limits);
    let mut sample = Sample::default();
    let mut common = Common::default();
    for found in samples(message) {
        let (number, bytes) = found?;
        if sample.read(bytes, number)? {
            threads
                .take_from(&mut sample.labels, number)
                .and_then(|thread| thread.map_or(Ok(()), |root| adder.set_root(root)))
                .map_err(|error| at_sample(error, number))?;
            common.add(&sample.labels, number)?;
        }
        adder
            .add(&sample)
            .map_err(|error| at_sample(error, number))?;
    }
    Ok(common.labels.unwrap_or_default())
}

fn at_sample(error: Error, number: usize) -> Error {
    match error {
        Error::Damaged(_, reason) => damaged(format!("sample {number}: {reason}")),
        Error::Negative(format, value) => {
            Error::Negative(format, format!("sample {number}: {value}"))
        }
        other => damaged(format!("sample {number}: {other}")),
    }
}

/// The labels that all samples so far have.
#[derive(Default)]
struct Common<'a> {
    labels: Option<Vec<proto::Label>>,
    /// The previous sample's labels, which the next one mostly has too.
    before: Vec<&'a [u8]>,
}

impl<'a> Common<'a> {
    fn add(&mut self, labels: &[&'a [u8]], number: usize) -> Result<()> {
        if self.labels.is_some() && self.before == labels {
            return Ok(());
        }
        let theirs: Vec<proto::Label> = labels
            .iter()
            .map(|label| decode(label, "label of sample", number))
            .collect::<Result<_>>()?;
        match &mut self.labels {
            Some(common) => common.retain(|label| theirs.contains(label)),
            None => self.labels = Some(theirs),
        }
        self.before.clear();
        self.before.extend_from_slice(labels);
        Ok(())
    }
}

fn label_texts(labels: &[proto::Label], strings: &Strings<'_>) -> Result<Labels> {
    let text = |label: &proto::Label| match label.str {
        0 => Ok(label.num.to_string()),
        text => strings.text(text),
    };
    labels
        .iter()
        .map(|label| Ok((strings.text(label.key)?, text(label)?)))
        .collect()
}
