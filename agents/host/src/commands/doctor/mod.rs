//! Doctor: a dry run of a recording, and facts about the host and its processes.

mod counters;
mod host;
mod jvm;

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::api::{Job, Libraries, Library, Shared};
use crate::os::audit;
use crate::os::threads::{broken, hangs};
use crate::os::worker_pool::{self, NoResult};
use crate::recording::process::{self, Report};
use crate::wire::events::{Checked, CheckedProcess, Finding, Severity};
use crate::wire::outcome::{Code, Failure, Stage};
use crate::wire::requests::Prepare;

/// Less than the coordinator's timeout.
const ALL: Duration = Duration::from_secs(20);
const AT_ONCE: usize = 48;
/// The longest text of a finding, in characters. Some texts come from processes.
const LONGEST: usize = 1000;

/// The most findings of one process, or of the host.
const MOST: usize = 100;

impl Finding {
    fn new(severity: Severity, about: &'static str, text: impl Into<String>) -> Self {
        let text: String = text.into();
        Self {
            severity,
            about,
            text: text.chars().take(LONGEST).collect(),
            remedy: String::new(),
        }
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        let remedy = remedy.into();
        Self { remedy, ..self }
    }
}

/// Check the host and all of the processes.
pub fn check(request: Prepare, host: &str, session: &str) -> Result<Checked, Failure> {
    request.check()?;
    let libraries = Libraries {
        async_profiler: told_of(&request.blobs.async_profiler),
        perfmap: None,
        thread_names: told_of(&request.blobs.threadnames),
    };
    let shared = Arc::new(Shared::of(&request, libraries, host, session, true));
    let jobs = request.processes.into_iter().map(|chosen| Job {
        chosen,
        shared: shared.clone(),
        end: None,
    });
    let processes = processes(jobs.collect());
    Ok(Checked {
        findings: at_most(MOST, host::findings(&shared)),
        processes,
        time: audit::now(),
    })
}

/// A library that a run would send. A dry run needs only its hash.
fn told_of(sha256: &Option<String>) -> Option<Arc<Library>> {
    let sha256 = sha256.clone()?;
    crate::os::files::is_sha256(&sha256).then(|| {
        Arc::new(Library {
            sha256,
            bytes: Vec::new(),
        })
    })
}

fn processes(jobs: Vec<Job>) -> Vec<CheckedProcess> {
    let pids: Vec<i32> = jobs.iter().map(|job| job.chosen.pid).collect();
    let checked = worker_pool::run_all(jobs, AT_ONCE, ALL, |job: Job| dry_run(&job));
    let unchecked = |pid, why: NoResult| CheckedProcess {
        engine: "",
        sources: BTreeMap::new(),
        outcome: match why {
            NoResult::Stuck => hangs(pid),
            why => Failure::plain(why.to_string()).coded(Code::TooManyThreads),
        }
        .at(pid, Stage::Prepare),
        findings: Vec::new(),
    };
    pids.into_iter()
        .zip(checked)
        .map(|(pid, checked)| checked.unwrap_or_else(|why| unchecked(pid, why)))
        .collect()
}

fn dry_run(job: &Job) -> CheckedProcess {
    let ((_orders, mut none), (reports, received)) = (channel(), channel());
    process::run(job, &mut none, &move |report| {
        let _ = reports.send(report);
    });
    let (mut engine, mut sources, mut outcome) = ("", BTreeMap::new(), None);
    for report in received {
        match report {
            Report::Prepared { .. } | Report::Part(_) => {}
            Report::Started {
                engine: by,
                sources: of,
                ..
            } => (engine, sources) = (by, of),
            Report::Over(over) => outcome = Some(over.outcome),
        }
    }
    let outcome = outcome.unwrap_or_else(|| broken().at(job.chosen.pid, Stage::Prepare));
    CheckedProcess {
        findings: at_most(MOST, jvm::findings(job, engine, &outcome)),
        engine,
        sources,
        outcome,
    }
}

/// The first findings, and the number of the others.
fn at_most(most: usize, mut findings: Vec<Finding>) -> Vec<Finding> {
    if findings.len() > most {
        let more = findings.split_off(most - 1).len();
        let text = format!("{more} more findings are left out");
        findings.push(Finding::new(Severity::Info, "findings", text));
    }
    findings
}
