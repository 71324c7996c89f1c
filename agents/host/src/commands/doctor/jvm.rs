//! Facts about a process that its outcome does not contain.

use crate::engine::api::Job;
use crate::engine::async_profiler::events::feature;
use crate::engine::perf;
use crate::jvm::attach::Attach;
use crate::jvm::hsperf;
use crate::jvm::preflight::{self, last_set, refuse_no_attach, Findings};
use crate::os::identity::Namespaces;
use crate::os::proc::target::Target;
use crate::os::threads::on_thread;
use crate::staging::folders::{bases, is_usual, refuse_staging};
use crate::wire::events::Finding;
use crate::wire::events::Severity::{Info, Ok as Fine, Warning};
use crate::wire::outcome::{Code, Failure, Outcome};

/// Options that make profiling a JVM easier or harder.
const FLAGS: [&str; 7] = [
    "DisableAttachMechanism",
    "EnableDynamicAgentLoading",
    "PreserveFramePointer",
    "DebugNonSafepoints",
    "UsePerfData",
    "PerfDisableSharedMem",
    "StartAttachListener",
];
const FLIGHT_RECORDING: &str = "-XX:StartFlightRecording";
/// The first version that warns of an agent that is loaded at run time.
const WARNS: u32 = 21;
const LITTLE_MEMORY: u64 = 64 << 20;

/// Empty for a process that is not a JVM, or that the agent may not see. `engine` would record it, with this outcome.
pub fn findings(job: &Job, engine: &str, outcome: &Outcome) -> Vec<Finding> {
    let look = || {
        let target = Target::open(job.chosen.pid, job.chosen.start_time)?;
        Ok::<_, Failure>(looked(job, &target, engine, outcome))
    };
    on_thread(job.chosen.pid, "doctor", look).unwrap_or_default()
}

fn looked(job: &Job, target: &Target, engine: &str, outcome: &Outcome) -> Vec<Finding> {
    let seen = preflight::look(target);
    let mut findings = of_process(target, &seen);
    if seen.library.is_none() {
        return findings;
    }
    let Ok(namespaces) = Namespaces::enter(target) else {
        return findings;
    };
    let data = &seen.performance_data;
    let options = seen.options(&namespaces.named);
    let version =
        hsperf::jvm_version(&namespaces.named, seen.library.as_deref(), data).unwrap_or_default();
    findings.insert(0, jvm(&namespaces, &seen, &version, target));
    findings.extend(flags(&options));
    let loads = engine == perf::NAME && !says(outcome, &[Code::NoJavaNames, Code::NoInlining]);
    let recent = feature(&version).is_some_and(|version| version >= WARNS);
    if loads && recent && last_set(&options, "EnableDynamicAgentLoading").is_none() {
        let text = "the JVM will warn on its standard error of the agent that names its code";
        let remedy = "start it with -XX:+EnableDynamicAgentLoading";
        findings.push(Finding::new(Info, "flags", text).remedy(remedy));
    }
    if options.iter().any(|it| it.starts_with(FLIGHT_RECORDING)) {
        let text = format!("the JVM was started with {FLIGHT_RECORDING}: Flight Recorder (JFR) may record in it, and its own work is among the samples");
        findings.push(Finding::new(Info, "profiler", text));
    }
    findings.extend(folders(job, &namespaces));
    let asked = refuse_no_attach(target.pid, &options);
    let asked = asked.and_then(|()| Attach::new(target, &namespaces).foresee());
    findings.extend(asked.err().map(|why| {
        let text = format!(
            "a dump has only the kernel's account of its threads: {}",
            why.reason
        );
        Finding::new(Info, "dump", text).remedy(why.remedy)
    }));
    // Last, because there may be too many to send.
    findings.extend(seen.foreign.iter().map(|path| foreign(path)));
    findings
}

fn of_process(target: &Target, seen: &Findings) -> Vec<Finding> {
    let mut findings = Vec::new();
    if target.status.filtered {
        let text = "its system calls are filtered (seccomp)";
        findings.push(Finding::new(Info, "seccomp", text));
    }
    findings.extend(files(target));
    let free = seen.memory.free();
    if free < LITTLE_MEMORY {
        let text = format!("only {} MiB of memory are left for it", free >> 20);
        let remedy = "raise the memory limit of its container: the profiler needs memory there";
        findings.push(Finding::new(Warning, "memory", text).remedy(remedy));
    }
    findings
}

fn foreign(path: &str) -> Finding {
    let text = format!(
        "another async-profiler ({path}) is loaded: while it records, ours is kept out, and perf loads nothing here"
    );
    Finding::new(Warning, "profiler", text).remedy("stop it (asprof stop)")
}

/// Perf events need one descriptor for each thread.
fn files(target: &Target) -> Option<Finding> {
    let limits = target.read("limits", 64 << 10)?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let most: usize = line.split_ascii_whitespace().next()?.parse().ok()?;
    let open = target.open_files()?.count();
    let threads = target.status.threads as usize;
    (most.saturating_sub(open) < threads).then(|| {
        let text = format!("{open} of {most} files are open, and perf events take one for each of {threads} threads");
        Finding::new(Warning, "files", text).remedy("raise the JVM's limit of open files")
    })
}

fn jvm(namespaces: &Namespaces, seen: &Findings, version: &str, target: &Target) -> Finding {
    let maker = hsperf::maker(&namespaces.named, &seen.performance_data);
    let maker = match maker {
        Some((name, vendor)) => format!("{name} of {vendor}"),
        None => "vendor unknown (it publishes no performance data)".to_owned(),
    };
    let version = match version {
        "" => "JVM",
        version => &format!("JDK {version}"),
    };
    let threads = target.status.threads;
    Finding::new(
        Fine,
        "jvm",
        format!("{version}, {maker}, {threads} threads"),
    )
}

fn says(outcome: &Outcome, codes: &[Code]) -> bool {
    let mut notes = outcome.notes.iter();
    codes.contains(&outcome.code) || notes.any(|note| codes.contains(&note.code))
}

fn flags(options: &[String]) -> Vec<Finding> {
    let set = FLAGS.iter().filter_map(|flag| {
        let sign = if last_set(options, flag)? { '+' } else { '-' };
        Some(format!("-XX:{sign}{flag}"))
    });
    let set: Vec<String> = set.collect();
    let mut findings = Vec::new();
    if !set.is_empty() {
        findings.push(Finding::new(
            Info,
            "flags",
            format!("started with {}", set.join(" ")),
        ));
    }
    if last_set(options, "DebugNonSafepoints") != Some(true) {
        let text = "methods that were compiled and inlined before a profiler was loaded are visible at safepoints only";
        let remedy = "start the JVM with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints";
        findings.push(Finding::new(Info, "flags", text).remedy(remedy));
    }
    findings
}

/// The folders from which the JVM's user cannot load a library.
fn folders(job: &Job, namespaces: &Namespaces) -> Option<Finding> {
    job.shared.libraries.async_profiler.as_ref()?;
    let usual = bases(namespaces).into_iter().filter(|base| is_usual(base));
    let closed = usual.filter_map(|base| refuse_staging(namespaces, &base).err());
    let closed: Vec<String> = closed.collect();
    (!closed.is_empty()).then(|| {
        let text = format!("no library is loaded from: {}", closed.join("; "));
        Finding::new(Info, "folder", text)
    })
}
