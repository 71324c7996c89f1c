//! Prints the samples of a perf.data file as
//! `perf script --no-inline -F comm,pid,tid,time,event,ip,sym,dso` does, but for spaces.

use std::fs::File;
use std::io::{BufReader, Write};

use flamegraph::perf_data::{for_each_sample, SampleView};
use flamegraph::SymbolOptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("usage: perf_samples PERF_DATA")?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut written = Ok(());
    let input = BufReader::new(File::open(path)?);
    for_each_sample(input, &SymbolOptions::default(), |sample| {
        if written.is_ok() {
            written = print(&mut out, sample);
        }
    })?;
    written?;
    Ok(out.flush()?)
}

fn print(out: &mut impl Write, sample: &SampleView<'_>) -> std::io::Result<()> {
    let SampleView { comm, event, .. } = sample;
    let (pid, tid) = (sample.pid as i32, sample.tid as i32);
    let micros = sample.time / 1000;
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    writeln!(out, "{comm} {pid}/{tid} {seconds}.{micros:06}: {event}:")?;
    for frame in sample.frames {
        let symbol = frame.symbol.as_deref().unwrap_or("[unknown]");
        writeln!(out, "\t{:x} {symbol} ({})", frame.address, frame.module)?;
    }
    writeln!(out)
}
