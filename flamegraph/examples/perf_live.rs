//! Folds what `perf record -o -` wrote, read as a stream: `perf_live FILE EVENT COLUMNS [PID [MAP]]`.
//!
//! Writes the stacks of the last column, annotated, and to standard error what else is known. COLUMNS is `cpu`,
//! `count` or `off-cpu`; MAP is a map of the process's code, binary or text.

use std::error::Error;
use std::fs::File;
use std::io::Read;

use flamegraph::perf_data::{Counted, Finish, JitMap, JitMaps, Live, LiveLimits, Wanted};
use flamegraph::SymbolOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, event, counted, rest @ ..] = &arguments[..] else {
        return Err("usage: perf_live FILE EVENT cpu|count|off-cpu [PID [MAP]]".into());
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
    let mut jit = JitMaps::new();
    if let (Some(pid), Some(map)) = (pid, rest.get(1)) {
        jit.insert(pid, jit_map(map)?);
    }
    let mut live = Live::new(vec![wanted], LiveLimits::default());
    live.read(File::open(path)?)?;
    let symbols = SymbolOptions::default();
    let finish = Finish {
        pid,
        symbols: &symbols,
        jit: &jit,
        cpu_nanoseconds: None,
    };
    let recorded = live.finish(&finish)?;
    eprintln!(
        "lost {} malformed {} left_out {} preempted {}",
        recorded.lost, recorded.malformed, recorded.left_out, recorded.preempted
    );
    for event in &recorded.events {
        eprintln!(
            "taken {} broken {} timeline {:?} {:?}",
            event.taken, event.broken, event.timeline, event.unknown
        );
        let last = event.profile.values().len() - 1;
        event
            .profile
            .write_folded(&mut std::io::stdout().lock(), last, true)?;
    }
    Ok(())
}

fn jit_map(path: &str) -> Result<JitMap, Box<dyn Error>> {
    let mut magic = [0; 8];
    let is_binary = File::open(path)?.read(&mut magic)? == 8 && &magic == b"HPROFMAP";
    let file = File::open(path)?;
    Ok(match is_binary {
        true => JitMap::binary(file)?,
        false => JitMap::text(file)?,
    })
}
