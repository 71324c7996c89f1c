//! What the names of a process's mapped files say of its Python.

use crate::os::proc::maps::file_name;
use crate::wire::outcome::{Code, Failure};

/// The minor releases of CPython 3 that are recorded.
const MINORS: std::ops::RangeInclusive<u64> = 8..=14;
const REMEDY: &str = "record it with --engine perf, which sees its native code";

/// A release such as `3.11`, as far as names say it, and whether it is built without the GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Python {
    release: Option<(u64, u64)>,
    free_threaded: bool,
}

/// Whether the process's program is a Python interpreter, and not one that embeds Python. `paths` are the files whose
/// code it maps.
pub fn is_program(paths: &[String]) -> bool {
    let mut names = paths.iter().map(|path| file_name(path));
    names.any(|name| name.strip_prefix("python").and_then(release).is_some())
}

/// None: it maps no CPython.
pub fn look(paths: &[String]) -> Option<Python> {
    let names: Vec<&str> = paths.iter().map(|path| file_name(path)).collect();
    let programs = names.iter().filter_map(|name| {
        let library = || name.strip_prefix("libpython")?.split(".so").next();
        release(name.strip_prefix("python").or_else(library)?)
    });
    let found = programs.reduce(|one, other| match one.release {
        Some(_) => one,
        None => other,
    })?;
    // The program's name may be `python3`; its compiled modules name the release too.
    let modules = || names.iter().find_map(|name| of_module(name));
    match found.release {
        Some(_) => Some(found),
        None => Some(modules().unwrap_or(found)),
    }
}

/// From `3.11`, `3.13t`, `3` or nothing. None: it is something else.
fn release(text: &str) -> Option<Python> {
    let (digits, free_threaded) = match text.strip_suffix('t') {
        Some(digits) => (digits, true),
        None => (text.trim_end_matches(['d', 'm']), false),
    };
    if !digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    let mut numbers = digits.split('.').map(|number| number.parse().ok());
    let release = numbers.next().flatten().zip(numbers.next().flatten());
    Some(Python {
        release,
        free_threaded,
    })
}

/// From `_json.cpython-311-x86_64-linux-gnu.so`.
fn of_module(name: &str) -> Option<Python> {
    let tag = name.split(".cpython-").nth(1)?.split(['-', '.']).next()?;
    let (major, minor) = tag.split_at_checked(1)?;
    release(&format!("{major}.{minor}"))
}

impl Python {
    /// A release that was read from the process's memory.
    pub fn of(major: u64, minor: u64) -> Self {
        Self {
            release: Some((major, minor)),
            free_threaded: false,
        }
    }

    /// Refuse a Python whose memory would be misread. One of an unknown release is not refused yet.
    pub fn refuse_unknown(self, pid: i32) -> Result<(), Failure> {
        let refusal = |what: String| {
            let reason = format!("process {pid} runs {what}; CPython 3.8 to 3.14 can be recorded");
            Err(Failure::new(reason, REMEDY).coded(Code::PythonUnsupported))
        };
        match self.release {
            Some((major, minor)) if self.free_threaded => {
                refusal(format!("Python {major}.{minor} without the GIL"))
            }
            Some((3, minor)) if MINORS.contains(&minor) => Ok(()),
            Some((major, minor)) => refusal(format!("Python {major}.{minor}")),
            None => Ok(()),
        }
    }
}

pub fn no_python(pid: i32) -> Failure {
    Failure::new(
        format!("process {pid} is not a CPython interpreter"),
        "record it with --engine auto, or with perf",
    )
    .coded(Code::NotPython)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(paths: &[&str]) -> Option<Result<(), Failure>> {
        let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
        look(&paths).map(|python| python.refuse_unknown(7))
    }

    #[test]
    fn releases_are_in_the_names_of_files() {
        for paths in [
            &["/usr/bin/python3.11"][..],
            &[
                "/usr/bin/python3",
                "/x/_json.cpython-38-x86_64-linux-gnu.so",
            ],
            &["/opt/app", "/usr/lib/libpython3.14.so.1.0"],
            &["/opt/libpython3.8m.so.1.0"],
            &["/bin/python"],
        ] {
            assert!(seen(paths).unwrap().is_ok(), "{paths:?}");
        }
        for paths in [
            &["/usr/bin/python2.7"][..],
            &["/usr/bin/python3.7m"],
            &["/usr/bin/python3.15"],
            &["/usr/bin/python3.13t"],
            &[
                "/usr/bin/python",
                "/x/_json.cpython-313t-x86_64-linux-gnu.so",
            ],
            &["/usr/bin/python", "/usr/lib/libpython3.7m.so.1.0"],
        ] {
            let refusal = seen(paths).unwrap().unwrap_err();
            assert_eq!(refusal.code, Code::PythonUnsupported, "{paths:?}");
        }
        for paths in [
            &["/usr/bin/pypy3.10", "/usr/lib/libpypy3.10-c.so"][..],
            &["/usr/bin/python-config", "/lib/libc.so.6"],
            &[],
        ] {
            assert!(seen(paths).is_none(), "{paths:?}");
        }
    }

    #[test]
    fn a_program_that_embeds_python_is_no_interpreter() {
        let program = |path: &str| is_program(&[path.to_owned()]);
        assert!(program("/usr/bin/python3.11") && program("/venv/bin/python"));
        assert!(!program("/usr/lib/libpython3.11.so.1.0") && !program("/usr/bin/gdb"));
    }
}
