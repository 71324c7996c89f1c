//! The samples of a pprof message, decoded one by one into memory that is used again.

use super::tables::{check_inner_bytes, damaged, Locations};
use crate::error::Result;
use crate::limits::Limits;
use crate::profile::Profile;
use crate::proto::sample_field;
use crate::tree::{Node, ROOT};
use crate::wire::{Fields, Numbers, Value};

/// One sample as it stands in the message.
#[derive(Default)]
pub(super) struct Sample<'a> {
    /// The leaf comes first.
    locations: Vec<u64>,
    values: Vec<i64>,
    pub(super) labels: Vec<&'a [u8]>,
}

impl<'a> Sample<'a> {
    /// Takes the place of the sample before.
    pub(super) fn read(&mut self, bytes: &'a [u8], number: usize) -> Result<()> {
        check_inner_bytes(bytes, "sample", number)?;
        let wrong = |what: &str| damaged(format!("sample {number}: {what}"));
        self.locations.clear();
        self.values.clear();
        self.labels.clear();
        for found in Fields::of(bytes) {
            let (field, value) = found.map_err(|_| wrong("damaged or truncated"))?;
            match (field, value) {
                (sample_field::LOCATION, Value::Number(id)) => self.locations.push(id),
                (sample_field::LOCATION, Value::Bytes(packed)) => {
                    for id in Numbers::of(packed) {
                        self.locations
                            .push(id.ok_or_else(|| wrong("a damaged location"))?);
                    }
                }
                (sample_field::VALUE, Value::Number(value)) => self.values.push(value as i64),
                (sample_field::VALUE, Value::Bytes(packed)) => {
                    for value in Numbers::of(packed) {
                        let value = value.ok_or_else(|| wrong("a damaged value"))?;
                        self.values.push(value as i64);
                    }
                }
                (sample_field::LABEL, Value::Bytes(label)) => self.labels.push(label),
                (sample_field::LOCATION..=sample_field::LABEL, _) => {
                    return Err(wrong("a field of another type"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The way to one location of a stack.
struct Step {
    location: u64,
    node: Node,
    /// How long the way so far is in folded text.
    bytes: u64,
}

/// Adds samples to a profile. Callers that a sample shares with the one before are not looked up again.
pub(super) struct Samples<'a> {
    locations: &'a Locations,
    profile: &'a mut Profile,
    /// How many bytes of folded text may still come.
    left: u64,
    /// The stack of the sample before, root first.
    path: Vec<Step>,
}

impl<'a> Samples<'a> {
    pub(super) fn new(
        locations: &'a Locations,
        profile: &'a mut Profile,
        limits: &Limits,
    ) -> Samples<'a> {
        Samples {
            locations,
            profile,
            left: limits.text_bytes,
            path: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>) -> Result<()> {
        let (count, expected) = (sample.values.len(), self.profile.values().len());
        if count != expected {
            return Err(damaged(format!(
                "{count} values where there are {expected} sample types"
            )));
        }
        if let Some(negative) = sample.values.iter().find(|&&value| value < 0) {
            return Err(damaged(format!("value {negative} is negative")));
        }
        if sample.values.iter().all(|&value| value == 0) {
            return Ok(());
        }
        let node = self.leaf(&sample.locations)?;
        for (value, &amount) in sample.values.iter().enumerate() {
            self.profile.add(node, value, amount)?;
        }
        Ok(())
    }

    /// The node of a stack, whose leaf comes first.
    fn leaf(&mut self, stack: &[u64]) -> Result<Node> {
        let too_long = || damaged("the stacks are too long, all together");
        let shared = self.shared(stack);
        self.path.truncate(shared);
        let (mut node, mut bytes) = self
            .path
            .last()
            .map_or((ROOT, 0), |step| (step.node, step.bytes));
        for &location in stack[..stack.len() - shared].iter().rev() {
            let (frames, more) = self.locations.get(location)?;
            bytes += more;
            if bytes > self.left {
                return Err(too_long());
            }
            for &frame in frames {
                node = self.profile.child(node, frame)?;
            }
            self.path.push(Step {
                location,
                node,
                bytes,
            });
        }
        self.left = self.left.checked_sub(bytes).ok_or_else(too_long)?;
        Ok(node)
    }

    /// How many callers a stack has in common with the one before.
    fn shared(&self, stack: &[u64]) -> usize {
        let before = self.path.iter().map(|step| step.location);
        let callers = stack.iter().rev().zip(before);
        callers
            .take_while(|(&location, before)| location == *before)
            .count()
    }
}
