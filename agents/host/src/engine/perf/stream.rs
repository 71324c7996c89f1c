//! The beginning of what perf writes to a pipe: which events it opened, and from where on it records.

const MAGIC: &[u8; 8] = b"PERFILE2";
const HEADER: usize = 16;
/// The type of a record that describes an event.
const ATTR: u32 = 64;
/// The type of one that is followed by as many bytes as it says.
const TRACING_DATA: u32 = 66;
/// Types that come once perf records: samples, the end of a round over the processors, the end of all that is told
/// beforehand (which perf before 6.0 does not tell).
const RECORDING: [u32; 3] = [SAMPLE, 68, BEGUN];
const SAMPLE: u32 = 9;
const BEGUN: u32 = 82;
const RECORD: usize = 8;
const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;

/// An event as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    pub kind: u32,
    pub config: u64,
}

impl Opened {
    pub fn is_cpu_clock(&self) -> bool {
        (self.kind, self.config) == (SOFTWARE, CPU_CLOCK)
    }
}

/// The events that are described; none where this is not a recording.
pub fn events(bytes: &[u8]) -> Vec<Opened> {
    let mut events = Vec::new();
    if !bytes.starts_with(MAGIC) {
        return events;
    }
    let mut rest = bytes.get(HEADER..).unwrap_or_default();
    while let Some((kind, body)) = record(&mut rest) {
        if kind == ATTR {
            events.extend(opened(body));
        }
    }
    events
}

/// Whether it is told from when on the events count.
pub fn tells_that_events_count(bytes: &[u8]) -> bool {
    let mut progress = Progress::new();
    progress.follow(bytes);
    progress.told
}

/// The type and the content of the next record.
fn record<'a>(rest: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let kind = u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?);
    let size = usize::from(u16::from_ne_bytes(rest.get(6..8)?.try_into().ok()?));
    let body = rest.get(8..size)?;
    *rest = &rest[size..];
    Some((kind, body))
}

fn opened(body: &[u8]) -> Option<Opened> {
    Some(Opened {
        kind: u32::from_ne_bytes(body.get(..4)?.try_into().ok()?),
        config: u64::from_ne_bytes(body.get(8..16)?.try_into().ok()?),
    })
}

/// Follows a stream as it comes: whether perf records by now, and how many samples there were.
pub struct Progress {
    /// Bytes to pass over.
    left: u64,
    /// The beginning of a record, as far as it has come.
    head: Vec<u8>,
    begun: bool,
    /// That was told by a record of its own.
    told: bool,
    /// What came made no sense, and is not followed any more.
    lost: bool,
    samples: u64,
}

impl Progress {
    pub fn new() -> Self {
        Self {
            left: HEADER as u64,
            head: Vec::new(),
            begun: false,
            told: false,
            lost: false,
            samples: 0,
        }
    }

    /// Whether perf records by the end of these bytes.
    pub fn follow(&mut self, mut bytes: &[u8]) -> bool {
        while !self.lost && !bytes.is_empty() {
            let wanted = match self.left {
                0 => self.needed() - self.head.len(),
                left => usize::try_from(left).unwrap_or(usize::MAX),
            };
            let (now, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            match self.left {
                0 => self.head.extend(now),
                _ => self.left -= now.len() as u64,
            }
            if self.head.len() == self.needed() {
                self.pass_over();
            }
        }
        self.begun
    }

    pub fn samples(&self) -> u64 {
        self.samples
    }

    fn word(&self, at: usize) -> u32 {
        let word = self.head.get(at..at + 4).unwrap_or(&[0; 4]);
        u32::from_ne_bytes(word.try_into().unwrap_or_default())
    }

    fn needed(&self) -> usize {
        match self.head.len() >= RECORD && self.word(0) == TRACING_DATA {
            true => RECORD + 4,
            false => RECORD,
        }
    }

    /// The record's head is there: the rest of it does not matter.
    fn pass_over(&mut self) {
        let size = u64::from(u16::from_ne_bytes([self.head[6], self.head[7]]));
        let behind = if self.head.len() > RECORD {
            self.word(RECORD)
        } else {
            0
        };
        self.lost = size < self.head.len() as u64;
        self.begun |= self.lost || RECORDING.contains(&self.word(0));
        self.told |= !self.lost && self.word(0) == BEGUN;
        self.samples += u64::from(self.word(0) == SAMPLE);
        self.left = size.saturating_sub(self.head.len() as u64) + u64::from(behind);
        self.head.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(kind: u32, config: u64) -> Vec<u8> {
        let mut record = ATTR.to_ne_bytes().to_vec();
        record.extend(0u16.to_ne_bytes());
        record.extend(24u16.to_ne_bytes());
        record.extend(kind.to_ne_bytes());
        record.extend(0u32.to_ne_bytes());
        record.extend(config.to_ne_bytes());
        record
    }

    #[test]
    fn events_of_a_stream() {
        let mut bytes = [&MAGIC[..], &16u64.to_ne_bytes()].concat();
        assert_eq!(events(&bytes), []);
        bytes.extend(attr(1, 0));
        bytes.extend(attr(0, 3));
        let want = [Opened { kind: 1, config: 0 }, Opened { kind: 0, config: 3 }];
        assert_eq!(events(&bytes), want);
        assert!(want[0].is_cpu_clock() && !want[1].is_cpu_clock());
        for end in 0..bytes.len() {
            assert!(events(&bytes[..end]).len() < 2);
        }
        // A record without a size would go on for ever.
        bytes[16 + 6..16 + 8].fill(0);
        assert_eq!(events(&bytes), []);
        assert_eq!(events(b"no recording at all"), []);
    }

    #[test]
    fn where_perf_records() {
        let record = |kind: u32, body: &[u8]| {
            let size = ((RECORD + body.len()) as u16).to_ne_bytes();
            [&kind.to_ne_bytes()[..], &[0; 2], &size, body].concat()
        };
        let before = [
            vec![7; HEADER],
            record(ATTR, &[9; 40]),
            record(TRACING_DATA, &4u32.to_ne_bytes()),
            vec![9; 4],
        ];
        let before = before.concat();
        for kind in RECORDING {
            let whole = [before.clone(), record(kind, &[0; 8])].concat();
            for step in [1, 3, whole.len()] {
                let mut progress = Progress::new();
                let begun: Vec<bool> = whole
                    .chunks(step)
                    .map(|part| progress.follow(part))
                    .collect();
                let chunks_before = (before.len() + RECORD).div_ceil(step) - 1;
                assert!(
                    begun[..chunks_before].iter().all(|begun| !begun),
                    "{kind} {step}"
                );
                assert!(begun[chunks_before]);
            }
        }
        assert!(Progress::new().follow(&[0; 64]));
    }

    #[test]
    fn samples_are_counted() {
        let record = |kind: u32, size: u16| {
            let head = [&kind.to_ne_bytes()[..], &[0; 2], &size.to_ne_bytes()].concat();
            [head, vec![9; usize::from(size) - RECORD]].concat()
        };
        let records = [
            vec![7; HEADER],
            record(ATTR, 48),
            record(SAMPLE, 40),
            record(2, 64),
            record(SAMPLE, 8),
            record(SAMPLE, 4000),
        ];
        for step in [1, 7, 8192] {
            let mut progress = Progress::new();
            for part in records.concat().chunks(step) {
                progress.follow(part);
            }
            assert_eq!(progress.samples(), 3);
        }
    }
}
