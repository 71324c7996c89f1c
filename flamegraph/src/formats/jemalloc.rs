//! Heap dumps of jemalloc (`prof:true`):
//!
//! ```text
//! heap_v2/524288
//!   t*: 14: 440498 [0: 0]
//! @ 0x7f1cb66a2630 0x7f1cb66a2d21
//!   t*: 1: 10333 [0: 0]
//!   t0: 1: 10333 [0: 0]
//!
//! MAPPED_LIBRARIES:
//! 7f1cb66a0000-7f1cb66b0000 r-xp 00001000 fe:00 18500   /usr/lib/libx.so
//! ```
//!
//! Addresses are leaf first. The line `t*` has the objects and bytes in use that were sampled, of all threads.

use crate::formats::stack::Stack;
use crate::formats::ReadOptions;
use crate::profile::{module_of, Error, Frame, Kind, Limits, Profile, Result, ValueType};
use crate::source::Input;

const NAME: &str = "jemalloc heap dump";
const BEGINS: &[u8] = b"heap_v2/";
const MAPS: &[u8] = b"MAPPED_LIBRARIES:";

pub(crate) fn detect(head: &[u8]) -> bool {
    head.starts_with(BEGINS)
}

/// Reads the stacks. The dump has no names, so a frame is a file and a place in it.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let limits = &options.limits;
    let bytes = input.into_bytes("bytes of the heap dump", limits.pprof_bytes)?;
    let (stacks, maps) = bytes.split_at(memchr::memmem::find(&bytes, MAPS).unwrap_or(bytes.len()));
    let values = ["inuse_objects", "inuse_space"];
    let values = std::iter::zip(values, ["count", "bytes"]);
    let values = values.map(|(name, unit)| ValueType::new(name, unit));
    let mut reader = Reader {
        profile: Profile::bounded(values.collect(), limits.cells),
        limits,
        mappings: mappings(maps),
        period: None,
        frames: Vec::new(),
        stack: Stack::default(),
    };
    for (number, line) in (1u64..).zip(stacks.split(|&byte| byte == b'\n')) {
        let taken = reader.take(line.trim_ascii());
        taken.map_err(|error| match error {
            Error::Damaged(format, reason) => Error::Text {
                format,
                line: number,
                reason,
            },
            other => other.at(NAME, number),
        })?;
    }
    let mut profile = reader.profile;
    let warning =
        "a heap dump of jemalloc has no names of functions, so frames are places in files; \
         `jeprof --collapsed PROGRAM FILE` adds the names";
    profile.add_warnings([warning.to_string()]);
    profile.into_ordered()
}

/// Addresses at which a file is mapped.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    file: String,
}

/// The files that are mapped, by address.
fn mappings(maps: &[u8]) -> Vec<Mapping> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mapping = |line: &[u8]| {
        let line = std::str::from_utf8(line).ok()?;
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let offset = words.nth(1)?;
        let path = line.get(line.find('/')?..)?;
        Some(Mapping {
            start: hex(start)?,
            end: hex(end)?,
            offset: hex(offset)?,
            file: module_of(path)?,
        })
    };
    let lines = maps.split(|&byte| byte == b'\n');
    let mut mappings: Vec<Mapping> = lines.filter_map(mapping).collect();
    mappings.sort_unstable_by_key(|mapping| mapping.start);
    mappings
}

struct Reader<'l> {
    profile: Profile,
    limits: &'l Limits,
    mappings: Vec<Mapping>,
    /// How many bytes are allocated for each sample on average.
    period: Option<f64>,
    /// The frames of the stack whose numbers follow, leaf first; before the first stack and after numbers there is none.
    frames: Vec<Frame>,
    stack: Stack,
}

impl Reader<'_> {
    fn take(&mut self, line: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(line);
        if let Some(addresses) = text.strip_prefix('@') {
            self.frames.clear();
            for address in addresses.split_ascii_whitespace() {
                let digits = address.strip_prefix("0x").unwrap_or(address);
                let wrong = |_| wrong(format!("{address:.20} is not an address"));
                let address = u64::from_str_radix(digits, 16).map_err(wrong)?;
                let frame = self.frame(address)?;
                self.frames.push(frame);
            }
        } else if let Some(numbers) = text.strip_prefix("t*:") {
            self.count(numbers)?;
        } else if let Some(period) = text.strip_prefix("heap_v2/") {
            let period = period.parse::<u64>().ok().filter(|&period| period > 0);
            let period = period.ok_or_else(|| wrong("the interval of samples is missing"))?;
            self.period = Some(period as f64);
        }
        Ok(())
    }

    /// Addresses are where calls return to, so the call is before.
    fn frame(&mut self, address: u64) -> Result<Frame> {
        let call = address.saturating_sub(1);
        let after = self
            .mappings
            .partition_point(|mapping| mapping.start <= call);
        let mapping = self.mappings[..after]
            .last()
            .filter(|mapping| call < mapping.end);
        let Some(mapping) = mapping else {
            return self.profile.frames.intern(b"[unknown]");
        };
        let place = (call - mapping.start).saturating_add(mapping.offset);
        let name = format!("[{}+{place:#x}]", mapping.file);
        let frame = self.profile.frames.intern(name.as_bytes())?;
        if self.profile.frames.text_bytes() > self.limits.names_bytes {
            return Err(Error::Limit {
                what: "bytes of all frames' names",
                limit: self.limits.names_bytes as u64,
            });
        }
        self.profile
            .modules
            .insert(&name, Kind::Plain, &mapping.file);
        Ok(frame)
    }

    /// Adds what the sampled objects stand for. The first numbers, before any stack, are the sum of all.
    fn count(&mut self, numbers: &str) -> Result<()> {
        if self.frames.is_empty() {
            return Ok(());
        }
        let mut parts = numbers.split([':', '[']).map(str::trim);
        let mut number = || {
            let number = parts.next()?.parse::<u64>();
            number.ok().map(|number| number as f64)
        };
        let (objects, bytes) = (number(), number());
        let (Some(objects), Some(bytes)) = (objects, bytes) else {
            return Err(wrong("two numbers are missing"));
        };
        let period = self
            .period
            .ok_or_else(|| wrong("the interval of samples is missing"))?;
        let frames = std::mem::take(&mut self.frames);
        if objects < 1.0 || bytes < 1.0 {
            return Ok(());
        }
        // An object of this size is sampled with this probability: every byte may be.
        let likely = -(-bytes / objects / period).exp_m1();
        let leaf = self
            .stack
            .leaf(&mut self.profile, frames.into_iter().rev())?;
        for (value, sampled) in [objects, bytes].into_iter().enumerate() {
            let all = (sampled / likely).round();
            if all >= 9_223_372_036_854_775_808.0 {
                return Err(wrong("a number does not fit in 64 bits"));
            }
            self.profile.add(leaf, value, all as i64)?;
        }
        Ok(())
    }
}

fn wrong(reason: impl Into<String>) -> Error {
    Error::Damaged(NAME, reason.into())
}
