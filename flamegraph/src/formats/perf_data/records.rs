//! The records of a file, one after the other, in the order of their times.
//!
//! Each CPU's records are in order, but the CPUs' are interleaved. `perf record` writes a mark after each
//! round over the CPUs; what is older than the newest record of the round before can then be handed
//! on. So no more than two rounds are held in memory, whatever the size of the file.

use std::io::{Read, Seek};

use super::header::{broken, Header};
use super::unpack::Unpacker;
use crate::profile::Result;
use crate::symbols::bytes::Bytes;

/// Types of records.
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const SWITCH: u32 = 14;
    pub(crate) const KSYMBOL: u32 = 17;

    pub(super) const USER: u32 = 64;
    pub(super) const HEADER_ATTR: u32 = 64;
    pub(super) const HEADER_TRACING_DATA: u32 = 66;
    pub(super) const HEADER_BUILD_ID: u32 = 67;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const EVENT_UPDATE: u32 = 78;
    pub(super) const HEADER_FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
}

const HEADER_BYTES: usize = 8;

/// Most bytes held. Beyond that the older half is released without waiting for a mark.
const MOST_WAITING: usize = 256 << 20;

/// A record: its type, its flags, and what follows its header.
pub(crate) struct Record<'a> {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    pub(crate) body: Bytes<'a>,
    /// Which event it belongs to, as an index into the header's.
    pub(crate) event: usize,
}

/// When a record was made, and where it lies in `Records::held`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    start: usize,
}

/// Reads records; see the module.
pub(crate) struct Records<R> {
    input: R,
    pub(crate) header: Header,
    /// Where the next record starts in the file, and where the last one ends.
    offset: u64,
    end: Option<u64>,
    unpacker: Unpacker,
    /// Records that wait, headers and all, and some that were handed out.
    held: Vec<u8>,
    /// How many of `held` are of records that wait or are ready.
    wanted_bytes: usize,
    most_waiting: usize,
    waiting: Vec<Entry>,
    /// The front of `waiting` that may go out, oldest last.
    ready: Vec<Entry>,
    current: usize,
    newest: u64,
    /// What is at most this old may go out when the round ends.
    horizon: u64,
    finished: bool,
    /// 1 when the recording ended within a record.
    pub(crate) cut_short: u64,
}

impl<R: Read + Seek> Records<R> {
    pub(crate) fn new(mut input: R) -> Result<Records<R>> {
        let header = Header::read(&mut input)?;
        Ok(Records::behind(header, input, MOST_WAITING))
    }
}

impl<R: Read> Records<R> {
    /// Records that come through a pipe. At most `most_waiting` bytes of those that are not in order yet are held.
    pub(crate) fn piped(mut input: R, most_waiting: usize) -> Result<Records<R>> {
        let header = Header::read_piped(&mut input)?;
        Ok(Records::behind(header, input, most_waiting))
    }

    fn behind(header: Header, input: R, most_waiting: usize) -> Records<R> {
        Records {
            offset: header.data_start,
            end: header
                .data_bytes
                .map(|bytes| header.data_start.saturating_add(bytes)),
            input,
            header,
            unpacker: Unpacker::default(),
            held: Vec::new(),
            wanted_bytes: 0,
            most_waiting,
            waiting: Vec::new(),
            ready: Vec::new(),
            current: 0,
            newest: 0,
            horizon: 0,
            finished: false,
            cut_short: 0,
        }
    }

    /// Goes to the next record, which [`current`](Records::current) then is; false after the last one.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(entry) = self.ready.pop() {
                self.current = entry.start;
                self.wanted_bytes -= self.fields(entry.start).2;
                return Ok(true);
            }
            if self.finished {
                return Ok(false);
            }
            self.forget_handed_out();
            if let Some(start) = self.read_round()? {
                self.current = start;
                return Ok(true);
            }
        }
    }

    /// The record gone to, and what is known of the file by now.
    pub(crate) fn current(&self) -> (Record<'_>, &Header) {
        (self.record(self.current), &self.header)
    }

    fn record(&self, start: usize) -> Record<'_> {
        let (kind, misc, size) = self.fields(start);
        let body = Bytes::new(&self.held[start + HEADER_BYTES..start + size]);
        Record {
            kind,
            misc,
            body,
            event: self.event_of(kind, body).unwrap_or(0),
        }
    }

    /// Type, flags and size of the record that starts here.
    fn fields(&self, start: usize) -> (u32, u16, usize) {
        let mut header = Bytes::new(&self.held[start..start + HEADER_BYTES]);
        let kind = header.u32().unwrap_or(0);
        let misc = header.u16().unwrap_or(0);
        (kind, misc, usize::from(header.u16().unwrap_or(0)))
    }

    fn event_of(&self, kind: u32, body: Bytes<'_>) -> Option<usize> {
        let events = &self.header.events;
        if events.len() < 2 {
            return None;
        }
        let id = if kind == kind::SAMPLE {
            let mut rest = body;
            rest.skip(events[0].id_place()? as u64)?;
            rest.u64()?
        } else if events[0].ends_with_id() {
            body.u64_from_end(8)?
        } else {
            return None;
        };
        self.header.event_of(id)
    }

    fn time_of(&self, kind: u32, body: Bytes<'_>) -> Option<u64> {
        let event = self.event_of(kind, body).unwrap_or(0);
        let event = self.header.events.get(event)?;
        if kind == kind::SAMPLE {
            let mut rest = body;
            rest.skip(event.sample_time_place()? as u64)?;
            return rest.u64();
        }
        body.u64_from_end(event.time_from_end()?)
    }

    /// Keeps of the held records only those that wait, once the others are more: each byte is then moved
    /// only as often as bytes were handed out.
    fn forget_handed_out(&mut self) {
        if self.waiting.is_empty() {
            self.held.clear();
            return;
        }
        if self.held.len() / 2 < self.wanted_bytes {
            return;
        }
        let mut kept = Vec::with_capacity(self.held.len() / 2);
        for place in 0..self.waiting.len() {
            let start = self.waiting[place].start;
            let (_, _, size) = self.fields(start);
            self.waiting[place].start = kept.len();
            kept.extend_from_slice(&self.held[start..start + size]);
        }
        self.held = kept;
    }

    /// Reads until some records are ready, until all is read, or until a record without a time, which
    /// goes out at once: where it starts is returned.
    fn read_round(&mut self) -> Result<Option<usize>> {
        while self.ready.is_empty() && !self.finished {
            let start = self.held.len();
            if !self.read_record()? {
                if self.unpacker.in_use() {
                    self.unpacker.finish();
                    continue;
                }
                self.release(usize::MAX, u64::MAX);
                self.finished = true;
                return Ok(None);
            }
            let (kind, misc, _) = self.fields(start);
            if kind >= kind::USER {
                self.take_in(kind, misc, start)?;
                continue;
            }
            if self.arrange(start) {
                return Ok(Some(start));
            }
            if self.wanted_bytes > self.most_waiting {
                self.release(self.waiting.len() / 2, u64::MAX);
            }
        }
        Ok(None)
    }

    /// Lets the record wait for its turn; true when it has no time and need not.
    fn arrange(&mut self, start: usize) -> bool {
        let (kind, _, size) = self.fields(start);
        let body = Bytes::new(&self.held[start + HEADER_BYTES..start + size]);
        match self.time_of(kind, body) {
            None | Some(0 | u64::MAX) => true,
            Some(time) => {
                self.newest = self.newest.max(time);
                self.wanted_bytes += size;
                self.waiting.push(Entry { time, start });
                false
            }
        }
    }

    /// Makes ready what is not newer than `horizon`, the oldest `most` of it.
    fn release(&mut self, most: usize, horizon: u64) {
        self.waiting.sort_unstable();
        let old = self.waiting.partition_point(|entry| entry.time <= horizon);
        self.ready.extend(self.waiting.drain(..old.min(most)));
        self.ready.reverse();
    }

    /// Reads one record to the end of `held`; false when there is none.
    fn read_record(&mut self) -> Result<bool> {
        if let Some(record) = self.unpacker.next() {
            let start = self.held.len();
            self.held.extend_from_slice(record);
            let (kind, _, size) = self.fields(start);
            // A packed record within packed records could unfold for ever.
            if size < HEADER_BYTES || matches!(kind, kind::COMPRESSED | kind::COMPRESSED2) {
                return Err(broken(self.offset, "packed records that cannot be"));
            }
            return Ok(true);
        }
        if self.end.is_some_and(|end| self.offset >= end) {
            return Ok(false);
        }
        let start = self.held.len();
        if !self.read_bytes(HEADER_BYTES)? {
            return Ok(false);
        }
        let (_, _, size) = self.fields(start);
        let Some(more) = size.checked_sub(HEADER_BYTES) else {
            return Err(broken(self.offset, "a record is smaller than its header"));
        };
        if !self.read_bytes(more)? {
            return Ok(false);
        }
        self.offset += size as u64;
        Ok(true)
    }

    /// Appends `count` bytes to `held`; false when a recording without a size ends before.
    fn read_bytes(&mut self, count: usize) -> Result<bool> {
        let start = self.held.len();
        self.held.resize(start + count, 0);
        let mut filled = start;
        while filled < self.held.len() {
            match self.input.read(&mut self.held[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if filled == start + count {
            return Ok(true);
        }
        if self.end.is_some() {
            return Err(broken(self.offset, "the file ends within its records"));
        }
        self.cut_short = u64::from(filled > start || count != HEADER_BYTES);
        self.held.truncate(start);
        Ok(false)
    }

    /// Deals with a record of perf's own, the last in `held`, and lets go of it.
    fn take_in(&mut self, kind: u32, misc: u16, start: usize) -> Result<()> {
        let body = self.held.split_off(start).split_off(HEADER_BYTES);
        let mut fields = Bytes::new(&body);
        match kind {
            // Packed records come out later than the marks between them.
            kind::FINISHED_ROUND if !self.unpacker.in_use() => {
                self.release(usize::MAX, self.horizon);
                self.horizon = self.newest;
            }
            kind::HEADER_ATTR => {
                self.header.add_event(&body);
            }
            kind::EVENT_UPDATE => {
                self.header.update_event(&body);
            }
            kind::HEADER_BUILD_ID => self.header.add_build_id(misc, &body),
            kind::HEADER_FEATURE => {
                if let Some(bit) = fields.u64() {
                    let content = fields.rest();
                    self.header.add_feature(bit, content);
                }
            }
            kind::HEADER_TRACING_DATA => self.skip(u64::from(fields.u32().unwrap_or(0)))?,
            kind::AUXTRACE => self.skip(fields.u64().unwrap_or(0))?,
            kind::COMPRESSED => self.unpack(&body)?,
            kind::COMPRESSED2 => {
                let size = usize::try_from(fields.u64().unwrap_or(0)).unwrap_or(0);
                let packed = fields.take(size).unwrap_or_default();
                self.unpack(packed)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn unpack(&mut self, packed: &[u8]) -> Result<()> {
        let offset = self.offset;
        self.unpacker
            .feed(packed)
            .map_err(|reason| broken(offset, &reason))
    }

    /// Passes over data that stands between records.
    fn skip(&mut self, bytes: u64) -> Result<()> {
        let skipped = std::io::copy(&mut self.input.by_ref().take(bytes), &mut std::io::sink())?;
        self.offset += skipped;
        Ok(())
    }
}
