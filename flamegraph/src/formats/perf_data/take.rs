//! Taking in the records of the stream.

use std::collections::hash_map::Entry;
use std::io::Read;
use std::sync::atomic::Ordering;

use super::event::{Event, RawSample};
use super::file::EventValues;
use super::header::Header;
use super::live::{Counted, Live, Wanted};
use super::moments::Sample;
use super::off_cpu::Waited;
use super::processes::Mode;
use super::records::{kind, Record, Records};
use super::stacks::{self, FileSymbols, Generations, LastStack, Root, StackId};
use super::tally::Tally;
use crate::profile::{band_of, Result};
use crate::symbols::bytes::Bytes;

const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_PREEMPTED: u16 = 1 << 14;

impl Live {
    pub(super) fn take_all<R: Read>(&mut self, records: &mut Records<R>) -> Result<()> {
        while records.advance()? {
            let (record, header) = records.current();
            match record.kind {
                kind::SAMPLE => self.take_sample(&record, header),
                kind::SWITCH => {
                    self.take_switch(&record, header);
                }
                kind::LOST if self.is_late(&record, header) => {}
                kind::LOST => add(&mut self.lost_records, words(&record, 1)),
                kind::LOST_SAMPLES => add(&mut self.lost_samples, words(&record, 0)),
                _ => self.processes.take_in(&record, header, &mut self.modules),
            }
        }
        // Events without a sample are known by now: an idle process has an empty profile, not none.
        if self.changes != records.header.changes {
            self.match_events(&records.header);
        }
        Ok(())
    }

    fn take_sample(&mut self, record: &Record<'_>, header: &Header) {
        if self.changes != header.changes {
            self.match_events(header);
        }
        let event = header.events.get(record.event);
        let Some(raw) = event.and_then(|event| event.sample(record.body)) else {
            self.malformed += 1;
            return;
        };
        if raw.time > self.end() {
            return;
        }
        self.newest = self.newest.max(raw.time);
        if self.by_event[record.event].is_empty() {
            return;
        }
        let chain = raw.chain.map(Bytes::new);
        let generations = Generations {
            user: self.processes.generation(raw.pid),
            kernel: self.processes.kernel.generation,
        };
        let mode = Mode::of_misc(record.misc);
        stacks::pointers(chain, raw.ip, mode, generations, &mut self.walker.pointers);
        let copied = event.is_some_and(Event::copies_stacks);
        match self.stack_of(raw.pid, raw.tid, header) {
            Some(stack) => {
                self.copied_stacks += u64::from(copied);
                self.count(record.event, &raw, stack);
            }
            None => self.left_out += 1,
        }
    }

    /// 0 as long as nobody says it.
    fn begin(&self) -> u64 {
        self.begin.load(Ordering::Relaxed)
    }

    /// When the recording began, as far as that is known when something happens.
    pub(super) fn began(&mut self, time: u64) -> u64 {
        let first = *self.first.get_or_insert(time);
        match self.begin() {
            0 => first,
            begin => begin,
        }
    }

    fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// How many were lost. The kernel counts records of all kinds, and newer ones samples once more, without a time:
    /// those may have come after the end.
    pub(super) fn lost(&self) -> u64 {
        match self.end() {
            u64::MAX => self.lost_records.max(self.lost_samples),
            _ => self.lost_records,
        }
    }

    /// Whether a record that is no sample is of a time after the end.
    fn is_late(&self, record: &Record<'_>, header: &Header) -> bool {
        let event = header.events.get(record.event);
        let time = event.and_then(|event| record.body.u64_from_end(event.time_from_end()?));
        time.is_some_and(|time| time > self.end())
    }

    /// Which of the wanted profiles each event is for.
    fn match_events(&mut self, header: &Header) {
        self.changes = header.changes;
        if let Some(script) = &self.script {
            let values = EventValues::of(&header.events, script.perf.event_filter.as_deref());
            self.by_event = values.by_event;
            self.tallies
                .resize_with(values.values.len() / 2, Tally::default);
            return;
        }
        let mut by_event = vec![Vec::new(); header.events.len()];
        for (number, wanted) in self.wanted.iter().enumerate() {
            for event in wanted.among(&header.events) {
                by_event[event].push(number);
            }
        }
        self.by_event = by_event;
        for (event, numbers) in header.events.iter().zip(&self.by_event) {
            for &number in numbers {
                self.tallies[number].source = Some(event.name.clone());
            }
        }
    }

    /// The node of the walker's pointers, below that of the thread's group.
    fn stack_of(&mut self, pid: u32, tid: u32, header: &Header) -> Option<StackId> {
        let comm = self.processes.comm(tid);
        let last = match self.last.entry(tid) {
            Entry::Occupied(last) if last.get().pid == pid && last.get().comm == comm => {
                last.into_mut()
            }
            entry => {
                let group = self.groups.of(&comm, pid, tid)?;
                let of = if self.script.is_some() { 0 } else { pid };
                let root = self.stacks.root(Root { pid: of, group })?;
                let path = Vec::new();
                entry
                    .insert_entry(LastStack {
                        pid,
                        comm,
                        root,
                        path,
                    })
                    .into_mut()
            }
        };
        // A pipe may say what its modules are behind the samples.
        let symbols = (self.script.as_ref()).filter(|_| header.data_bytes.is_some());
        let symbols = symbols.map(|script| FileSymbols {
            modules: &mut self.modules,
            header,
            script,
        });
        let (processes, stacks) = (&self.processes, &mut self.stacks);
        self.walker.node(last, processes, stacks, symbols)
    }

    fn count(&mut self, event: usize, raw: &RawSample<'_>, stack: StackId) {
        let begin = match self.script {
            Some(_) => 0,
            None => self.began(raw.time),
        };
        for place in 0..self.by_event[event].len() {
            let number = self.by_event[event][place];
            match self.wanted.get(number).map(|wanted| wanted.counted) {
                Some(Counted::OffCpu) => self.off_cpu.leaves(raw.tid, raw.time.max(begin), stack),
                _ if raw.time < begin => {}
                _ => {
                    self.tallies[number].add(stack, raw.period);
                    if let Some(moments) = &mut self.moments {
                        moments.add(&Sample {
                            profile: number,
                            stack,
                            tid: raw.tid,
                            time: raw.time,
                            begin,
                            band: 0,
                            amount: raw.period,
                        });
                    }
                }
            }
        }
    }

    /// A thread leaves the CPU, or comes back.
    fn take_switch(&mut self, record: &Record<'_>, header: &Header) -> Option<()> {
        if !self
            .wanted
            .iter()
            .any(|wanted| wanted.counted == Counted::OffCpu)
        {
            return None;
        }
        let event = header.events.get(record.event)?;
        let (pid, tid, time) = event.thread_and_time(record.body)?;
        if time > self.end() {
            return None;
        }
        self.newest = self.newest.max(time);
        let begin = self.begin();
        if record.misc & MISC_SWITCH_OUT == 0 {
            let waited = self.off_cpu.is_back(tid, time)?;
            if time > begin {
                self.add_wait(waited);
            }
            return Some(());
        }
        let time = time.max(begin);
        if !self.off_cpu.is_leaving(tid) {
            // Nobody may see the kernel: of the stack nothing is known.
            self.walker.pointers.clear();
            let stack = self.stack_of(pid, tid, header)?;
            self.off_cpu.leaves(tid, time, stack);
        }
        self.off_cpu
            .left(tid, time, record.misc & MISC_PREEMPTED != 0);
        Some(())
    }

    /// A thread that is off the CPU now has waited until the end.
    pub(super) fn end_waits(&mut self) {
        let end = match self.end() {
            u64::MAX => self.newest,
            end => end,
        };
        for waited in self.off_cpu.end(end) {
            self.add_wait(waited);
        }
    }

    fn add_wait(&mut self, waited: Waited) {
        let begin = self.began(waited.since);
        let tallies = self.wanted.iter().zip(&mut self.tallies);
        for (number, (wanted, tally)) in tallies.enumerate() {
            if wanted.counted != Counted::OffCpu {
                continue;
            }
            tally.add(waited.stack, waited.nanoseconds);
            if let Some(moments) = &mut self.moments {
                moments.add(&Sample {
                    profile: number,
                    stack: waited.stack,
                    tid: waited.tid,
                    time: waited.since,
                    begin,
                    band: band_of(waited.nanoseconds),
                    amount: waited.nanoseconds,
                });
            }
        }
    }
}

impl Wanted {
    /// The numbers of the events meant.
    fn among(&self, events: &[Event]) -> Vec<usize> {
        let those = |meant: &dyn Fn(&Event) -> bool| -> Vec<usize> {
            let all = events.iter().enumerate();
            let those = all.filter(|(_, event)| meant(event));
            those.map(|(number, _)| number).collect()
        };
        match those(&|event| event.name == self.perf) {
            none if none.is_empty() => those(&|event| self.is_like(event)),
            exact => exact,
        }
    }

    /// Whether this may be the event meant, whatever was asked of it behind its name.
    fn is_like(&self, event: &Event) -> bool {
        let plain = event.name.split('/').next();
        event.is_called(&self.name) || plain == Some(&self.name)
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The number after the first `before` numbers of a record.
fn words(record: &Record<'_>, before: u64) -> u64 {
    let mut fields = record.body;
    fields
        .skip(before * 8)
        .and_then(|()| fields.u64())
        .unwrap_or(0)
}
