//! What a recording would come to, seen from outside: the decisions of `prepare` and `start`, and nothing is touched.

use super::jvm::{no_folder, recording_file, start_failure};
use super::loading::{already_profiled, bases, cannot_load, others_profile, out_of_reach};
use super::plan::{Choice, Plan};
use super::rate::Rate;
use super::{look, place, plan, Looked};
use crate::engine::api::Job;
use crate::engine::api::{Foreseen, Note, USER_CODE};
use crate::engine::counters::may_sample_itself;
use crate::jvm::attach::Attach;
use crate::jvm::preflight::Findings;
use crate::os::proc::target::Target;
use crate::staging::folders::{could_stage, is_in_use, ASYNC_PROFILER};
use crate::wire::outcome::Failure;

const OF_PERF_EVENTS: &str = "anon_inode:[perf_event]";
/// How a timer reads that signals one thread, by the CPU time of one: the profiler's way where perf events cannot be
/// had. Applications' own timers go by the time of day.
const OF_THREAD: &str = "notify: signal/tid.";
const BY_CPU_TIME: &str = "ClockID: -";

/// What `prepare` and `start` would make of a JVM. Err where it cannot be made ready.
pub fn foresee(job: &Job, target: Target, findings: &Findings) -> Result<Foreseen, Failure> {
    // Only root's to see.
    let agent_filtered = Target::own_status().is_some_and(|own| own.filtered);
    let looked = look(job, &target, findings)?;
    let rate = Rate::begin(&looked.shoes.named, &findings.performance_data);
    could_enter(&looked, &target, findings, &job.session)?;
    let perf_events = PerfEvents::of(&target, findings.privileged, agent_filtered);
    let threads = target.status.threads;
    let named = looked.shoes.named;
    let alloc = || rate.interval(&named, &findings.performance_data);
    let (plan, mut notes) = plan(
        job,
        looked.events,
        looked.left_out,
        threads,
        findings,
        alloc,
    );
    Ok(match used(&plan, perf_events) {
        Some((choice, why)) => {
            notes.extend(choice.note.clone());
            notes.extend(why.map(Note::plain));
            let events = plan.events.iter();
            Foreseen {
                sources: events
                    .map(|event| (event.clone(), plan.source(event, choice)))
                    .collect(),
                notes,
                ..Foreseen::default()
            }
        }
        None => Foreseen {
            unable: Some(start_failure(target.pid, &plan.events, perf_events.why())),
            ..Foreseen::default()
        },
    })
}

/// What speaks against entering a JVM, in the order in which `Jvm::enter` would meet it.
fn could_enter(
    looked: &Looked,
    target: &Target,
    findings: &Findings,
    session: &str,
) -> Result<(), Failure> {
    let (shoes, library) = (&looked.shoes, looked.library);
    let bases = bases(shoes, findings, library);
    place::foresee(shoes, &bases, session, &findings.memory)
        .map_err(|tried| no_folder(target.pid, &tried))?;
    let mut tried = Vec::new();
    let staged = bases.iter().any(|base| {
        could_stage(shoes, &ASYNC_PROFILER, base, &library.sha256)
            .map_err(|reason| tried.push(reason))
            .is_ok()
    });
    if !staged {
        return Err(cannot_load(target.pid, &tried));
    }
    Attach::new(target, shoes).foresee()?;
    for theirs in findings.foreign(&shoes.named) {
        match findings.loaded.may_be_named(shoes, &theirs) {
            true if looked.sampled => return Err(others_profile(target.pid, &theirs)),
            false if looked.sampled || target.status.catches_profilers_signals() => {
                return Err(out_of_reach(target.pid, &theirs))
            }
            _ => {}
        }
    }
    // What cannot be seen now the recording itself asks the JVM for.
    let in_use = is_in_use(shoes, &recording_file(target)).unwrap_or(false);
    match looked.sampled && !findings.ours.is_empty() || in_use {
        true => Err(already_profiled(target.pid)),
        false => Ok(()),
    }
}

/// Whether a profiler samples the process: by perf events of its own, or by timers of its threads. To be called before
/// the thread takes the process's user: some of this is only root's to see.
pub fn is_sampled(target: &Target) -> bool {
    let timers = target.read("timers", 1 << 20).unwrap_or_default();
    has_profilers_timer(&timers) || holds_perf_events(target)
}

/// In `/proc/PID/timers`, where each timer begins with its number.
pub fn has_profilers_timer(timers: &str) -> bool {
    let mut signals_thread = false;
    timers.lines().any(|line| {
        match line {
            line if line.starts_with("ID:") => signals_thread = false,
            line if line.starts_with(OF_THREAD) => signals_thread = true,
            _ => {}
        }
        signals_thread && line.starts_with(BY_CPU_TIME)
    })
}

fn holds_perf_events(target: &Target) -> bool {
    let mut files = target.open_files().into_iter().flatten().flatten();
    files.any(|file| file == OF_PERF_EVENTS)
}

/// Whether a JVM may open perf events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PerfEvents {
    Open,
    /// Its user may not.
    OfOthers,
    /// What filters its system calls hardly lets this one through: it does in no usual container.
    Filtered,
}

impl PerfEvents {
    /// To be called by a thread that has the JVM's user, and no more rights. An agent that is filtered itself, as in the
    /// JVM's container, has tried it by that.
    fn of(target: &Target, privileged: bool, agent_filtered: bool) -> Self {
        match privileged {
            true => Self::Open,
            false if !may_sample_itself() => Self::OfOthers,
            false if target.status.filtered && !agent_filtered => Self::Filtered,
            false => Self::Open,
        }
    }

    fn why(self) -> &'static str {
        match self {
            Self::Open => "",
            Self::OfOthers => "its user may not use perf events (perf_event_paranoid, seccomp)",
            Self::Filtered => {
                "its system calls are filtered (seccomp), probably perf_event_open as well"
            }
        }
    }
}

/// Which of the plan's ways would be the first to work, and why not the one before.
fn used(plan: &Plan, perf_events: PerfEvents) -> Option<(&Choice, Option<String>)> {
    let of_perf = |choice: &&Choice| match choice.source.as_str() {
        "perf_events" | USER_CODE => true,
        "" | "ctimer" | "itimer" => false,
        event => !is_method(event),
    };
    match perf_events {
        PerfEvents::Open => plan.choices.first().map(|choice| (choice, None)),
        closed => {
            let choice = plan.choices.iter().find(|choice| !of_perf(choice))?;
            let first = std::ptr::eq(choice, &plan.choices[0]);
            Some((choice, (!first).then(|| closed.why().to_owned())))
        }
    }
}

/// A method of Java, which is counted without the kernel.
fn is_method(event: &str) -> bool {
    event.contains('.') && !event.contains([':', '/'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_applications_own_timers_are_no_profilers() {
        let timer = |notify: &str, clock: i32| {
            format!("ID: 0\nsignal: 27/0000000000000000\nnotify: {notify}\nClockID: {clock}\n")
        };
        let own = timer("signal/tid.12", 1) + &timer("signal/pid.12", -102);
        assert!(!has_profilers_timer(&own) && !has_profilers_timer(""));
        assert!(has_profilers_timer(&(own + &timer("signal/tid.12", -98))));
    }
}
