//! Reads the map that our own agent in the JVM writes; `agents/jvmti/PERFMAP.md` describes the format.

use std::io::{BufReader, Read};

use foldhash::{HashSet, HashSetExt};

use super::stretches::{settle, Claim, Stands};
use super::text::INTERPRETER;
use super::{Inlined, JitMap, NameId, Range, MOST_NAME, OUTERMOST};
use crate::profile::{Error, Kind, Result};
use crate::symbols::bytes::Bytes;

const MAGIC: &[u8; 8] = b"HPROFMAP";
const VERSION: u32 = 1;
const MACHINES: [u32; 2] = [62, 183];
/// Most bytes of a map, and of one record.
const MOST_BYTES: u64 = 256 << 20;
const MOST_RECORD: u32 = 16 << 20;
/// Most methods inlined into one another; the JVM goes some dozens deep.
const MOST_DEPTH: usize = 1024;

mod kind {
    pub(super) const NAME: u32 = 1;
    pub(super) const CODE: u32 = 2;
    pub(super) const STUB: u32 = 3;
    pub(super) const UNLOAD: u32 = 4;
    pub(super) const END: u32 = 5;
}

fn damaged(reason: String) -> Error {
    Error::Damaged("map of compiled code", reason)
}

pub(super) fn read(input: impl Read) -> Result<JitMap> {
    let mut reader = Reader {
        input: BufReader::with_capacity(1 << 16, input.take(MOST_BYTES + 1)),
        place: 0,
        map: JitMap::default(),
        claims: Vec::new(),
        unloaded: HashSet::new(),
        counts: [0; 4],
    };
    reader.read_header()?;
    while !reader.read_record()? {}
    reader.check_nothing_follows()?;
    reader.map.stretches = settle(reader.claims, Stands::First);
    Ok(reader.map)
}

struct Reader<R> {
    input: BufReader<R>,
    /// Where the last record read starts.
    place: u64,
    map: JitMap,
    claims: Vec<Claim>,
    /// Addresses of unloaded code. Code at these addresses may be newer than the samples.
    unloaded: HashSet<u64>,
    /// Names, code, stubs, unloads so far.
    counts: [u64; 4],
}

impl<R: Read> Reader<R> {
    fn wrong(&self, reason: &str) -> Error {
        damaged(format!("byte {}: {reason}", self.place))
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.input
            .by_ref()
            .take(count as u64)
            .read_to_end(&mut bytes)?;
        if bytes.len() < count {
            return Err(self.wrong("the map is cut short"));
        }
        Ok(bytes)
    }

    fn read_header(&mut self) -> Result<()> {
        let header = self.bytes(16)?;
        if let Some(said) = header.strip_prefix(b"error: ") {
            return Err(self.failed(said));
        }
        let mut fields = Bytes::new(&header[8..]);
        let (version, machine) = (fields.u32(), fields.u32());
        if !header.starts_with(MAGIC) {
            return Err(self.wrong("no map of compiled code"));
        }
        if version != Some(VERSION) || !machine.is_some_and(|machine| MACHINES.contains(&machine)) {
            return Err(self.wrong("a map of another version or machine"));
        }
        self.place = 16;
        Ok(())
    }

    /// The error that the agent in the JVM wrote instead of a map.
    fn failed(&mut self, said: &[u8]) -> Error {
        let mut text = said.to_vec();
        let rest = self
            .input
            .by_ref()
            .take(MOST_NAME as u64)
            .read_to_end(&mut text);
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        match rest {
            Ok(_) => damaged(String::from_utf8_lossy(line).into_owned()),
            Err(error) => error.into(),
        }
    }

    /// Reads one record; true if it was the last.
    fn read_record(&mut self) -> Result<bool> {
        let header = self.bytes(8)?;
        let mut fields = Bytes::new(&header);
        let (kind, size) = (fields.u32().unwrap_or(0), fields.u32().unwrap_or(0));
        if size > MOST_RECORD {
            return Err(self.wrong("a record is larger than can be"));
        }
        let body = self.bytes(size as usize)?;
        let mut fields = Bytes::new(&body);
        let taken = match kind {
            kind::NAME => self.add_name(&body)?,
            kind::CODE => self.add_code(&mut fields)?,
            kind::STUB => self.add_stub(&mut fields)?,
            kind::UNLOAD => fields.u64().map(|start| {
                self.unloaded.insert(start);
                self.counts[3] += 1;
            }),
            kind::END => self.check_counts(&mut fields),
            _ => return Err(self.wrong("a record of an unknown kind")),
        };
        let is_whole = kind == kind::NAME || fields.rest().is_empty();
        if taken.is_none() || !is_whole {
            return Err(self.wrong("a record that contradicts itself"));
        }
        self.place += 8 + u64::from(size);
        if self.place > MOST_BYTES {
            return Err(Error::Limit {
                what: "bytes of a map of compiled code",
                limit: MOST_BYTES,
            });
        }
        Ok(kind == kind::END)
    }

    fn add_name(&mut self, name: &[u8]) -> Result<Option<()>> {
        if name.is_empty() || name.len() > MOST_NAME {
            return Ok(None);
        }
        self.map.push_name(name)?;
        self.counts[0] += 1;
        Ok(Some(()))
    }

    fn name_number(&self, fields: &mut Bytes<'_>) -> Option<NameId> {
        fields
            .u32()
            .filter(|&name| (name as usize) < self.map.names.len())
    }

    /// A method's code and its ranges.
    fn add_code(&mut self, fields: &mut Bytes<'_>) -> Result<Option<()>> {
        self.counts[1] += 1;
        let Some((start, length, method)) = self.code(fields) else {
            return Ok(None);
        };
        if self.add_ranges(fields, length, method).is_none() {
            return Ok(None);
        }
        self.claim(start, length, method, Kind::Jit)?;
        Ok(Some(()))
    }

    /// Start, length and name of a piece of code.
    fn code(&self, fields: &mut Bytes<'_>) -> Option<(u64, u32, NameId)> {
        let (start, length) = (fields.u64()?, fields.u32()?);
        let name = self.name_number(fields)?;
        start.checked_add(u64::from(length))?;
        Some((start, length, name))
    }

    fn add_ranges(&mut self, fields: &mut Bytes<'_>, length: u32, method: NameId) -> Option<()> {
        // The frames of the previous range, outermost first.
        let mut frames: Vec<u32> = Vec::new();
        let mut covered = 0;
        for _ in 0..fields.u32()? {
            let end = fields.u32()?;
            if end <= covered || end > length {
                return None;
            }
            covered = end;
            self.next_frames(fields, method, &mut frames)?;
            let innermost = *frames.last()?;
            self.map.ranges.push(Range { end, innermost });
        }
        Some(())
    }

    /// Turns the previous range's frames into those of the next one.
    fn next_frames(
        &mut self,
        fields: &mut Bytes<'_>,
        method: NameId,
        frames: &mut Vec<u32>,
    ) -> Option<()> {
        let (keep, add) = (usize::from(fields.u16()?), usize::from(fields.u16()?));
        if keep > frames.len() || keep + add > MOST_DEPTH {
            return None;
        }
        frames.truncate(keep);
        for _ in 0..add {
            let name = self.name_number(fields)?;
            let Some(&caller) = frames.last() else {
                frames.push((name == method).then_some(OUTERMOST)?);
                continue;
            };
            frames.push(self.map.inlined.len() as u32);
            self.map.inlined.push(Inlined { name, caller });
        }
        Some(())
    }

    fn add_stub(&mut self, fields: &mut Bytes<'_>) -> Result<Option<()>> {
        self.counts[2] += 1;
        let Some((start, length, name)) = self.code(fields) else {
            return Ok(None);
        };
        let kind = match self.map.names.name(name) {
            INTERPRETER => Kind::Interpreted,
            _ => Kind::Plain,
        };
        self.claim(start, length, name, kind)?;
        Ok(Some(()))
    }

    /// Adds a piece of code. Code at the address of unloaded code gets no address.
    fn claim(&mut self, start: u64, length: u32, name: NameId, kind: Kind) -> Result<()> {
        if !self.unloaded.contains(&start) {
            self.claims.push(Claim {
                start,
                end: start + u64::from(length),
                code: self.map.codes.len() as u32,
            });
        }
        self.map.push_code(start, name, kind)
    }

    fn check_counts(&self, fields: &mut Bytes<'_>) -> Option<()> {
        for count in self.counts {
            if fields.u64()? != count {
                return None;
            }
        }
        fields.u64().map(|_too_large| ())
    }

    fn check_nothing_follows(&mut self) -> Result<()> {
        let mut byte = [0];
        match self.input.read(&mut byte)? {
            0 => Ok(()),
            _ => Err(self.wrong("something follows the end")),
        }
    }
}
