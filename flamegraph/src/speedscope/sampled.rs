//! A sampled profile: stacks, root first, and as many weights.

use serde_json::value::RawValue;

use super::array::{each, numbers};
use super::read::{within, wrong, Head, Target};
use crate::error::Result;
use crate::frames::Frame;
use crate::stack::Stack;

pub(super) fn add(head: &Head<'_>, target: &mut Target<'_>) -> Result<()> {
    let missing = |what: &'static str| move || wrong(format!("no {what} in a sampled profile"));
    let samples = head.samples.ok_or_else(missing("samples"))?;
    let mut weights = numbers(head.weights.ok_or_else(missing("weights"))?)?;
    let (mut stack, mut frames, mut lost) = (Stack::default(), Vec::new(), 0.0);
    each(samples, |number, sample: &RawValue| {
        let too_few = || wrong("there is no weight for it");
        let weight = weights.next().ok_or_else(too_few);
        weight
            .and_then(|weight| target.column.scale_with(weight, &mut lost))
            .and_then(|amount| add_sample(sample, amount, target, &mut stack, &mut frames))
            .map_err(within(|| format!("sample {number}")))
    })?;
    match weights.count() {
        0 => Ok(()),
        more => Err(wrong(format!("{more} weights more than samples"))),
    }
}

fn add_sample(
    sample: &RawValue,
    amount: i64,
    target: &mut Target<'_>,
    stack: &mut Stack,
    frames: &mut Vec<Frame>,
) -> Result<()> {
    if amount == 0 {
        return Ok(());
    }
    frames.clear();
    frames.extend(target.root);
    for number in numbers(sample)? {
        let parsed = number.parse();
        let parsed = parsed.map_err(|_| wrong(format!("{number:.40} is not a frame's number")))?;
        frames.push(target.frame(parsed)?);
    }
    let leaf = stack.leaf(target.profile, frames.iter().copied())?;
    target.profile.add(leaf, target.column.value, amount)
}
