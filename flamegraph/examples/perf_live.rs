//! Folds what `perf record -o -` wrote, read as a stream: `perf_live FILE EVENT COLUMNS [PID]`.
//!
//! Writes the stacks of the last column, annotated, and to standard error what else is known. COLUMNS is `cpu`,
//! `count` or `off-cpu`.

use std::error::Error;
use std::fs::File;

use flamegraph::perf_data::{Counted, Finish, JitMaps, Live, LiveLimits, Wanted};
use flamegraph::SymbolOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, event, counted, rest @ ..] = &arguments[..] else {
        return Err("usage: perf_live FILE EVENT cpu|count|off-cpu [PID]".into());
    };
    let counted = match counted.as_str() {
        "cpu" => Counted::CpuTime,
        "count" => Counted::Count,
        _ => Counted::OffCpu,
    };
    let wanted = Wanted {
        event: event.clone(),
        perf: event.clone(),
        name: event.clone(),
        counted,
    };
    let pid = rest.first().map(|pid| pid.parse()).transpose()?;
    let mut live = Live::new(vec![wanted], LiveLimits::default());
    live.read(File::open(path)?)?;
    let symbols = SymbolOptions::default();
    let finish = Finish {
        pid,
        symbols: &symbols,
        jit: &JitMaps::new(),
        cpu_nanoseconds: None,
    };
    let recorded = live.finish(&finish)?;
    eprintln!(
        "lost {} malformed {} left_out {} preempted {}",
        recorded.lost, recorded.malformed, recorded.left_out, recorded.preempted
    );
    for event in &recorded.events {
        eprintln!(
            "taken {} broken {} {:?}",
            event.taken, event.broken, event.unknown
        );
        let last = event.profile.values().len() - 1;
        event
            .profile
            .write_folded(&mut std::io::stdout().lock(), last, true)?;
    }
    Ok(())
}
