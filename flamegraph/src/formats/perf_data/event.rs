//! The events a file was recorded with, and how their samples are laid out.

use crate::profile::MOST_PERIOD;
use crate::symbols::bytes::Bytes;

mod format {
    pub(super) const IP: u64 = 1;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const STACK_USER: u64 = 1 << 13;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// What `read()` of a counter gives, inside a sample.
mod counter {
    pub(super) const TIME_ENABLED: u64 = 1;
    pub(super) const TIME_RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

const FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;

/// One event (`perf_event_attr`).
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    /// Whether its ids are known.
    pub(crate) has_ids: bool,
    /// The period of samples that do not say theirs; 1 for an event with a frequency.
    period: u64,
    kind: u32,
    config: u64,
    layout: u64,
    read_layout: u64,
    ids_everywhere: bool,
}

/// What a sample says, without its stack's frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawSample<'a> {
    pub(crate) ip: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time: u64,
    /// How many events, or nanoseconds, it stands for.
    pub(crate) period: u64,
    /// The call chain's addresses, leaf first, as they lie in the file; `None`: the event has none.
    pub(crate) chain: Option<&'a [u8]>,
}

impl Event {
    /// Reads a `perf_event_attr` at the front of these bytes.
    pub(crate) fn parse(mut bytes: Bytes<'_>) -> Option<Event> {
        let kind = bytes.u32()?;
        let _size = bytes.u32()?;
        let config = bytes.u64()?;
        let period = bytes.u64()?;
        let layout = bytes.u64()?;
        let read_layout = bytes.u64()?;
        let flags = bytes.u64()?;
        Some(Event {
            name: known_name(kind, config),
            has_ids: false,
            period: if flags & FREQUENCY == 0 { period } else { 1 },
            kind,
            config,
            layout,
            read_layout,
            ids_everywhere: flags & SAMPLE_ID_ALL != 0,
        })
    }

    /// Whether the event has this name, with or without modifiers (`:u`).
    pub(crate) fn is_called(&self, wanted: &str) -> bool {
        let modifier = |letter: char| "ukhpPGHISDWeb".contains(letter);
        match self.name.strip_prefix(wanted) {
            Some("") => true,
            Some(rest) => (rest.strip_prefix(':')).is_some_and(|rest| rest.chars().all(modifier)),
            None => false,
        }
    }

    /// It has no samples: perf records it for other kinds of records.
    pub(crate) fn is_dummy(&self) -> bool {
        self.kind == SOFTWARE && self.config == DUMMY
    }

    /// The unit of a sample's period.
    pub(crate) fn period_unit(&self) -> &'static str {
        const CLOCKS: [u64; 2] = [0, 1];
        match self.kind == SOFTWARE && CLOCKS.contains(&self.config) {
            true => "nanoseconds",
            false => "count",
        }
    }

    /// Whether user stacks were copied instead of walked (`--call-graph dwarf`).
    pub(crate) fn copies_stacks(&self) -> bool {
        self.layout & format::STACK_USER != 0
    }

    /// Where in a sample the event's id stands, in bytes; `None`: nowhere.
    pub(crate) fn id_place(&self) -> Option<usize> {
        use format::{ADDR, ID, IDENTIFIER, IP, TID, TIME};
        if self.layout & IDENTIFIER != 0 {
            return Some(0);
        }
        let before = (self.layout & (IP | TID | TIME | ADDR)).count_ones() as usize * 8;
        (self.layout & ID != 0).then_some(before)
    }

    /// Whether the last word of every record is the event's id.
    pub(crate) fn ends_with_id(&self) -> bool {
        self.ids_everywhere && self.layout & format::IDENTIFIER != 0
    }

    /// Where in a sample the time stands, in bytes; `None`: nowhere.
    pub(crate) fn sample_time_place(&self) -> Option<usize> {
        use format::{IDENTIFIER, IP, TID, TIME};
        let before = (self.layout & (IDENTIFIER | IP | TID)).count_ones() as usize * 8;
        (self.layout & TIME != 0).then_some(before)
    }

    /// How many bytes before the end of other records the time stands; `None`: nowhere.
    pub(crate) fn time_from_end(&self) -> Option<usize> {
        use format::{CPU, ID, IDENTIFIER, STREAM_ID, TIME};
        let after = (self.layout & (ID | STREAM_ID | CPU | IDENTIFIER)).count_ones() as usize;
        (self.ids_everywhere && self.layout & TIME != 0).then_some((after + 1) * 8)
    }

    /// The thread and the time of a record whose body is nothing but what every record ends with.
    pub(crate) fn thread_and_time(&self, mut body: Bytes<'_>) -> Option<(u32, u32, u64)> {
        let time = body.u64_from_end(self.time_from_end()?)?;
        if self.layout & format::TID == 0 {
            return None;
        }
        Some((body.u32()?, body.u32()?, time))
    }

    /// Reads the body of a sample of this event; `None` when it is cut short or stands for more than can be.
    pub(crate) fn sample<'a>(&self, mut body: Bytes<'a>) -> Option<RawSample<'a>> {
        let has = |bit: u64| self.layout & bit != 0;
        let mut sample = RawSample {
            period: self.period,
            ..RawSample::default()
        };
        if has(format::IDENTIFIER) {
            body.u64()?;
        }
        if has(format::IP) {
            sample.ip = body.u64()?;
        }
        if has(format::TID) {
            (sample.pid, sample.tid) = (body.u32()?, body.u32()?);
        }
        if has(format::TIME) {
            sample.time = body.u64()?;
        }
        let words = format::ADDR | format::ID | format::STREAM_ID | format::CPU;
        body.skip(u64::from((self.layout & words).count_ones()) * 8)?;
        if has(format::PERIOD) {
            sample.period = body.u64()?;
        }
        if has(format::READ) {
            self.skip_counters(&mut body)?;
        }
        if has(format::CALLCHAIN) {
            let count = usize::try_from(body.u64()?).ok()?;
            sample.chain = Some(body.take(count.checked_mul(8)?)?);
        }
        (sample.period <= MOST_PERIOD).then_some(sample)
    }

    fn skip_counters(&self, body: &mut Bytes<'_>) -> Option<()> {
        let has = |bits: u64| u64::from((self.read_layout & bits).count_ones());
        let times = has(counter::TIME_ENABLED | counter::TIME_RUNNING);
        let each = 1 + has(counter::ID | counter::LOST);
        let words = match self.read_layout & counter::GROUP {
            0 => times + each,
            _ => body.u64()?.checked_mul(each)?.checked_add(times)?,
        };
        body.skip(words.checked_mul(8)?)
    }
}

/// What perf calls an event that has no name in the file.
fn known_name(kind: u32, config: u64) -> String {
    const HARDWARE: [&str; 10] = [
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ];
    const SOFTWARE_NAMES: [&str; 12] = [
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "dummy",
        "bpf-output",
        "cgroup-switches",
    ];
    let names: &[&str] = match kind {
        0 => &HARDWARE,
        SOFTWARE => &SOFTWARE_NAMES,
        _ => &[],
    };
    let place = usize::try_from(config).unwrap_or(usize::MAX);
    names.get(place).map_or_else(
        || format!("event {kind}:{config:#x}"),
        |name| (*name).into(),
    )
}
