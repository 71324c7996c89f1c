//! What the streaming reader holds of a stream that never repeats itself. A test of its own program: others would
//! take memory beside it.

mod perf_maker;

use flamegraph::perf_data::{Counted, Finish, JitMaps, Live, LiveLimits, Wanted};
use flamegraph::SymbolOptions;
use perf_maker::{halves, record, text, words};

const USER: u64 = -512i64 as u64;

/// A software event of IP, TID, TIME, CALLCHAIN, PERIOD, IDENTIFIER, and its id.
fn event(config: u64, id: u64) -> Vec<u8> {
    let mut bytes = [halves(&[1, 128]), words(&[config, 1, 0x10127, 0, 1 << 18])].concat();
    bytes.resize(128, 0);
    record(64, 0, &[bytes, words(&[id])].concat())
}

#[derive(Clone, Copy)]
struct Thread {
    pid: u32,
    tid: u32,
}

impl Thread {
    fn trailer(self, time: u64) -> Vec<u8> {
        [halves(&[self.pid, self.tid]), words(&[time, 1])].concat()
    }

    fn comm(self, name: &str) -> Vec<u8> {
        let ids = halves(&[self.pid, self.tid]);
        record(3, 0, &[ids, text(name), self.trailer(1)].concat())
    }

    fn mmap(self, start: u64, size: u64, name: &str) -> Vec<u8> {
        let ids = halves(&[self.pid, self.tid]);
        let place = words(&[start, size, 0]);
        record(1, 2, &[ids, place, text(name), self.trailer(2)].concat())
    }

    fn sample(self, id: u64, time: u64, period: u64, chain: &[u64]) -> Vec<u8> {
        let body = [
            words(&[id, chain.last().copied().unwrap_or(0)]),
            halves(&[self.pid, self.tid]),
            words(&[time, period, chain.len() as u64]),
            words(chain),
        ];
        record(9, 2, &body.concat())
    }

    fn leaves(self, time: u64, preempted: bool) -> Vec<u8> {
        let misc = 1 << 13 | u16::from(preempted) << 14;
        record(14, misc, &self.trailer(time))
    }
}

fn wanted() -> Vec<Wanted> {
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

/// An endless stream of ever new stacks, threads, mappings and names: made as it is read.
struct Flood {
    number: u64,
    most: u64,
    rest: Vec<u8>,
}

impl std::io::Read for Flood {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.is_empty() && self.number < self.most {
            self.number += 1;
            let (n, tid) = (self.number, self.number as u32);
            let thread = Thread {
                pid: tid % 50_000,
                tid,
            };
            let chain: Vec<u64> = [USER]
                .into_iter()
                .chain((0..20).map(|k| n * 64 + k))
                .collect();
            self.rest = [
                thread.comm(&format!("name{n:x}z")),
                thread.mmap(n * 0x1000, 0x1000, &format!("/lib/{n}")),
                thread.sample(1, n * 1000, 1, &chain),
                thread.sample(2, n * 1000 + 1, 1, &chain),
                thread.leaves(n * 1000 + 2, false),
            ]
            .concat();
        }
        let count = buffer.len().min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// After the limits are reached four times as much of the stream takes no more memory.
#[test]
fn a_flood_is_held_to_the_limits() {
    let limits = LiveLimits {
        nodes: 20_000,
        places: 10_000,
        threads: 1_000,
        mappings: 1_000,
        waiting_bytes: 1 << 20,
        cells: 1 << 20,
        seconds: 100,
    };
    let flood = |most| {
        let mut live = Live::new(wanted(), limits);
        let begin = [b"PERFILE2".to_vec(), words(&[16]), event(0, 1), event(3, 2)].concat();
        let rest = Flood {
            number: 0,
            most,
            rest: begin,
        };
        live.read(rest).unwrap();
        let held = resident_kib();
        let recorded = live.finish(&Finish {
            pid: None,
            symbols: &SymbolOptions::none(),
            jit: &JitMaps::new(),
            cpu_nanoseconds: None,
        });
        let recorded = recorded.unwrap();
        assert!(recorded.left_out >= most, "{} of {most}", recorded.left_out);
        assert!(recorded.events[0].taken > 400);
        held
    };
    let (some, many) = (flood(10_000), flood(40_000));
    assert!(many < some + 16_000, "{some} KiB, then {many} KiB");
}
