//! What stands before and behind the records: events, build ids, the kernel's release.

use std::io::{Read, Seek, SeekFrom};

use foldhash::HashMap;

use super::event::Event;
use crate::profile::{Error, Result};
use crate::symbols::bytes::Bytes;

const MAGIC: &[u8; 8] = b"PERFILE2";
const MAGIC_BIG_ENDIAN: &[u8; 8] = b"2ELIFREP";
/// The size field of the header of a recording that went through a pipe.
const PIPE_HEADER: u64 = 16;
/// Most bytes of one section that is held in memory.
const MOST_SECTION: u64 = 64 << 20;
/// Most events of one file.
const MOST_EVENTS: usize = 4096;

/// The features of interest, by the number of their bit.
pub(crate) mod feature {
    pub(crate) const BUILD_ID: u64 = 2;
    pub(crate) const OS_RELEASE: u64 = 4;
    pub(crate) const EVENT_DESC: u64 = 12;
}

/// What a file says of itself.
#[derive(Default)]
pub(crate) struct Header {
    pub(crate) events: Vec<Event>,
    /// How often the events or their names changed.
    pub(crate) changes: u32,
    /// The event of each id.
    by_id: HashMap<u64, usize>,
    /// By path; none where files of one path have several.
    build_ids: HashMap<Vec<u8>, Option<Vec<u8>>>,
    pub(crate) os_release: String,
    /// How many bytes of records there are; `None`: as many as come.
    pub(crate) data_bytes: Option<u64>,
    /// Where in the file the records start.
    pub(crate) data_start: u64,
}

/// Whether a file that begins so is a perf.data.
pub(crate) fn detect(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || head.starts_with(MAGIC_BIG_ENDIAN)
}

pub(crate) fn broken(offset: u64, reason: &str) -> Error {
    Error::Damaged("perf.data", format!("byte {offset}: {reason}"))
}

#[derive(Clone, Copy)]
struct Section {
    offset: u64,
    size: u64,
}

fn section(bytes: &mut Bytes<'_>) -> Option<Section> {
    Some(Section {
        offset: bytes.u64()?,
        size: bytes.u64()?,
    })
}

impl Header {
    /// Reads the header; the input stands at the first record afterwards.
    pub(crate) fn read(input: &mut (impl Read + Seek)) -> Result<Header> {
        let (mut header, size) = Header::start(input)?;
        if size != PIPE_HEADER {
            header.read_file(input)?;
        }
        Ok(header)
    }

    /// Reads the header of a recording that comes through a pipe: all else is in its records.
    pub(crate) fn read_piped(input: &mut impl Read) -> Result<Header> {
        let (header, size) = Header::start(input)?;
        if size != PIPE_HEADER {
            return Err(broken(8, "not a recording that went through a pipe"));
        }
        Ok(header)
    }

    /// The first two words, and the second of them: the size of the header.
    fn start(input: &mut impl Read) -> Result<(Header, u64)> {
        let mut start = [0; 16];
        read_exact(input, &mut start, 0)?;
        if !detect(&start) {
            return Err(broken(0, "not a perf.data file"));
        }
        if start.starts_with(MAGIC_BIG_ENDIAN) {
            let reason = "recorded on a big-endian machine; perf script there prints a text that can be read";
            return Err(broken(0, reason));
        }
        let header = Header {
            data_start: PIPE_HEADER,
            ..Header::default()
        };
        let size = Bytes::new(&start[8..]).u64().unwrap_or(0);
        Ok((header, size))
    }

    fn read_file(&mut self, input: &mut (impl Read + Seek)) -> Result<()> {
        let mut rest = [0; 88];
        read_exact(input, &mut rest, 16)?;
        let mut fields = Bytes::new(&rest);
        let short = || broken(16, "the header is cut short");
        let attr_size = fields.u64().ok_or_else(short)?;
        let attrs = section(&mut fields).ok_or_else(short)?;
        let data = section(&mut fields).ok_or_else(short)?;
        let _event_types = section(&mut fields).ok_or_else(short)?;
        let features = fields.rest();
        self.read_events(input, attrs, attr_size)?;
        self.data_start = data.offset;
        // A recording that was killed has no size of its records, and nothing behind them.
        if data.size > 0 {
            self.data_bytes = Some(data.size);
            self.read_features(input, data, features)?;
        }
        input.seek(SeekFrom::Start(data.offset))?;
        Ok(())
    }

    fn read_events(
        &mut self,
        input: &mut (impl Read + Seek),
        attrs: Section,
        attr_size: u64,
    ) -> Result<()> {
        let size = usize::try_from(attr_size).unwrap_or(0);
        if !(80..=4096).contains(&size) {
            return Err(broken(
                16,
                "the size of an event's description makes no sense",
            ));
        }
        let all = read_section(input, attrs)?;
        for (number, one) in all.chunks_exact(size).take(MOST_EVENTS).enumerate() {
            let place = attrs.offset + (number * size) as u64;
            let short = || broken(place, "the description of an event is cut short");
            let mut event = Event::parse(Bytes::new(one)).ok_or_else(short)?;
            let ids = section(&mut Bytes::new(&one[size - 16..])).ok_or_else(short)?;
            let ids = read_section(input, ids)?;
            event.has_ids = !ids.is_empty();
            self.know_ids(number, &ids);
            self.events.push(event);
        }
        if self.events.is_empty() {
            return Err(broken(attrs.offset, "no event is described"));
        }
        Ok(())
    }

    /// Reads the ids of an event. An id that another event has stays with that event.
    fn know_ids(&mut self, event: usize, ids: &[u8]) {
        let mut ids = Bytes::new(ids);
        while let Some(id) = ids.u64() {
            self.by_id.entry(id).or_insert(event);
        }
    }

    /// The event that has this id.
    pub(crate) fn event_of(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    fn read_features(
        &mut self,
        input: &mut (impl Read + Seek),
        data: Section,
        bits: &[u8],
    ) -> Result<()> {
        let table = data.offset.saturating_add(data.size);
        let mut bits = Bytes::new(bits);
        let words: Vec<u64> = std::iter::from_fn(|| bits.u64()).collect();
        let present = |bit: &u64| words[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
        let present: Vec<u64> = (0..words.len() as u64 * 64).filter(present).collect();
        let size = present.len() as u64 * 16;
        let sections = read_section(
            input,
            Section {
                offset: table,
                size,
            },
        )?;
        let mut sections = Bytes::new(&sections);
        for bit in present {
            let place = section(&mut sections).unwrap_or(Section { offset: 0, size: 0 });
            if let feature::BUILD_ID | feature::OS_RELEASE | feature::EVENT_DESC = bit {
                let content = read_section(input, place)?;
                self.add_feature(bit, &content);
            }
        }
        Ok(())
    }

    /// Reads the section of a feature. Invalid parts are left out.
    pub(crate) fn add_feature(&mut self, bit: u64, content: &[u8]) {
        match bit {
            feature::BUILD_ID => self.add_build_ids(content),
            feature::OS_RELEASE => {
                let text = Bytes::new(content).sized_text().unwrap_or_default();
                self.os_release = String::from_utf8_lossy(text).into_owned();
            }
            feature::EVENT_DESC => {
                self.name_events(content);
            }
            _ => {}
        }
    }

    fn add_build_ids(&mut self, content: &[u8]) {
        let mut records = Bytes::new(content);
        while let Some((misc, size)) = build_id_header(&mut records) {
            let Some(body) = size.checked_sub(8).and_then(|size| records.take(size)) else {
                return;
            };
            self.add_build_id(misc, body);
        }
    }

    /// The body of one build-id record: pid, id of 20 bytes (and its length), name.
    pub(crate) fn add_build_id(&mut self, misc: u16, body: &[u8]) {
        const LENGTH_GIVEN: u16 = 1 << 15;
        if body.len() < 28 {
            return;
        }
        let (id, name) = (&body[4..24], Bytes::new(&body[28..]).text());
        let length = match misc & LENGTH_GIVEN {
            0 => 20,
            _ => usize::from(body[24]).clamp(1, 20),
        };
        let id = &id[..length];
        let known = self.build_ids.entry(name.to_vec());
        let known = known.or_insert_with(|| Some(id.to_vec()));
        if known.as_deref() != Some(id) {
            *known = None;
        }
    }

    /// The build id of the file of this path.
    pub(crate) fn build_id(&self, path: &[u8]) -> Option<&Vec<u8>> {
        self.build_ids.get(path)?.as_ref()
    }

    /// The names of the events, and their ids, in the order of the events.
    fn name_events(&mut self, content: &[u8]) -> Option<()> {
        self.changes += 1;
        let mut fields = Bytes::new(content);
        let count = fields.u32()?;
        let size = u64::from(fields.u32()?);
        for number in 0..count as usize {
            fields.skip(size)?;
            let ids = fields.u32()? as usize;
            let name = String::from_utf8_lossy(fields.sized_text()?).into_owned();
            let ids = fields.take(ids.checked_mul(8)?)?;
            let event = self.events.get_mut(number)?;
            event.name = name;
            if !std::mem::replace(&mut event.has_ids, true) {
                self.know_ids(number, ids);
            }
        }
        Some(())
    }

    /// An event's description that came through a pipe: the event, then its ids.
    pub(crate) fn add_event(&mut self, body: &[u8]) -> Option<()> {
        let mut fields = Bytes::new(body);
        self.changes += 1;
        let mut event = Event::parse(fields)?;
        fields.u32()?;
        let size = u64::from(fields.u32()?);
        fields.skip(size.checked_sub(8)?)?;
        event.has_ids = !fields.rest().is_empty();
        if self.events.len() < MOST_EVENTS {
            self.know_ids(self.events.len(), fields.rest());
            self.events.push(event);
        }
        Some(())
    }

    /// An update of an event that came through a pipe. Only its name is used.
    pub(crate) fn update_event(&mut self, body: &[u8]) -> Option<()> {
        const NAME: u64 = 2;
        let mut fields = Bytes::new(body);
        let (what, id) = (fields.u64()?, fields.u64()?);
        let name = String::from_utf8_lossy(fields.text()).into_owned();
        let event = self.event_of(id)?;
        if what == NAME {
            self.changes += 1;
            self.events[event].name = name;
        }
        Some(())
    }
}

fn build_id_header(records: &mut Bytes<'_>) -> Option<(u16, usize)> {
    let _kind = records.u32()?;
    Some((records.u16()?, usize::from(records.u16()?)))
}

fn read_section(input: &mut (impl Read + Seek), section: Section) -> Result<Vec<u8>> {
    if section.size > MOST_SECTION {
        return Err(broken(section.offset, "a section is larger than can be"));
    }
    if section.size == 0 {
        return Ok(Vec::new());
    }
    input.seek(SeekFrom::Start(section.offset))?;
    let mut content = Vec::new();
    input.take(section.size).read_to_end(&mut content)?;
    if (content.len() as u64) < section.size {
        return Err(broken(section.offset, "the file ends within a section"));
    }
    Ok(content)
}

fn read_exact(input: &mut impl Read, buffer: &mut [u8], offset: u64) -> Result<()> {
    input
        .read_exact(buffer)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => broken(offset, "the file ends within its header"),
            _ => error.into(),
        })
}
