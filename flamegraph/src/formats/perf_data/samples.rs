//! The samples of a file, one after the other, with the state of the machine they were taken in.

use std::io::{Read, Seek};
use std::sync::Arc;

use super::event::Event;
use super::header::broken;
use super::modules::{Modules, SymbolId, NOWHERE};
use super::processes::{Bounds, Mode, Processes};
use super::records::{kind, Records};
use super::resolve::{self, Generations, Place, Pointer};
use crate::profile::{Error, Result};
use crate::symbols::Files;
use crate::symbols::SymbolOptions;

/// Most modules of one recording.
const MOST_MODULES: usize = 1 << 20;

/// One sample, not yet resolved.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// An index into the header's events.
    pub(crate) event: usize,
    pub(crate) period: u64,
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// Reads records up to the next sample, and keeps track of what the others say.
pub(crate) struct Samples<'a, R> {
    records: Records<R>,
    pub(crate) processes: Processes,
    pub(crate) modules: Modules,
    files: Files<'a>,
    /// The sample's stack, leaf first.
    pub(crate) pointers: Vec<Pointer>,
    /// Samples that are damaged, and records cut off at the end.
    pub(crate) malformed: u64,
}

impl<'a, R: Read + Seek> Samples<'a, R> {
    pub(crate) fn new(input: R, options: &'a SymbolOptions) -> Result<Samples<'a, R>> {
        Ok(Samples {
            records: Records::new(input)?,
            processes: Processes::new(Bounds::default()),
            modules: Modules::new(MOST_MODULES),
            files: Files::new(options),
            pointers: Vec::new(),
            malformed: 0,
        })
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.records.header.events
    }

    /// The next sample; its stack is in `pointers`.
    pub(crate) fn next(&mut self) -> Result<Option<Sample>> {
        while self.records.advance()? {
            let (record, header) = self.records.current();
            if record.kind != kind::SAMPLE {
                self.processes.take_in(&record, header, &mut self.modules);
                continue;
            }
            let event = header.events.get(record.event);
            let Some(raw) = event.and_then(|event| event.sample(record.body)) else {
                self.malformed += 1;
                continue;
            };
            let generations = Generations {
                user: self.processes.generation(raw.pid),
                kernel: self.processes.kernel.generation,
            };
            let chain = raw.chain.map(|chain| header.bytes(chain));
            let mode = Mode::of_misc(record.misc);
            resolve::pointers(chain, raw.ip, mode, generations, &mut self.pointers);
            return Ok(Some(Sample {
                event: record.event,
                period: raw.period,
                time: raw.time,
                pid: raw.pid,
                tid: raw.tid,
            }));
        }
        self.malformed += std::mem::take(&mut self.records.cut_short);
        Ok(None)
    }

    /// The error of a recording that is damaged, or more than can be held, somewhere before where it is read.
    pub(crate) fn broken(&self, error: &Error) -> Error {
        broken(self.records.offset(), &format!("read so far: {error}"))
    }

    /// Mappings that were left out because there were too many.
    pub(crate) fn left_out(&self) -> u64 {
        self.processes.left_out + self.modules.left_out
    }

    pub(crate) fn comm(&self, tid: u32) -> Arc<str> {
        self.processes.comm(tid)
    }

    /// The place of a pointer of this process, and the symbol there.
    pub(crate) fn find(&mut self, pointer: Pointer, pid: u32) -> (Place, Option<SymbolId>) {
        let header = &self.records.header;
        let mut place = resolve::place(pointer, pid, &self.processes);
        let mut symbol = self
            .modules
            .find(place.module, place.address, header, &self.files);
        if pointer.mode == Mode::Kernel && place.module == NOWHERE {
            // What the kernel frees after its start is not in the record of its mapping.
            symbol = self.modules.find_kernel(place.address, header, &self.files);
            if symbol.is_some() {
                place.module = self.modules.kernel;
            }
        }
        (place, symbol)
    }

    /// The place of a pointer of this process, and the name of the symbol there.
    pub(crate) fn resolve(&mut self, pointer: Pointer, pid: u32) -> (Place, Option<String>) {
        let (place, symbol) = self.find(pointer, pid);
        let name = |symbol| self.modules.symbol_name(place.module, symbol);
        (place, symbol.map(name))
    }
}
