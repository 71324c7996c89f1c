//! The maps of bpftrace that have stacks in their keys:
//!
//! ```text
//! @NAME[comm, 12,
//!     leaf+44
//!     caller+12
//! , other]: 7
//! ```
//!
//! Each stack of a key follows the one before towards the root, as in `@[kstack, ustack]`. All that is not a stack is
//! the root frame. Each map is a value.

use super::stacks::Stacks;
use crate::formats::folded::{split_count, Tally, Wrong};
use crate::formats::perf_script::Lines;
use crate::formats::ReadOptions;
use crate::profile::{Bounded, Error, Profile, Result, ValueType};
use crate::source::Input;

const NAME: &str = "bpftrace's maps";
/// More maps than any program prints.
const MOST_MAPS: usize = 32;

/// Whether a map begins a line, and a stack the next one.
pub(crate) fn detect(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let is_map = begin(line.trim_ascii_end()).is_some();
        let stack = lines.peek().and_then(|line| line.strip_prefix(b"    "));
        if is_map && stack.is_some_and(|frame| !frame.trim_ascii().is_empty()) {
            return true;
        }
    }
    false
}

/// The name of the map of a line that begins one, and its key.
fn begin(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(b"@")?;
    let bracket = memchr::memchr(b'[', rest)?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let name = &rest[..bracket];
    name.iter()
        .all(is_name)
        .then_some((name, &rest[bracket + 1..]))
}

/// The last part of a key and the number of the map, if the key ends in this line.
fn end(line: &[u8]) -> Option<(&[u8], i64)> {
    let (key, count) = split_count(line).ok()?;
    Some((key.strip_suffix(b"]:")?, count.whole))
}

pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let limits = &options.limits;
    let text = Bounded::new(input, "bytes of bpftrace's output", limits.text_bytes);
    let mut lines = Lines::new(text);
    let mut stacks = Stacks::new(Vec::new(), limits);
    // The name of the map whose key is being read, and what of the key is not a stack.
    let mut open: Option<(Vec<u8>, Vec<u8>)> = None;
    let mut malformed = 0;
    let mut tally = Tally::default();
    loop {
        let number = lines.number() + 1;
        let at_line = |error: Error| error.at(NAME, number);
        let Some(line) = lines.next().map_err(at_line)? else {
            break;
        };
        let line = line.trim_ascii_end();
        if !line.is_empty() {
            // Other maps begin with `@`, too, and lines of histograms with a bracket.
            let is_of_map = open.is_some() || matches!(line[0], b'@' | b'[' | b'(');
            tally.count(number, (!is_of_map).then_some(Wrong::NoCount));
        }
        if let Some((name, key)) = begin(line) {
            malformed += u64::from(open.is_some());
            stacks.clear();
            if end(key).is_some() || key.ends_with(b"]:") {
                // Its key has no stack.
                open = None;
                continue;
            }
            let (name, mut root) = (name.to_vec(), Vec::new());
            add_to_root(&mut root, key);
            open = Some((name, root));
        } else if let Some((name, root)) = &mut open {
            if line.first().is_some_and(u8::is_ascii_whitespace) {
                stacks.push(line).map_err(at_line)?;
                continue;
            }
            let ended = end(line);
            add_to_root(root, ended.map_or(line, |(key, _)| key));
            if root.len() > limits.name_bytes {
                let limit = limits.name_bytes as u64;
                let what = "bytes of a key";
                return Err(at_line(Error::Limit { what, limit }));
            }
            if let Some((_, count)) = ended {
                let value = value_of(name, &mut stacks.profile, limits.cells);
                let counted = value.and_then(|value| stacks.count(root, value, count));
                counted.map_err(at_line)?;
                open = None;
            } else if line.contains(&b']') {
                // A map of something else than numbers, such as histograms.
                malformed += 1;
                open = None;
            }
        }
    }
    malformed += u64::from(open.is_some());
    let mut profile = stacks.profile;
    if profile.values().is_empty() {
        let reason = "there is no map with stacks as keys".to_string();
        return Err(Error::Damaged(NAME, reason));
    }
    tally.check_most(NAME, options.format.is_some())?;
    profile.add_malformed_lines(malformed);
    profile.into_ordered()
}

/// Appends a part of a key, without the commas around it.
fn add_to_root(root: &mut Vec<u8>, part: &[u8]) {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
    let start = part.iter().position(|byte| !is_between(byte));
    let end = part.iter().rposition(|byte| !is_between(byte));
    if let (Some(start), Some(end)) = (start, end) {
        if !root.is_empty() {
            root.extend_from_slice(b", ");
        }
        root.extend_from_slice(&part[start..=end]);
    }
}

/// The value of a map of this name; the map without a name counts samples.
fn value_of(name: &[u8], profile: &mut Profile, cells: usize) -> Result<usize> {
    let meaning = match name {
        b"" => ValueType::samples(),
        name => ValueType::new(String::from_utf8_lossy(name), "count"),
    };
    match profile.values().iter().position(|value| *value == meaning) {
        Some(known) => Ok(known),
        None if profile.values().len() == MOST_MAPS => {
            let limit = MOST_MAPS as u64;
            let what = "maps of the text";
            Err(Error::Limit { what, limit })
        }
        None => profile.push_value(meaning, cells),
    }
}
