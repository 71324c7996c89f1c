//! The readers of foreign bytes, one function per fuzz target (`agents/fuzz`). Whatever the bytes are, each ends soon,
//! takes little memory, and keeps its promises.

#[cfg(test)]
#[path = "../../../../flamegraph/fuzz/src/kept.rs"]
mod kept;
mod launched;
mod python;
mod recorded;
mod requested;
mod told;

type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 8] = [
    ("request", requested::request),
    ("command_line", launched::command_line),
    ("proc_texts", told::proc_texts),
    ("answers", told::answers),
    ("recording", recorded::recording),
    ("hsperf", told::hsperf),
    ("python_child", python::python_child),
    ("spark_task", python::spark_task),
];

/// Run a target with an input.
pub fn run(target: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    found.expect("a target of this list").1(bytes);
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[global_allocator]
    static MEMORY: kept::Bounded = kept::Bounded;

    #[test]
    fn what_fuzzing_kept() {
        let targets = super::TARGETS.map(|(name, _)| name);
        kept::replay("../fuzz/corpus".as_ref(), &targets, super::run);
    }
}
