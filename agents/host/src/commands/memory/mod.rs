//! Where the memory of processes is. The kernel is asked once for all mappings of a process; a JVM for where its heap
//! is, and for what it limits. Nothing is loaded into it, and nothing stops it but a histogram.

mod jvm;
mod parts;
mod smaps;

use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::param::page_size;

use self::jvm::Said;
use self::parts::Known;
use crate::jvm::preflight;
use crate::jvm::young;
use crate::metrics::cgroup;
use crate::os::audit;
use crate::os::proc::target::Target;
use crate::os::threads::{hangs, on_thread, unbroken};
use crate::os::worker_pool::{self, NoResult};
use crate::wire::memory::{Measured, Memory, ProcessMemory};
use crate::wire::outcome::{Code, Failure, Outcome, Stage, Status};
use crate::wire::requests::{refuse_too_many, Watched};

/// While the kernel reads a process's mappings, the process can map nothing.
const AT_ONCE: usize = 4;
const ALL: Duration = Duration::from_secs(20);
const ALL_WITH_HISTOGRAM: Duration = Duration::from_secs(120);
const LONGEST_LIMITS: u64 = 16 << 10;

/// How long `measure` takes at most.
pub fn limit(histogram: bool) -> Duration {
    if histogram {
        ALL_WITH_HISTOGRAM
    } else {
        ALL
    }
}

/// Read all of the processes. With `histogram`, JVMs count their objects, one after the other: each stands still for it.
pub fn measure(processes: Vec<Watched>, histogram: bool) -> Result<Measured, Failure> {
    refuse_too_many(processes.len())?;
    let pids: Vec<i32> = processes.iter().map(|one| one.pid).collect();
    let at_once = if histogram { 1 } else { AT_ONCE };
    let time = audit::now();
    let look = move |one: Watched| {
        let looked = unbroken(|| look(&one, histogram)).and_then(|looked| looked);
        looked.unwrap_or_else(|failure| unknown(one.pid, failure))
    };
    let measured = worker_pool::run_all(processes, at_once, limit(histogram), look);
    let results = pids.into_iter().zip(measured);
    let processes = results.map(|(pid, result)| match result {
        Ok(process) => process,
        Err(NoResult::Stuck) => unknown(pid, hangs(pid)),
        Err(why) => unknown(
            pid,
            Failure::plain(why.to_string()).coded(Code::TooManyThreads),
        ),
    });
    Ok(Measured {
        time,
        processes: processes.collect(),
    })
}

fn unknown(pid: i32, failure: Failure) -> ProcessMemory {
    ProcessMemory {
        outcome: failure.at(pid, Stage::Measure),
        memory: None,
    }
}

fn look(one: &Watched, histogram: bool) -> Result<ProcessMemory, Failure> {
    let target = Target::open(one.pid, one.start_time)?;
    young::await_start(&target);
    let findings = preflight::look(&target);
    let said = findings.library.as_ref().map(|_| {
        let asked = on_thread(one.pid, "memory", || {
            jvm::ask(&target, &findings, histogram)
        });
        asked.unwrap_or_else(|failure| Said {
            failure: Some(failure),
            ..Said::default()
        })
    });
    let memory = read(&target, said.as_ref())?;
    let (jvm, failure) = said.map_or((None, None), |said| (Some(said.memory), said.failure));
    Ok(ProcessMemory {
        outcome: outcome(one.pid, failure),
        memory: Some(Memory { jvm, ..memory }),
    })
}

fn outcome(pid: i32, failure: Option<Failure>) -> Outcome {
    let status = if failure.is_some() {
        Status::Degraded
    } else {
        Status::Ok
    };
    let why = failure.unwrap_or_else(|| Failure::plain("").coded(Code::Measured));
    Outcome {
        status,
        ..why.at(pid, Stage::Measure)
    }
}

fn read(target: &Target, said: Option<&Said>) -> Result<Memory, Failure> {
    let began = Instant::now();
    let smaps = target.open_link("smaps", OFlags::RDONLY).ok();
    let pieces = smaps.and_then(|smaps| smaps::pieces(std::fs::File::from(smaps)));
    let seconds = began.elapsed().as_secs_f64();
    let pieces = pieces.ok_or_else(|| unreadable(target))?;
    let stat = target.stat().ok_or_else(|| unreadable(target))?;
    let flag = |name: &str| said.and_then(|said| said.memory.flags.get(name)).copied();
    let known = Known {
        is_jvm: said.is_some(),
        heap: said.and_then(|said| said.heap.clone()),
        metaspace: said.map_or(0, |said| said.metaspace),
        stack_sizes: [
            flag("ThreadStackSize").unwrap_or(0).saturating_mul(1024),
            stack_limit(target).unwrap_or(0),
        ],
        page: page_size() as u64,
    };
    Ok(Memory {
        seconds,
        parts: parts::parts(&pieces, &known),
        proportional: pieces.iter().map(|piece| piece.proportional).sum(),
        mappings: pieces.len(),
        arenas: parts::arenas(&pieces),
        threads: stat.threads,
        files: parts::files(&pieces),
        jvm: None,
        group: cgroup::memory(target),
    })
}

fn unreadable(target: &Target) -> Failure {
    let pid = target.pid;
    match target.stat() {
        None => Failure::plain(format!("process {pid} has ended")).coded(Code::ProcessEnded),
        Some(_) => Failure::new(
            format!("the agent may not read the memory map of process {pid} (/proc/{pid}/smaps)"),
            "connect as the process's user, or use --become sudo",
        )
        .coded(Code::NotPermitted),
    }
}

/// The size of stacks of threads that do not ask for one.
fn stack_limit(target: &Target) -> Option<u64> {
    let limits = target.read("limits", LONGEST_LIMITS)?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max stack size"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
