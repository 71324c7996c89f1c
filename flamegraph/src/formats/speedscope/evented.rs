//! An evented profile: frames open and close; what passes in between belongs to the innermost.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::array::each;
use super::read::{within, wrong, Head, Target};
use crate::profile::{Node, Result, ROOT};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    frame: u32,
    #[serde(borrow)]
    at: &'a RawValue,
}

pub(super) fn add(head: &Head<'_>, target: &mut Target<'_>) -> Result<()> {
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
    each(events, |number, event: Event<'_>| {
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
    /// Up to where everything was given to somebody.
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

    /// Gives what passed to the innermost frame; where none is open nobody has it.
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
