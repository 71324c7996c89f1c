//! The samples one by one, for those who want to see each.

use std::io::{Read, Seek};

use super::samples::Samples;
use crate::profile::Result;
use crate::symbols::SymbolOptions;

/// One sample, as `perf script` would print it.
#[derive(Debug)]
pub struct SampleView<'a> {
    /// The name of the event.
    pub event: &'a str,
    /// The name of the thread.
    pub comm: &'a str,
    /// Process and thread.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Nanoseconds of the recording's clock.
    pub time: u64,
    /// The stack, leaf first.
    pub frames: &'a [SampleFrame],
}

/// One frame of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleFrame {
    /// The place in the module; the address itself where nothing is mapped.
    pub address: u64,
    /// The name of the symbol, if there is one.
    pub symbol: Option<String>,
    /// Where the code lies: a path, `[kernel.kallsyms]`, `[unknown]` ...
    pub module: String,
}

/// Calls `visit` with each sample of a perf.data file, in the order of their times.
pub fn for_each_sample(
    input: impl Read + Seek,
    options: &SymbolOptions,
    mut visit: impl FnMut(&SampleView<'_>),
) -> Result<()> {
    let mut samples = Samples::new(input, options)?;
    let mut frames = Vec::new();
    while let Some(sample) = samples.next()? {
        frames.clear();
        for place in 0..samples.pointers.len() {
            let (place, symbol) = samples.resolve(samples.pointers[place], sample.pid);
            frames.push(SampleFrame {
                address: place.address,
                symbol,
                module: samples.modules.name(place.module).to_string(),
            });
        }
        visit(&SampleView {
            event: &samples.events()[sample.event].name,
            comm: &samples.comm(sample.tid),
            pid: sample.pid,
            tid: sample.tid,
            time: sample.time,
            frames: &frames,
        });
    }
    Ok(())
}
