//! Native and Python frames of one thread, made one stack.

use std::sync::Arc;

/// What a native frame is for a Python process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The function that evaluates Python code: it stands for one or more Python frames.
    Evaluation,
    /// Any other function of the interpreter.
    Interpreter,
    /// A function of another library.
    Library,
    /// Code that a JIT compiler made.
    Jit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeFrame {
    pub name: String,
    pub kind: Kind,
}

/// A Python frame, and whether it was called by native code.
pub struct PythonFrame {
    pub name: String,
    pub is_entry: bool,
}

/// Both from the innermost frame to the outermost. `is_cut`: outer native frames are missing. None: they do not belong
/// together.
///
/// Between Python frames, those of the interpreter are left out. What the innermost Python function called keeps them,
/// but for functions that do nothing but call. Frames outside of the outermost Python frame are left out too.
pub fn merge(
    native: &[Arc<NativeFrame>],
    python: Vec<PythonFrame>,
    is_cut: bool,
) -> Option<Vec<String>> {
    let is_python = !python.is_empty();
    let is_evaluation = |frame: &Arc<NativeFrame>| frame.kind == Kind::Evaluation;
    let evaluations = native.iter().filter(|frame| is_evaluation(frame)).count();
    let entries = python.iter().filter(|frame| frame.is_entry).count();
    // The thread waits for the GIL, although it was seen running: the wait takes no CPU time.
    let waits = native
        .iter()
        .position(|frame| frame.kind == Kind::Interpreter && frame.name.starts_with("take_gil"));
    let waits = waits.map_or(0, |place| place + 1);
    // A function that is just called, or returns, has no Python frame.
    let unseen = match is_python && evaluations == entries + 1 {
        true => native
            .iter()
            .position(is_evaluation)
            .map_or(0, |place| place + 1),
        false => 0,
    };
    let mut python = python.into_iter().peekable();
    let mut merged = Vec::new();
    let mut evaluated = false;
    for (place, frame) in native.iter().enumerate().skip(unseen.max(waits)) {
        let callee = place.checked_sub(1).map(|callee| &native[callee].kind);
        match frame.kind {
            Kind::Evaluation => {
                evaluated = true;
                python.peek()?;
                for frame in python.by_ref() {
                    merged.push(frame.name);
                    if frame.is_entry {
                        break;
                    }
                }
            }
            // Outside of Python.
            _ if is_python && python.peek().is_none() => {}
            Kind::Interpreter if evaluated || calls(place, &frame.name) => {}
            // A trampoline, one for each Python function, where Python was told to support perf.
            Kind::Jit if callee == Some(&Kind::Evaluation) => {}
            _ => merged.push(frame.name.clone()),
        }
    }
    if python.peek().is_some() && !is_cut {
        return None;
    }
    merged.extend(python.map(|frame| frame.name));
    merged.reverse();
    Some(merged)
}

/// Whether a function of the interpreter only calls another one, such as `_PyObject_MakeTpCall`, or is a part of the
/// evaluation: some builds of 3.14 have one for each instruction.
fn calls(place: usize, name: &str) -> bool {
    name.starts_with("_TAIL_CALL_") || place > 0 && name.to_ascii_lowercase().contains("call")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `sin NUMPY | PyObject_Vectorcall INTERPRETER | EVAL`, and `f< g h<`: `<` marks entries.
    fn merged(native: &str, python: &str, is_cut: bool) -> Option<String> {
        let native = native.split_whitespace().map(|word| {
            let (kind, name) = word.split_at(1);
            let kind = match kind {
                "E" => Kind::Evaluation,
                "I" => Kind::Interpreter,
                "M" => Kind::Jit,
                _ => Kind::Library,
            };
            let name = name.trim_start_matches(':').to_owned();
            Arc::new(NativeFrame { name, kind })
        });
        let python = python.split_whitespace().map(|word| PythonFrame {
            name: word.trim_end_matches('<').to_owned(),
            is_entry: word.ends_with('<'),
        });
        let native: Vec<_> = native.collect();
        merge(&native, python.collect(), is_cut).map(|names| names.join(" "))
    }

    #[test]
    fn native_frames_are_below_the_function_that_called_them() {
        for (native, python, want) in [
            ("E I:main L:start", "f g<", "g f"),
            (
                "L:sin L:ufunc I:PyObject_Vectorcall E I:main",
                "f<",
                "f ufunc sin",
            ),
            ("I:PyObject_Vectorcall E", "f<", "f PyObject_Vectorcall"),
            ("I:list_sort I:method_vectorcall E", "f<", "f list_sort"),
            (
                "E I:call L:apply I:vectorcall E I:main",
                "f< g h<",
                "h g apply f",
            ),
            ("E I:list_sort E", "key< f<", "f key"),
            ("E M:py::g I:trampoline E M:py::f", "g< f<", "f g"),
            ("M:jitted E", "f<", "f jitted"),
            ("I:_TAIL_CALL_LOAD_FAST E", "f<", "f"),
            ("L:pthread_cond_timedwait I:take_gil E", "f<", "f"),
            ("E I:vectorcall I:list_sort E", "f<", "f list_sort"),
            (
                "L:gemm L:worker L:start_thread",
                "",
                "start_thread worker gemm",
            ),
        ] {
            assert_eq!(
                merged(native, python, false),
                Some(want.to_owned()),
                "{native}"
            );
        }
    }

    #[test]
    fn frames_of_different_moments_are_not_merged() {
        assert_eq!(merged("E I:x E I:x E", "f<", false), None);
        assert_eq!(merged("E", "f< g<", false), None);
        assert_eq!(merged("L:read", "f<", false), None);
    }

    #[test]
    fn outer_frames_of_a_deep_stack_are_those_of_python() {
        assert_eq!(
            merged("L:read E", "f< g< h<", true),
            Some("h g f read".to_owned())
        );
    }
}
