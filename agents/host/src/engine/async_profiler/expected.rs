//! How a recording would start: what a dry run says in place of `start`.

use super::jvm::start_failure;
use super::plan::{Choice, Plan};
use crate::engine::api::{Note, Started, USER_CODE};
use crate::engine::counters::may_sample_itself;
use crate::os::proc::target::Target;
use crate::wire::outcome::Failure;

/// What `start` would most likely return. `agent_filtered`: whether the agent's own system calls are filtered.
pub fn start(
    target: &Target,
    plan: &Plan,
    mut notes: Vec<Note>,
    privileged: bool,
    agent_filtered: bool,
) -> Result<Started, Failure> {
    let perf_events = PerfEvents::of(target, privileged, agent_filtered);
    let Some((choice, why)) = used(plan, perf_events) else {
        return Err(start_failure(target.pid, &plan.events, perf_events.why()));
    };
    notes.extend(choice.note.clone());
    notes.extend(why.map(Note::plain));
    Ok(Started {
        sources: plan.sources(choice),
        notes,
    })
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
