//! Streams of perf: what is asked of them, events, and the records of a thread.

use flamegraph::perf_data::{Counted, Wanted};

use crate::perf_maker::{halves, record, text, words};

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

    pub fn comm(self, name: &str) -> Vec<u8> {
        let ids = halves(&[self.pid, self.tid]);
        record(3, 0, &[ids, text(name), self.trailer(1)].concat())
    }

    pub fn mmap(self, start: u64, size: u64, name: &str) -> Vec<u8> {
        let ids = halves(&[self.pid, self.tid]);
        let place = words(&[start, size, 0]);
        record(1, 2, &[ids, place, text(name), self.trailer(2)].concat())
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
