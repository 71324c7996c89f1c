//! What is worth knowing of a process beside what its line of the ledger would say.

use super::Finding;
use super::Severity::{Info, Ok as Fine, Warning};
use crate::engine::async_profiler::able::{feature, refuse_known_bad};
use crate::engine::perf;
use crate::foothold::{bases, could_stage, is_usual, ASYNC_PROFILER};
use crate::hsperf;
use crate::identity::Shoes;
use crate::outcome::Failure;
use crate::preflight::{self, last_set, Findings};
use crate::proc::scan::jvm_version;
use crate::proc::target::Target;
use crate::recording::Job;
use crate::threads::on_thread;

/// Options by which JVMs are more or less easily profiled.
const FLAGS: [&str; 6] = [
    "DisableAttachMechanism",
    "EnableDynamicAgentLoading",
    "PreserveFramePointer",
    "DebugNonSafepoints",
    "UsePerfData",
    "StartAttachListener",
];
/// The first version that warns of agents that are loaded while it runs.
const WARNS: u32 = 21;
const LITTLE_MEMORY: u64 = 64 << 20;

/// Of what is no JVM, and of what is not ours to see, there is nothing to say. `engine` is what would record it.
pub fn findings(job: &Job, engine: &str) -> Vec<Finding> {
    let look = || {
        let target = Target::open(job.chosen.pid, job.chosen.start_time)?;
        Ok::<_, Failure>(looked(job, &target, engine))
    };
    on_thread(job.chosen.pid, "doctor", look).unwrap_or_default()
}

fn looked(job: &Job, target: &Target, engine: &str) -> Vec<Finding> {
    let seen = preflight::look(target);
    let mut findings = of_process(target, &seen);
    if seen.library.is_none() {
        return findings;
    }
    let Ok(shoes) = Shoes::put_on(target) else {
        return findings;
    };
    let data = &seen.performance_data;
    let mut options = seen.launched.options(&shoes.named);
    options.extend(hsperf::options(&shoes.named, data));
    let version = jvm_version(&shoes.named, seen.library.as_deref(), data).unwrap_or_default();
    findings.insert(0, jvm(&shoes, &seen, &version, target));
    findings.extend(release(job, &version));
    findings.extend(flags(&options));
    findings.extend(warned(&options, &version, engine));
    findings.extend(folders(job, &shoes));
    // Last, because there may be too many to be told.
    let theirs = seen.foreign(&shoes.named);
    findings.extend(theirs.iter().map(|path| foreign(path)));
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
        let text = format!("only {} MiB of memory are left to it", free >> 20);
        let remedy =
            "raise the limit of its container: what is loaded and recorded takes memory there";
        findings.push(Finding::new(Warning, "memory", text).remedy(remedy));
    }
    findings
}

fn foreign(path: &str) -> Finding {
    let text = format!(
        "another async-profiler ({path}) is loaded: while it records, ours is kept out, and perf loads nothing here"
    );
    Finding::new(Warning, "profiler", text).remedy("see that it is stopped (asprof stop)")
}

/// Perf events take one file of each thread.
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

fn jvm(shoes: &Shoes, seen: &Findings, version: &str, target: &Target) -> Finding {
    let maker = hsperf::maker(&shoes.named, &seen.performance_data);
    let maker = maker.map_or(String::new(), |(name, vendor)| {
        format!(", {name} of {vendor}")
    });
    let version = match version {
        "" => "JVM",
        version => &format!("JDK {version}"),
    };
    let threads = target.status.threads;
    Finding::new(Fine, "jvm", format!("{version}{maker}, {threads} threads"))
}

/// What is known of the release that would be loaded, and of this version of the JVM.
fn release(job: &Job, version: &str) -> Option<Finding> {
    let library = job.libraries.async_profiler.as_ref()?;
    let about = |severity, text| Some(Finding::new(severity, "profiler", text));
    let Some(release) = library.version.as_deref() else {
        let text = "which release the async-profiler is that would be loaded is not known: one that crashes this JVM would not be noticed";
        let remedy = "leave --async-profiler out, or name a library that says its release";
        return Some(Finding::new(Info, "profiler", text).remedy(remedy));
    };
    if version.is_empty() {
        let text = format!("async-profiler {release}, and a JVM whose version is not known");
        return about(Info, text);
    }
    match refuse_known_bad(Some(release), Some(version)) {
        Ok(()) => about(
            Fine,
            format!("async-profiler {release} is not known to crash JDK {version}"),
        ),
        Err(why) => Some(Finding::new(Warning, "profiler", why.reason).remedy(why.remedy)),
    }
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
        let text = "methods that were compiled and inlined before a profiler was loaded are told at safepoints only";
        let remedy = "start the JVM with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints";
        findings.push(Finding::new(Info, "flags", text).remedy(remedy));
    }
    findings
}

/// perf has the JVM load an agent that names its code, and recent ones say so.
fn warned(options: &[String], version: &str, engine: &str) -> Option<Finding> {
    let warns = feature(version).is_some_and(|version| version >= WARNS);
    let told = last_set(options, "EnableDynamicAgentLoading").is_some();
    (engine == perf::NAME && warns && !told).then(|| {
        let text = "the JVM will warn on its standard error of the agent that names its code";
        Finding::new(Info, "flags", text).remedy("start it with -XX:+EnableDynamicAgentLoading")
    })
}

/// Where the JVM's user may load a library from, where that is not everywhere.
fn folders(job: &Job, shoes: &Shoes) -> Option<Finding> {
    let library = job.libraries.async_profiler.as_ref()?;
    let closed = |base: String| could_stage(shoes, &ASYNC_PROFILER, &base, &library.sha256).err();
    let usual = bases(shoes).into_iter().filter(|base| is_usual(base));
    let closed: Vec<String> = usual.filter_map(closed).collect();
    (!closed.is_empty()).then(|| {
        let text = format!("no library is loaded from: {}", closed.join("; "));
        Finding::new(Info, "folder", text)
    })
}
