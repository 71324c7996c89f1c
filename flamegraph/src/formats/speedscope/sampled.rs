//! A sampled profile: stacks, root first, and as many weights.

use serde_json::value::RawValue;

use super::array::{each, numbers};
use super::read::{within, wrong, Head, Target};
use crate::formats::stack::Stack;
use crate::profile::{Frame, Result};

pub(super) fn add(head: &Head<'_>, target: &mut Target<'_>) -> Result<()> {
    let missing = |what: &'static str| move || wrong(format!("no {what} in a sampled profile"));
    let samples = head.samples.ok_or_else(missing("samples"))?;
    let mut weights = numbers(head.weights.ok_or_else(missing("weights"))?)?;
    let (mut stack, mut frames) = (Stack::default(), Vec::new());
    each(samples, |number, sample: &RawValue| {
        let too_few = || wrong("there is no weight for it");
        let weight = weights.next().ok_or_else(too_few);
        weight
            .and_then(|weight| target.column.parts(weight))
            .and_then(|weight| add_sample(sample, weight, target, &mut stack, &mut frames))
            .map_err(within(|| format!("sample {number}")))
    })?;
    match weights.count() {
        0 => Ok(()),
        more => Err(wrong(format!("{more} weights more than samples"))),
    }
}

fn add_sample(
    sample: &RawValue,
    (whole, fraction): (i64, f64),
    target: &mut Target<'_>,
    stack: &mut Stack,
    frames: &mut Vec<Frame>,
) -> Result<()> {
    if whole == 0 && fraction == 0.0 {
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
    let value = target.column.value;
    // A number a little below zero is taken for zero.
    let amount = match whole < 0 {
        true => whole + i64::from(fraction >= 0.5),
        false => whole + target.fractions.take(leaf, value, fraction),
    };
    target.profile.add(leaf, value, amount)
}
