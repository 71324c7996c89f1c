//! Names and addresses of code that a process generated at run time.
//!
//! Two kinds are read: the binary one of `agents/jvmti/PERFMAP.md`, with inlined methods, and the text of
//! `/tmp/perf-PID.map`. Both come from the profiled process, so sizes are bounded and contents checked.

mod binary;
mod stretches;
mod text;

use std::collections::BTreeMap;
use std::io::Read;

use crate::profile::{Error, Frames, Kind, Result};
use stretches::Stretch;

/// The maps of several processes, by pid (as perf sees it).
pub type JitMaps = BTreeMap<u32, JitMap>;

/// The number of a name.
type NameId = u32;

/// Most bytes of one name.
const MOST_NAME: usize = 4096;
/// Most pieces of code of one map; a JVM has some ten thousand.
const MOST_CODES: usize = 1 << 21;

/// One process's code.
#[derive(Debug, Default)]
pub struct JitMap {
    names: Frames,
    codes: Vec<Code>,
    /// The ranges of all pieces of code, in the order of `codes`.
    ranges: Vec<Range>,
    /// The frames of ranges, as trees: ranges share their callers.
    inlined: Vec<Inlined>,
    stretches: Vec<Stretch>,
    malformed: u64,
}

/// A piece of code: a method with its inlined methods, or a stub.
#[derive(Clone, Copy, Debug)]
struct Code {
    start: u64,
    name: NameId,
    kind: Kind,
    /// The end of its ranges, which begin where those of the previous code end.
    last_range: u32,
}

/// A part of a method's code with the same frames throughout; it begins where the previous one ends.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// From the start of the code.
    end: u32,
    /// The innermost frame; [`OUTERMOST`]: the method itself.
    innermost: u32,
}

/// An inlined method and the frame it is inlined into.
#[derive(Clone, Copy, Debug)]
struct Inlined {
    name: NameId,
    caller: u32,
}

const OUTERMOST: u32 = u32::MAX;

impl JitMap {
    /// Reads the binary map. Damage anywhere in it is an error: half a map would name the wrong methods.
    pub fn binary(input: impl Read) -> Result<JitMap> {
        binary::read(input)
    }

    /// Reads the text of a `perf-PID.map`. Malformed lines are counted. The later of two entries for one address
    /// counts.
    pub fn text(input: impl Read) -> Result<JitMap> {
        text::read(input)
    }

    /// The frames at an address, outermost first; empty if there is no code.
    pub fn find(&self, address: u64) -> Vec<(&str, Kind)> {
        let mut frames = Vec::new();
        let Some(number) = stretches::find(&self.stretches, address) else {
            return frames;
        };
        let code = &self.codes[number];
        let mut inner = self.innermost(number, address - code.start);
        while inner != OUTERMOST {
            let inlined = &self.inlined[inner as usize];
            frames.push((self.names.name(inlined.name), Kind::Inlined));
            inner = inlined.caller;
        }
        frames.push((self.names.name(code.name), code.kind));
        frames.reverse();
        frames
    }

    /// The innermost frame at a place in a piece of code.
    fn innermost(&self, code: usize, offset: u64) -> u32 {
        let first = match code {
            0 => 0,
            _ => self.codes[code - 1].last_range,
        };
        let ranges = &self.ranges[first as usize..self.codes[code].last_range as usize];
        let place = ranges.partition_point(|range| u64::from(range.end) <= offset);
        ranges.get(place).map_or(OUTERMOST, |range| range.innermost)
    }

    /// How many pieces of code there are.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no code at all.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The number of lines that were left out.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Adds a name, at most [`MOST_NAME`] bytes of it. Bytes that are not UTF-8 are replaced, and so is the semicolon,
    /// which separates frames.
    fn push_name(&mut self, name: &[u8]) -> Result<NameId> {
        let name = String::from_utf8_lossy(&name[..name.len().min(MOST_NAME)]);
        self.names.push_name(&name.replace(';', ":"))
    }

    /// Adds a piece of code with the ranges that were pushed since the previous one.
    fn push_code(&mut self, start: u64, name: NameId, kind: Kind) -> Result<()> {
        if self.codes.len() >= MOST_CODES {
            return Err(Error::Limit {
                what: "pieces of code in a map of compiled code",
                limit: MOST_CODES as u64,
            });
        }
        self.codes.push(Code {
            start,
            name,
            kind,
            last_range: self.ranges.len() as u32,
        });
        Ok(())
    }
}
