//! Adds one profile of a file, sampled or evented.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::numbers::numbers;
use super::read::NAME;
use super::read::{within, wrong, Head, Target};
use crate::formats::json_array::each;
use crate::formats::stack::Stack;
use crate::profile::{Error, Frame, Node, Result, ROOT};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    frame: u32,
    #[serde(borrow)]
    at: &'a RawValue,
}

pub(super) fn add_evented(head: &Head<'_>, target: &mut Target<'_>) -> Result<()> {
    let missing = || wrong("no events in an evented profile");
    let events = head.events.ok_or_else(missing)?;
    let root = match target.root {
        Some(frame) => target.profile.child(ROOT, frame)?,
        None => ROOT,
    };
    let start = head
        .start_value
        .map(|start| target.column.scale(start.get()));
    let mut open = Open {
        root,
        path: Vec::new(),
        at: start.transpose()?,
    };
    each(NAME, events, |number, event: Event<'_>| {
        open.take(&event, target)
            .map_err(within(|| format!("event {number}")))
    })?;
    let Some(end) = head.end_value else {
        return Ok(());
    };
    // Frames left open close at the end.
    let end = target.column.scale(end.get())?;
    open.advance(end, target)
        .map_err(within(|| "endValue".to_string()))
}

/// The frames that are open.
struct Open {
    root: Node,
    path: Vec<(u32, Node)>,
    /// The time up to which values are added.
    at: Option<i64>,
}

impl Open {
    fn take(&mut self, event: &Event<'_>, target: &mut Target<'_>) -> Result<()> {
        let at = target.column.scale(event.at.get())?;
        self.advance(at, target)?;
        let frame = event.frame;
        match &*event.kind {
            "O" => {
                let node = target
                    .profile
                    .child(self.innermost(), target.frame(frame)?)?;
                self.path.push((frame, node));
                Ok(())
            }
            "C" => match self.path.pop() {
                Some((open, _)) if open == frame => Ok(()),
                Some((open, _)) => Err(wrong(format!("frame {frame} closes while {open} is open"))),
                None => Err(wrong(format!("frame {frame} closes and none is open"))),
            },
            other => Err(wrong(format!("unknown type {other:.40?}"))),
        }
    }

    fn innermost(&self) -> Node {
        self.path.last().map_or(self.root, |&(_, node)| node)
    }

    /// Adds the time since the last event to the innermost open frame, if any.
    fn advance(&mut self, at: i64, target: &mut Target<'_>) -> Result<()> {
        let before = self.at.replace(at).unwrap_or(at);
        let passed = at.checked_sub(before).filter(|&passed| passed >= 0);
        let passed = passed.ok_or_else(|| wrong(format!("{at} comes after {before}")))?;
        if self.path.is_empty() {
            return Ok(());
        }
        target
            .profile
            .add(self.innermost(), target.column.value, passed)
    }
}

pub(super) fn add_sampled(head: &Head<'_>, target: &mut Target<'_>) -> Result<()> {
    let missing = |what: &'static str| move || wrong(format!("no {what} in a sampled profile"));
    let samples = head.samples.ok_or_else(missing("samples"))?;
    let mut weights = numbers(head.weights.ok_or_else(missing("weights"))?)?;
    let (mut stack, mut frames) = (Stack::default(), Vec::new());
    each(NAME, samples, |number, sample: &RawValue| {
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
    // A number slightly below zero counts as zero.
    let amount = match whole < 0 {
        true => whole + i64::from(fraction >= 0.5),
        false => whole + target.fractions.take(leaf, value, fraction),
    };
    if amount < 0 {
        return Err(Error::Negative(NAME, format!("weight {amount}")));
    }
    target.profile.add(leaf, value, amount)
}
