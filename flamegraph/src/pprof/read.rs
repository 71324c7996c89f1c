//! Reading pprof. Samples are decoded one at a time, and nothing is trusted to be small.

use super::tables::{damaged, decode, inner, Locations, Strings};
use crate::error::{Error, Result};
use crate::input::Input;
use crate::limits::Limits;
use crate::options::ReadOptions;
use crate::profile::{Labels, Profile};
use crate::proto::{self, field};
use crate::tree::ROOT;

/// More labels than any real sample has.
const MOST_LABELS: usize = 256;

/// Text has no control characters but line ends and tabs; a protobuf message cannot do without.
pub(crate) fn detect(head: &[u8]) -> bool {
    let control = |byte: &u8| *byte < 0x20 && !matches!(byte, b'\n' | b'\r' | b'\t');
    head.iter().take(4096).any(control)
}

/// Reads a pprof message. Labels common to all samples become the profile's.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let limits = &options.limits;
    let message = input.into_bytes("bytes of the pprof message", limits.pprof_bytes)?;
    let strings = Strings::read(&message, limits)?;
    let mut profile = Profile::bounded(strings.values(&message)?, limits.cells);
    let locations = Locations::read(&message, &strings, &mut profile)?;
    let common = add_samples(&message, &locations, &mut profile, limits)?;
    profile.set_labels(label_texts(&common, &strings)?);
    Ok(profile)
}

/// Adds all samples; returns the labels all of them have.
fn add_samples(
    message: &[u8],
    locations: &Locations,
    profile: &mut Profile,
    limits: &Limits,
) -> Result<Vec<proto::Label>> {
    let mut common: Option<Vec<proto::Label>> = None;
    let mut left = limits.text_bytes;
    for found in inner(message, field::SAMPLE) {
        let (number, bytes) = found?;
        let sample: proto::Sample = decode(bytes, "sample", number)?;
        left = add_sample(&sample, locations, profile, left)
            .map_err(|error| at_sample(error, number))?;
        if sample.label.len() > MOST_LABELS {
            return Err(damaged(format!(
                "sample {number}: more than {MOST_LABELS} labels"
            )));
        }
        match &mut common {
            Some(common) => common.retain(|label| sample.label.contains(label)),
            None => common = Some(sample.label),
        }
    }
    Ok(common.unwrap_or_default())
}

fn at_sample(error: Error, number: usize) -> Error {
    match error {
        Error::Pprof(reason) => damaged(format!("sample {number}: {reason}")),
        other => damaged(format!("sample {number}: {other}")),
    }
}

/// Adds one sample; `left` is how many bytes of folded text may still come, and what is returned is left then.
fn add_sample(
    sample: &proto::Sample,
    locations: &Locations,
    profile: &mut Profile,
    mut left: u64,
) -> Result<u64> {
    let (count, expected) = (sample.value.len(), profile.values().len());
    if count != expected {
        return Err(damaged(format!(
            "{count} values where there are {expected} sample types"
        )));
    }
    if let Some(negative) = sample.value.iter().find(|&&value| value < 0) {
        return Err(damaged(format!("value {negative} is negative")));
    }
    if sample.value.iter().all(|&value| value == 0) {
        return Ok(left);
    }
    let mut node = ROOT;
    for &location in sample.location_id.iter().rev() {
        let (frames, bytes) = locations.get(location)?;
        left = left
            .checked_sub(bytes)
            .ok_or_else(|| damaged("the stacks are too long, all together"))?;
        for &frame in frames {
            node = profile.child(node, frame)?;
        }
    }
    for (value, &amount) in sample.value.iter().enumerate() {
        profile.add(node, value, amount)?;
    }
    Ok(left)
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
