//! Memory that hostile input may take: a program of its own, and one test at a time, as others would take memory too.

#[path = "suite/perf_maker.rs"]
mod perf_maker;
#[path = "suite/pprof_maker.rs"]
mod pprof_maker;

use std::sync::Mutex;

use flamegraph::perf_data::{Finish, JitMaps, Live, LiveLimits};
use flamegraph::{read, Format, ReadOptions, SymbolOptions};
use perf_maker::{event, wanted, words, Thread, USER};
use pprof_maker::{bytes, message, number, sample};

static ALONE: Mutex<()> = Mutex::new(());

/// A number of KiB from the process's status.
fn kibibytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let (_, rest) = status.split_once(name).unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
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
                thread.comm(&format!("name{n:x}z"), 1),
                thread.mmap(n * 0x1000, 0x1000, &format!("/lib/{n}"), 2),
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

/// After the limits are reached four times as much of the stream takes no more memory.
#[test]
fn a_flood_is_held_to_the_limits() {
    let _alone = ALONE.lock();
    let limits = LiveLimits {
        nodes: 20_000,
        places: 10_000,
        threads: 1_000,
        mappings: 1_000,
        waiting_bytes: 1 << 20,
        cells: 1 << 20,
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
        let held = kibibytes("VmRSS:");
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

#[test]
fn mappings_of_one_long_name_take_the_memory_of_one() {
    let _alone = ALONE.lock();
    let name = format!("/x/m.so{}", "n".repeat(65_000));
    let mapping = |id| bytes(3, &[number(1, id), number(5, 4)].concat());
    let location = [number(1, 2), number(2, 9_999), bytes(4, &number(1, 1))].concat();
    let mappings: Vec<Vec<u8>> = (1..10_000).map(mapping).collect();
    let more = [
        bytes(6, name.as_bytes()),
        mappings.concat(),
        bytes(4, &location),
    ];
    let message = message(&[more.concat(), sample(&[2], &[1])]);
    let before = kibibytes("VmHWM:");
    read(&message, &ReadOptions::of(Some(Format::Pprof))).unwrap();
    let more = kibibytes("VmHWM:") - before;
    assert!(more < 200 << 10, "650 MB if each has its own: {more} KiB");
}
