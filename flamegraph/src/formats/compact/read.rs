//! Reading a compact profile. Nothing is trusted to be small, and every reference is checked.

use std::io::{Cursor, Read};

use flate2::read::ZlibDecoder;

use super::recent::{Recent, NOBODY};
use super::times::read_times;
use super::MAGIC;
use crate::formats::ReadOptions;
use crate::profile::{
    module_of, Bounded, Error, Frame, Frames, Kind, Labels, Limits, Node, Profile, Result,
    ValueType, ROOT,
};
use crate::source::wire::{varint, Numbers};
use crate::source::Input;

/// More than any real profile has.
const MOST_VALUES: u64 = 32;
const MOST_LABELS: u64 = 256;

pub(crate) fn detect(head: &[u8]) -> bool {
    MAGIC.iter().any(|magic| head.starts_with(&magic[..]))
}

/// Reads a compact profile.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    read_within(input, &options.limits)
}

impl Profile {
    /// Reads what `write_compact` wrote. A program that reads no other format is smaller with this than with `read`.
    pub fn read_compact(bytes: &[u8], limits: &Limits) -> Result<Profile> {
        read_within(Input::Bytes(Cursor::new(bytes)), limits)
    }
}

fn read_within(mut input: Input<'_>, limits: &Limits) -> Result<Profile> {
    let mut magic = [0; MAGIC[0].len()];
    input.read_exact(&mut magic)?;
    let timed = match MAGIC.iter().position(|&known| *known == magic) {
        Some(place) => place == 1,
        None => return Err(damaged("it does not begin with HPT1 or HPT2")),
    };
    let body = inflate(input, limits)?;
    let mut body = Body {
        rest: &body,
        whole: body.len(),
    };
    let values = body.values(limits)?;
    let labels = body.labels(limits)?;
    // A node with its frame's callees takes more than one value does.
    let cells = limits.cells / 2 * values.len().min(2);
    let mut profile = Profile::bounded(values, cells);
    let names = body.names(&mut profile, limits)?;
    let nodes = Streams::read(&mut body, &profile)?.add_nodes(&names, &mut profile, limits)?;
    body.modules(&names, &mut profile, limits, timed)?;
    if timed {
        read_times(&mut body, &nodes, &mut profile, limits)?;
    }
    if !body.rest.is_empty() {
        return Err(damaged("there is more behind its end"));
    }
    profile.set_labels(labels);
    profile.into_ordered()
}

fn inflate(input: Input<'_>, limits: &Limits) -> Result<Vec<u8>> {
    let decoder = ZlibDecoder::new(input);
    let mut bounded = Bounded::new(decoder, "bytes of the compact profile", limits.pprof_bytes);
    let mut body = Vec::new();
    match bounded.read_to_end(&mut body).map_err(Error::from) {
        Ok(_) => Ok(body),
        Err(Error::Io(error)) => Err(damaged(error.to_string())),
        Err(other) => Err(other),
    }
}

pub(super) fn damaged(what: impl Into<String>) -> Error {
    Error::Damaged("compact profile", what.into())
}

/// What is still to be read.
pub(super) struct Body<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl<'a> Body<'a> {
    fn cut_short(&self) -> Error {
        damaged(format!(
            "damaged or truncated at byte {}",
            self.whole - self.rest.len()
        ))
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        varint(&mut self.rest).ok_or_else(|| self.cut_short())
    }

    pub(super) fn count(&mut self, what: &'static str, most: u64) -> Result<u64> {
        match self.number()? {
            count if count <= most => Ok(count),
            _ => Err(Error::Limit { what, limit: most }),
        }
    }

    /// A length and as many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| self.cut_short())?;
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| self.cut_short())?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self, limits: &Limits) -> Result<String> {
        let bytes = self.bytes()?;
        check_name(bytes.len(), limits)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn values(&mut self, limits: &Limits) -> Result<Vec<ValueType>> {
        let count = self.count("values", MOST_VALUES)?;
        if count == 0 {
            return Err(damaged("no values; is this a profile?"));
        }
        let value = |_| Ok(ValueType::new(self.text(limits)?, self.text(limits)?));
        (0..count).map(value).collect()
    }

    fn labels(&mut self, limits: &Limits) -> Result<Labels> {
        let count = self.count("labels", MOST_LABELS)?;
        let label = |_| Ok((self.text(limits)?, self.text(limits)?));
        (0..count).map(label).collect()
    }

    /// The names, each without what it has in common with the one before; their numbers in the profile.
    fn names(&mut self, profile: &mut Profile, limits: &Limits) -> Result<Vec<u32>> {
        // Each is of some node.
        let count = self.count("names", profile.most_nodes() as u64)?;
        let [shared, lengths, mut rests] = [self.bytes()?, self.bytes()?, self.bytes()?];
        let (mut shared, mut lengths) = (Numbers::of(shared), Numbers::of(lengths));
        let (mut names, mut name, mut left) = (Vec::new(), Vec::new(), limits.pprof_bytes);
        for number in 0..count {
            let wrong = || damaged(format!("name {number} is damaged"));
            let next = |numbers: &mut Numbers<'_>| {
                let length = numbers.next().flatten();
                length
                    .and_then(|length| usize::try_from(length).ok())
                    .ok_or_else(wrong)
            };
            let (shared, length) = (next(&mut shared)?, next(&mut lengths)?);
            if shared > name.len() {
                return Err(wrong());
            }
            let (rest, behind) = rests.split_at_checked(length).ok_or_else(wrong)?;
            rests = behind;
            name.truncate(shared);
            name.extend_from_slice(rest);
            check_name(name.len(), limits)?;
            // Few bytes can stand for long names, all of which begin alike.
            left = left.checked_sub(name.len() as u64).ok_or(Error::Limit {
                what: "bytes of names",
                limit: limits.pprof_bytes,
            })?;
            names.push(profile.frames.intern_name(&name)?);
        }
        Ok(names)
    }

    /// The modules of names, which are at the end if there are any. Before times there is always their number.
    fn modules(
        &mut self,
        names: &[u32],
        profile: &mut Profile,
        limits: &Limits,
        timed: bool,
    ) -> Result<()> {
        if self.rest.is_empty() && !timed {
            return Ok(());
        }
        let wrong = || damaged("its modules are damaged");
        // Each is of some name, native or of the kernel. A merged profile may have more of them than one file.
        let count = self.count("modules", 2 * names.len() as u64)?;
        if count == 0 && timed {
            return Ok(());
        }
        // Few bytes can stand for many of them: each text is held once.
        let mut texts = Frames::default();
        let intern = |_| {
            let module = module_of(&self.text(limits)?).unwrap_or_default();
            texts.intern_name(module.as_bytes())
        };
        let numbers: Vec<u32> = (0..count).map(intern).collect::<Result<_>>()?;
        for kind in [Kind::Plain, Kind::Kernel] {
            let mut places = Numbers::of(self.bytes()?);
            for &name in names {
                let place = places.next().flatten().ok_or_else(wrong)?;
                if let Some(place) = place.checked_sub(1) {
                    let number = usize::try_from(place).ok().and_then(|at| numbers.get(at));
                    let text = texts.name(*number.ok_or_else(wrong)?);
                    let name = profile.frames.name(name);
                    profile.modules.insert(name, kind, text);
                }
            }
            if places.left() > 0 {
                return Err(wrong());
            }
        }
        Ok(())
    }
}

fn check_name(length: usize, limits: &Limits) -> Result<()> {
    if length <= limits.name_bytes {
        return Ok(());
    }
    Err(Error::Limit {
        what: "bytes of a name",
        limit: limits.name_bytes as u64,
    })
}

/// The numbers of the tree, read side by side.
struct Streams<'a> {
    children: Numbers<'a>,
    callees: Numbers<'a>,
    new: Numbers<'a>,
    values: Vec<Numbers<'a>>,
    /// The node that is being read, for errors; the root is 0.
    number: u64,
}

/// A node whose children are being read.
struct Open {
    node: Node,
    /// Its frame's number in the file.
    frame: u32,
    children: u64,
    /// How long its stack is in folded text.
    bytes: u64,
}

impl<'a> Streams<'a> {
    fn read(body: &mut Body<'a>, profile: &Profile) -> Result<Streams<'a>> {
        let mut column = || Ok(Numbers::of(body.bytes()?));
        let (children, callees, new) = (column()?, column()?, column()?);
        let values = (0..profile.values().len())
            .map(|_| column())
            .collect::<Result<_>>()?;
        Ok(Streams {
            children,
            callees,
            new,
            values,
            number: 0,
        })
    }

    fn wrong(&self, what: &str) -> Error {
        damaged(format!("node {}: {what}", self.number))
    }

    /// Returns the nodes in the order of the file.
    fn add_nodes(
        mut self,
        names: &[u32],
        profile: &mut Profile,
        limits: &Limits,
    ) -> Result<Vec<Node>> {
        let mut recent = Recent::default();
        let mut left = limits.text_bytes;
        let root = Open {
            node: ROOT,
            frame: NOBODY,
            children: self.next_children()?,
            bytes: 0,
        };
        self.add_values(&root, profile, &mut left)?;
        let mut path = vec![root];
        let mut nodes = vec![ROOT];
        while let Some(top) = path.last_mut() {
            if top.children == 0 {
                path.pop();
                continue;
            }
            top.children -= 1;
            self.number += 1;
            let (frame, own) = self.next_frame(top.frame, names, &mut recent)?;
            let open = Open {
                node: profile.child(top.node, own)?,
                frame,
                children: self.next_children()?,
                bytes: top.bytes + profile.frames.name_of(own).len() as u64 + 1,
            };
            self.add_values(&open, profile, &mut left)?;
            nodes.push(open.node);
            path.push(open);
        }
        match self.children.left() + self.callees.left() + self.new.left() {
            0 if self.values.iter().all(|column| column.left() == 0) => Ok(nodes),
            _ => Err(self.wrong("more in a column than there are nodes")),
        }
    }

    fn next_children(&mut self) -> Result<u64> {
        let count = self.children.next().flatten();
        count.ok_or_else(|| self.wrong("no number of children"))
    }

    /// The next node's frame: its number in the file, and what it is in the profile.
    fn next_frame(
        &mut self,
        caller: u32,
        names: &[u32],
        recent: &mut Recent,
    ) -> Result<(u32, Frame)> {
        let number = match self.callees.next().flatten() {
            Some(0) => {
                let new = self.new.next().flatten();
                let new = new.and_then(|new| u32::try_from(new).ok());
                let new = new.ok_or_else(|| self.wrong("no callee"))?;
                recent.add(caller, new);
                new
            }
            Some(place) => usize::try_from(place - 1)
                .ok()
                .and_then(|place| recent.take(caller, place))
                .ok_or_else(|| self.wrong("no such callee"))?,
            None => return Err(self.wrong("no callee")),
        };
        let frame = Frame::from_index(number as usize);
        let name = names.get(frame.name() as usize);
        let kind = Kind::ALL.get(number as usize & 7);
        match (name, kind) {
            (Some(&name), Some(&kind)) => Ok((number, Frame::new(name, kind))),
            _ => Err(self.wrong("its frame does not exist")),
        }
    }

    /// Adds the node's values; `left` is how much folded text may still come.
    fn add_values(&mut self, open: &Open, profile: &mut Profile, left: &mut u64) -> Result<()> {
        let mut any = false;
        for value in 0..self.values.len() {
            let amount = self.values[value].next().flatten();
            let amount = amount.and_then(|amount| i64::try_from(amount).ok());
            let amount = amount.ok_or_else(|| self.wrong("no value that is one"))?;
            if amount > 0 {
                any = true;
                profile.add(open.node, value, amount)?;
            }
        }
        if any {
            let rest = left.checked_sub(open.bytes);
            *left = rest.ok_or_else(|| self.wrong("the stacks are too long, all together"))?;
        }
        Ok(())
    }
}
