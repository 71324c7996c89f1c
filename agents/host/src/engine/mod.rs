//! The engines. `api` defines the interface; this list has all of them.

pub mod api;
pub mod async_profiler;
pub mod kernel_events;
pub mod perf;
pub mod pyspy;

use self::api::Way;
use crate::jvm::preflight::Findings;
use crate::wire::outcome::{Code, Failure};

const ASYNC_PROFILER: Way = Way {
    engine: async_profiler::NAME,
    prepare: |job, target, findings| async_profiler::prepare(job, target, &findings),
};
const PERF: Way = Way {
    engine: perf::NAME,
    prepare: perf::prepare,
};
const PYSPY: Way = Way {
    engine: pyspy::NAME,
    prepare: |job, target, findings| pyspy::prepare(job, target, &findings),
};

/// The engines for a process in the order in which they are tried; `asked` may be `auto`.
pub fn choose(asked: &str, findings: &Findings) -> Result<Vec<Way>, Failure> {
    match asked {
        async_profiler::NAME => Ok(vec![ASYNC_PROFILER]),
        perf::NAME => Ok(vec![PERF]),
        pyspy::NAME => Ok(vec![PYSPY]),
        "auto" if findings.is_jvm => Ok(vec![ASYNC_PROFILER, PERF]),
        "auto" if pyspy::suits(findings) => Ok(vec![PYSPY, PERF]),
        "auto" => Ok(vec![PERF]),
        other => Err(Failure::plain(format!(
            "this agent has no engine {other:?}, only {}, {}, {} and auto",
            async_profiler::NAME,
            perf::NAME,
            pyspy::NAME
        ))
        .coded(Code::BadRequest)),
    }
}
