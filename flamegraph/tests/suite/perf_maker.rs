//! Parts of perf recordings: words, records, and the events and threads of a stream.

use flamegraph::perf_data::{Counted, Wanted};

/// Numbers of eight bytes.
pub fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Numbers of four bytes.
pub fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// A record: its type, its flags, and what follows its header.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = 8 + body.len() as u16;
    let header = [
        &kind.to_le_bytes()[..],
        &misc.to_le_bytes(),
        &size.to_le_bytes(),
    ]
    .concat();
    [header, body.to_vec()].concat()
}

/// Text and its NULs, up to a multiple of eight.
pub fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() / 8 + 1) * 8, 0);
    bytes
}

pub const USER: u64 = -512i64 as u64;

/// A software event of IP, TID, TIME, CALLCHAIN, PERIOD, IDENTIFIER, and its id.
pub fn event(config: u64, id: u64) -> Vec<u8> {
    let mut bytes = [halves(&[1, 128]), words(&[config, 1, 0x10127, 0, 1 << 18])].concat();
    bytes.resize(128, 0);
    record(64, 0, &[bytes, words(&[id])].concat())
}

#[derive(Clone, Copy)]
pub struct Thread {
    pub pid: u32,
    pub tid: u32,
}

impl Thread {
    pub fn trailer(self, time: u64) -> Vec<u8> {
        [halves(&[self.pid, self.tid]), words(&[time, 1])].concat()
    }

    pub fn comm(self, name: &str, time: u64) -> Vec<u8> {
        let ids = halves(&[self.pid, self.tid]);
        record(3, 0, &[ids, text(name), self.trailer(time)].concat())
    }

    pub fn mmap(self, start: u64, size: u64, name: &str, time: u64) -> Vec<u8> {
        let ids = halves(&[self.pid, self.tid]);
        let place = words(&[start, size, 0]);
        record(1, 2, &[ids, place, text(name), self.trailer(time)].concat())
    }

    pub fn sample(self, id: u64, time: u64, period: u64, chain: &[u64]) -> Vec<u8> {
        let body = [
            words(&[id, chain.last().copied().unwrap_or(0)]),
            halves(&[self.pid, self.tid]),
            words(&[time, period, chain.len() as u64]),
            words(chain),
        ];
        record(9, 2, &body.concat())
    }

    pub fn leaves(self, time: u64, preempted: bool) -> Vec<u8> {
        let misc = 1 << 13 | u16::from(preempted) << 14;
        record(14, misc, &self.trailer(time))
    }
}

pub fn wanted() -> Vec<Wanted> {
    let wanted = |event: &str, perf: &str, counted| Wanted {
        event: event.to_string(),
        perf: perf.to_string(),
        name: perf.to_string(),
        counted,
    };
    vec![
        wanted("cpu", "cpu-clock", Counted::CpuTime),
        wanted("offcpu", "context-switches", Counted::OffCpu),
        wanted("context-switches", "context-switches", Counted::Count),
    ]
}
