//! The flame graphs that async-profiler 2 to 4 draws as HTML: a call of a JavaScript function for each frame, callers
//! before what they call.
//!
//! - Version 2: `f(level,left,width,type,'name',…)`.
//! - Since version 3: `f(key,level,left,width,…)`. `u(key,width,…)` is a frame on the one before, `n(key,width,…)` one
//!   beside it. A width of 0, or none, is that of the frame before. The key has the type in its low three bits, above
//!   them the number of the name in `cpool`. There each name but the first begins with a character that says how many
//!   bytes it shares with the name before.

use super::perf_script::Lines;
use crate::formats::ReadOptions;
use crate::profile::{Bounded, Error, Frame, Kind, Limits, Node, Profile, Result, ValueType, ROOT};
use crate::source::Input;

const NAME: &str = "async-profiler's flame graph";
/// How the function that draws a frame begins, in version 2 and since.
const FUNCTIONS: [&[u8]; 2] = [
    b"function f(level, left, width, type",
    b"function f(key, level, left, width",
];
/// The kinds of the types of frames; types 3 and 4 are native code, in C and in C++.
const KINDS: [Kind; 7] = [
    Kind::Interpreted,
    Kind::Jit,
    Kind::Inlined,
    Kind::Plain,
    Kind::Plain,
    Kind::Kernel,
    Kind::C1,
];
/// A name shares at most this many bytes with the one before; the number is one printable character.
const MOST_SHARED: usize = 95;

pub(crate) fn detect(head: &[u8]) -> bool {
    let is_html = head.trim_ascii_start().starts_with(b"<!DOCTYPE html");
    let has = |function: &&[u8]| memchr::memmem::find(head, function).is_some();
    is_html && FUNCTIONS.iter().any(has)
}

/// Reads a flame graph. It does not say what its numbers are, so they are samples.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let limits = &options.limits;
    let mut reader = Reader {
        profile: Profile::bounded(vec![ValueType::samples()], limits.cells),
        limits,
        has_pool: false,
        names: Vec::new(),
        path: Vec::new(),
        level: 0,
        width: 0,
    };
    let text = Bounded::new(input, "bytes of the flame graph", limits.text_bytes);
    let mut lines = Lines::new(text);
    let mut in_pool = false;
    loop {
        let number = lines.number() + 1;
        let at_line = |error: Error| match error {
            Error::Damaged(_, reason) => Error::Text {
                format: NAME,
                line: number,
                reason,
            },
            other => other.at(NAME, number),
        };
        let Some(line) = lines.next().map_err(at_line)? else {
            break;
        };
        let line = line.trim_ascii_end();
        if in_pool && line.starts_with(b"'") {
            reader.add_name(line).map_err(at_line)?;
            continue;
        }
        in_pool = line == b"const cpool = [";
        reader.has_pool |= in_pool;
        reader.take(line).map_err(at_line)?;
    }
    reader.close(0)?;
    if reader.profile.is_empty() {
        return Err(wrong("there is no frame"));
    }
    reader.profile.into_ordered()
}

fn wrong(what: impl Into<String>) -> Error {
    Error::Damaged(NAME, what.into())
}

/// A frame whose callees may follow.
struct Open {
    node: Node,
    /// Its width without those of its callees so far.
    own: i64,
}

struct Reader<'l> {
    profile: Profile,
    limits: &'l Limits,
    /// It is of version 3 or later.
    has_pool: bool,
    /// The profile's numbers of the names in `cpool`.
    names: Vec<u32>,
    /// The frame at each level up to the last one's.
    path: Vec<Open>,
    level: usize,
    width: i64,
}

impl Reader<'_> {
    fn add_name(&mut self, line: &[u8]) -> Result<()> {
        let packed = quoted(line).ok_or_else(|| wrong("a name without its end"))?;
        if self.names.len() >= self.limits.cells {
            return Err(Error::Limit {
                what: "names of the flame graph",
                limit: self.limits.cells as u64,
            });
        }
        let name = match (self.names.last(), packed.split_first()) {
            (Some(&before), Some((&shared, rest))) => {
                let before = self.profile.frames.name(before).as_bytes();
                let shared = usize::from(shared).checked_sub(usize::from(b' '));
                let shared = shared.filter(|&shared| shared <= MOST_SHARED);
                let shared = shared.and_then(|shared| before.get(..shared));
                let shared = shared.ok_or_else(|| wrong("a name shares more than there is"))?;
                [shared, rest].concat()
            }
            _ => packed,
        };
        let name = self.name(&name)?;
        self.names.push(name);
        Ok(())
    }

    fn name(&mut self, name: &[u8]) -> Result<u32> {
        let most = self.limits.name_bytes;
        if name.len() > most {
            return Err(Error::Limit {
                what: "bytes of a frame name",
                limit: most as u64,
            });
        }
        let id = self.profile.frames.intern_name(name)?;
        if self.profile.frames.text_bytes() > self.limits.names_bytes {
            return Err(Error::Limit {
                what: "bytes of all frames' names",
                limit: self.limits.names_bytes as u64,
            });
        }
        Ok(id)
    }

    /// Adds the frame of a line, if it is a call that draws one. Lines of functions are indented.
    fn take(&mut self, line: &[u8]) -> Result<()> {
        if line.starts_with(b"d=") && self.profile.warnings().is_empty() {
            let warning = "a differential flame graph: only its second profile is read";
            self.profile.add_warnings([warning.to_string()]);
        }
        let [call @ (b'f' | b'u' | b'n'), b'(', arguments @ ..] = line else {
            return Ok(());
        };
        let mut rest = arguments.strip_suffix(b")").unwrap_or(arguments);
        let mut number = || -> Result<Option<u64>> {
            if rest.is_empty() || rest.starts_with(b"'") {
                return Ok(None);
            }
            let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
            let text = std::str::from_utf8(&rest[..end]).ok();
            rest = rest.get(end + 1..).unwrap_or_default();
            let number = text.and_then(|text| text.parse().ok());
            number.map(Some).ok_or_else(|| wrong("a number is wrong"))
        };
        let missing = || wrong("a number is missing");
        if !self.has_pool {
            let (level, _left) = (number()?, number()?);
            let (width, kind) = (number()?, number()?);
            let name = quoted(rest).ok_or_else(|| wrong("a name without its end"))?;
            let name = self.name(&name)?;
            let (level, width) = (level.ok_or_else(missing)?, width.ok_or_else(missing)?);
            return self.add((name, kind.ok_or_else(missing)?), level, width);
        }
        let key = number()?.ok_or_else(missing)?;
        let level = match call {
            b'f' => {
                let level = number()?.ok_or_else(missing)?;
                number()?.ok_or_else(missing)?;
                level
            }
            b'u' => self.level as u64 + 1,
            _ => self.level as u64,
        };
        let width = number()?.unwrap_or_default();
        let index = usize::try_from(key >> 3).ok();
        let name = index.and_then(|index| self.names.get(index).copied());
        let count = self.names.len();
        let name = name.ok_or_else(|| {
            let name = key >> 3;
            wrong(format!("name {name} does not exist (there are {count})"))
        })?;
        self.add((name, key & 7), level, width)
    }

    /// Adds a frame of this name and type; the one at level 0 stands for all frames.
    fn add(&mut self, (name, kind): (u32, u64), level: u64, width: u64) -> Result<()> {
        let level = usize::try_from(level).unwrap_or(usize::MAX);
        if level > self.path.len() {
            return Err(wrong(format!("level {level} has no caller")));
        }
        let kind = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind));
        let kind = *kind.ok_or_else(|| wrong("an unknown type of frame"))?;
        let width = i64::try_from(width).map_err(|_| wrong("the width does not fit in 64 bits"))?;
        if width > 0 {
            self.width = width;
        }
        self.close(level)?;
        let node = match self.path.last_mut() {
            None => ROOT,
            Some(caller) => {
                caller.own -= self.width;
                if caller.own < 0 {
                    return Err(wrong("a frame is wider than its caller"));
                }
                self.profile.child(caller.node, Frame::new(name, kind))?
            }
        };
        let own = self.width;
        self.path.push(Open { node, own });
        self.level = level;
        Ok(())
    }

    /// Closes the frames at this level and above it: their own widths are known now.
    fn close(&mut self, level: usize) -> Result<()> {
        for Open { node, own } in self.path.drain(level.min(self.path.len())..) {
            self.profile.add(node, 0, own)?;
        }
        Ok(())
    }
}

/// The text of a JavaScript string in single quotes at the start of `text`.
fn quoted(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = text.strip_prefix(b"'")?.iter();
    let mut name = Vec::new();
    loop {
        match *bytes.next()? {
            b'\'' => return Some(name),
            b'\\' => name.push(*bytes.next()?),
            other => name.push(other),
        }
    }
}
