//! Reads the members of a file, then adds each profile stack by stack.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::numbers::{Column, Fractions};
use super::profiles::{add_evented, add_sampled};
use crate::formats::json_array::each;
use crate::formats::ReadOptions;
use crate::profile::{Error, Frame, Labels, Limits, Profile, Result};
use crate::source::Input;

/// Members a speedscope file may begin with.
const MEMBERS: &[&str] = &[
    "$schema",
    "activeProfileIndex",
    "exporter",
    "labels",
    "name",
    "profiles",
    "shared",
    "version",
];
/// Most bytes of the labels, which are a few names.
const MOST_LABEL_BYTES: usize = 1 << 20;

/// Whether a file begins with an object whose first member is one of speedscope's, and soon has one that others do not.
pub(crate) fn detect(head: &[u8]) -> bool {
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let after = |text: &[u8], prefix: &str| {
        let rest = text.trim_ascii_start().strip_prefix(prefix.as_bytes());
        rest.map(<[u8]>::to_vec)
    };
    let text = &text[..text.len().min(4096)];
    let has = |name: &str| memchr::memmem::find(head, name.as_bytes()).is_some();
    if !["\"$schema\"", "\"shared\"", "\"profiles\""]
        .into_iter()
        .any(has)
    {
        return false;
    }
    let Some(member) = after(text, "{").and_then(|text| after(&text, "\"")) else {
        return false;
    };
    MEMBERS.iter().any(|name| {
        let rest = after(&member, &format!("{name}\""));
        rest.is_some_and(|rest| after(&rest, ":").is_some())
    })
}

/// The format's name in errors.
pub(super) const NAME: &str = "speedscope";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    shared: Shared<'a>,
    #[serde(borrow)]
    profiles: &'a RawValue,
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Shared<'a> {
    #[serde(borrow)]
    frames: &'a RawValue,
}

#[derive(Deserialize)]
struct SharedFrame<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// A profile of the file, with its arrays not yet parsed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) unit: Cow<'a, str>,
    /// Our own member: the exact name and unit of the value.
    #[serde(borrow)]
    pub(super) value: Option<Meaning<'a>>,
    #[serde(borrow)]
    pub(super) start_value: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) end_value: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) samples: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) weights: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) events: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Meaning<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) unit: Cow<'a, str>,
}

pub(super) fn wrong(what: impl Into<String>) -> Error {
    Error::Damaged(NAME, what.into())
}

/// Prefixes an error with its place in the file.
pub(super) fn within(place: impl FnOnce() -> String) -> impl FnOnce(Error) -> Error {
    |error| match error {
        Error::Damaged(_, reason) => wrong(format!("{}: {reason}", place())),
        Error::Negative(format, number) => {
            Error::Negative(format, format!("{}: {number}", place()))
        }
        other => wrong(format!("{}: {other}", place())),
    }
}

/// Reads a speedscope file. Profiles with the same unit are added up; each unit is a value.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let limits = &options.limits;
    let bytes = input.into_bytes("bytes of the speedscope file", limits.speedscope_bytes)?;
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let file: File<'_> = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    let mut profile = Profile::bounded(Vec::new(), limits.cells);
    let frames = read_frames(file.shared.frames, &mut profile, limits)?;
    let mut fractions = Fractions::default();
    each(NAME, file.profiles, |number, head: Head<'_>| {
        let place = || format!("profile {number} ({:.80})", head.name);
        let to = (&mut profile, &mut fractions);
        add_profile(&head, &frames, to, options).map_err(within(place))
    })
    .map_err(|error| match error {
        Error::Damaged(_, reason) => wrong(format!("profiles: {reason}")),
        other => other,
    })?;
    fractions.share_out(&mut profile)?;
    if let Some(labels) = file.labels {
        profile.set_labels(read_labels(labels)?);
    }
    Ok(profile)
}

fn read_frames(frames: &RawValue, profile: &mut Profile, limits: &Limits) -> Result<Vec<Frame>> {
    let mut all = Vec::new();
    each(NAME, frames, |_, frame: SharedFrame<'_>| {
        if frame.name.len() > limits.name_bytes {
            return Err(Error::Limit {
                what: "bytes of a frame name",
                limit: limits.name_bytes as u64,
            });
        }
        all.push(profile.frames.intern(frame.name.as_bytes())?);
        Ok(())
    })
    .map_err(within(|| "shared.frames".to_string()))?;
    Ok(all)
}

fn read_labels(labels: &RawValue) -> Result<Labels> {
    if labels.get().len() > MOST_LABEL_BYTES {
        return Err(Error::Limit {
            what: "bytes of labels",
            limit: MOST_LABEL_BYTES as u64,
        });
    }
    serde_json::from_str(labels.get()).map_err(|error| wrong(format!("labels: {error}")))
}

/// Where the stacks of one profile of the file go.
pub(super) struct Target<'a> {
    pub(super) profile: &'a mut Profile,
    pub(super) frames: &'a [Frame],
    pub(super) column: Column,
    pub(super) fractions: &'a mut Fractions,
    /// The frame with the profile's name, if requested.
    pub(super) root: Option<Frame>,
}

impl Target<'_> {
    pub(super) fn frame(&self, number: u32) -> Result<Frame> {
        let (frame, count) = (self.frames.get(number as usize), self.frames.len());
        frame
            .copied()
            .ok_or_else(|| wrong(format!("frame {number} does not exist (there are {count})")))
    }
}

fn add_profile(
    head: &Head<'_>,
    frames: &[Frame],
    (profile, fractions): (&mut Profile, &mut Fractions),
    options: &ReadOptions,
) -> Result<()> {
    let column = Column::of(head, profile, options.limits.cells)?;
    // Several profiles in one file are mostly threads.
    let name = format!("{:.200}", head.name);
    let root = match options.threads.frame_of_label(&name) {
        Some(name) if head.value.is_none() => Some(profile.frames.intern(name.as_bytes())?),
        _ => None,
    };
    let mut target = Target {
        profile,
        frames,
        column,
        fractions,
        root,
    };
    match &*head.kind {
        "sampled" => add_sampled(head, &mut target),
        "evented" => add_evented(head, &mut target),
        other => Err(wrong(format!("unknown type {other:.80?}"))),
    }
}
