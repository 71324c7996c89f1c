//! Thread dumps, thread by thread.

use std::io::Read;

use flamegraph::{Error, DOING};
use pyo3::prelude::*;

use crate::arguments::Source;
use crate::profile::Profile;
use crate::reading::of_source;
use crate::tables::row;
use crate::{detached, value_error, Locked};

/// Dumps of many processes; see the library's.
#[pyclass(frozen, module = "hprofiler._flamegraph")]
pub(crate) struct ThreadDumps(Locked<flamegraph::ThreadDumps>);

row! {
    /// A thread of a dump.
    DumpedThread {
        name: String,
        number: Option<i64>,
        java_number: Option<i64>,
        daemon: bool,
        virtual_: bool,
        state: &'static str,
        cpu: Option<f64>,
        stack: u32,
        group: u32,
        group_name: String,
        holds: Vec<(String, String)>,
        waits: Option<(&'static str, String, String)>,
        owner: Option<usize>,
    }
}

row! {
    /// What threads of one group have in common.
    ThreadGroup {
        frames: Vec<String>,
        does: &'static str,
        above: u32,
    }
}

#[pymethods]
impl ThreadDumps {
    #[new]
    fn new() -> ThreadDumps {
        ThreadDumps(Locked::new(flamegraph::ThreadDumps::default()))
    }

    /// The dumps of a file, each as its threads.
    fn read(&self, py: Python<'_>, source: Source) -> PyResult<Vec<Vec<DumpedThread>>> {
        let dumps = detached(py, || {
            let read = || {
                let mut bytes = Vec::new();
                let file = source.file()?;
                let limit = MOST_BYTES;
                if file.take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
                    let what = "bytes of a thread dump";
                    return Err(Error::Limit { what, limit });
                }
                self.0.with(|dumps| dumps.read(&bytes))
            };
            read().map_err(|error| of_source(&source, error))
        })?;
        Ok(dumps.into_iter().map(threads).collect())
    }

    /// The frames of a stack, leaf first, and their lines.
    fn stack(&self, number: u32) -> PyResult<Vec<(String, u32)>> {
        let frames = self.0.with(|dumps| {
            let places = dumps.stack(number)?;
            Ok(places
                .map(|place| (place.name.clone(), place.line))
                .collect())
        });
        frames.map_err(value_error)
    }

    fn group(&self, py: Python<'_>, number: u32) -> PyResult<ThreadGroup> {
        let group = detached(py, || self.0.with(|dumps| dumps.group(number)))?;
        Ok(ThreadGroup {
            frames: group.frames,
            does: DOING[usize::from(group.waiter.does)].0,
            above: group.waiter.above,
        })
    }

    fn profile(&self, py: Python<'_>, counts: Vec<(u32, String, i64)>) -> PyResult<Profile> {
        let counts: Vec<(u32, &str, i64)> = counts
            .iter()
            .map(|(group, name, count)| (*group, name.as_str(), *count))
            .collect();
        detached(py, || self.0.with(|dumps| dumps.profile(&counts))).map(Profile::new)
    }
}

/// Longer than the text of any process.
const MOST_BYTES: u64 = 1 << 30;

fn threads(dump: flamegraph::ThreadDump) -> Vec<DumpedThread> {
    let owners = dump.owners.into_iter();
    let threads = dump.threads.into_iter().zip(owners);
    let typed =
        threads.map(|(one, owner)| (one.thread, one.stack, one.group, one.group_name, owner));
    let typed = typed.map(|(thread, stack, group, group_name, owner)| DumpedThread {
        group_name: group_name.to_string(),
        name: thread.name,
        number: thread.number,
        java_number: thread.java_number,
        daemon: thread.daemon,
        virtual_: thread.is_virtual,
        state: thread.state,
        cpu: thread.cpu,
        stack,
        group,
        holds: thread
            .holds
            .into_iter()
            .map(|lock| (lock.id, lock.class))
            .collect(),
        waits: thread
            .waits
            .map(|(how, lock)| (how.word(), lock.id, lock.class)),
        owner,
    });
    typed.collect()
}
