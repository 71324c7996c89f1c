//! Gives py-spy the files of a process that it reads, and no others.
//!
//! py-spy opens files by names that the process chose, and follows links wherever they lead. A child with files of its
//! own (`fence`) has a folder `/proc/PID` with only what py-spy reads there: the map of the memory, and links to the
//! program and to libpython, which were opened carefully.

use std::fs::{create_dir_all, remove_dir_all, write, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::thread::sleep;
use std::time::Duration;

use py_spy::config::Config;
use py_spy::PythonSpy;
use rustix::fs::OFlags;

use crate::os::files::regular;
use crate::os::proc::maps::{file_name, Mapped};
use crate::os::proc::path;
use crate::os::proc::target::Target;

/// The most bytes of a map, of a program and of a library.
const MOST_MAP: u64 = 16 << 20;
const MOST_PROGRAM: u64 = 2 << 30;
/// What libpython is called there: py-spy knows it by its name.
const LIBRARY: &str = "/libpython3.0.so";
/// The interpreter may change while it is searched.
const PAUSE: Duration = Duration::from_millis(20);

/// How py-spy reads processes.
pub struct Reading {
    pub config: Config,
    /// Whether this process has files of its own.
    pub own_files: bool,
}

impl Reading {
    /// Find the interpreter in a process's memory, in at most so many attempts.
    pub fn open(&self, target: &Target, attempts: u32) -> Result<PythonSpy, String> {
        let mut failed = String::new();
        for attempt in 0..attempts {
            if attempt > 0 {
                sleep(PAUSE);
            }
            match self.try_open(target) {
                Ok(spy) => return Ok(spy),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn try_open(&self, target: &Target) -> Result<PythonSpy, String> {
        let _open = match self.own_files {
            true => Some(lay_out(target)?),
            false => None,
        };
        let spy = PythonSpy::new(target.pid, &self.config);
        let mut spy = spy.map_err(|error| format!("{error:#}"))?;
        let traces = spy.get_stack_traces();
        traces.map_err(|error| format!("{error:#}"))?;
        Ok(spy)
    }
}

/// Make the folder. The files are open as long as the result is there.
fn lay_out(target: &Target) -> Result<(File, Option<File>), String> {
    let folder = format!("/proc/{}", target.pid);
    let _ = remove_dir_all(&folder);
    for inner in ["task", "root"] {
        create_dir_all(format!("{folder}/{inner}")).map_err(|error| error.to_string())?;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let program = target.open_link("exe", flags);
    let program = program.map_err(|error| format!("cannot open its program: {error}"))?;
    let program = regular(program.into(), "its program", None, MOST_PROGRAM);
    let (program, _) = program.map_err(|error| error.to_string())?;
    let exe = target.read_link("exe");
    let exe = exe.ok_or("cannot see the name of its program")?;
    let map = target.read("maps", MOST_MAP);
    let map = map.ok_or("cannot read the map of its memory")?;
    let library = target.mapped(|mapping| mapping.is_code() && is_library(&mapping.file.path));
    let library = library.and_then(|libraries| libraries.into_iter().next());
    let opened = match &library {
        Some(library) => {
            let opened = target.named().ok();
            let opened = opened.and_then(|named| named.open_mapped(library));
            let missing = || format!("it maps {}, where another file is now", library.path);
            Some(opened.ok_or_else(missing)?)
        }
        None => None,
    };
    let place = |file: &File| path(&format!("self/fd/{}", file.as_raw_fd()));
    let links = [
        Some((place(&program), format!("{folder}/exe"))),
        opened
            .as_ref()
            .map(|file| (place(file), format!("{folder}/root{LIBRARY}"))),
    ];
    for (to, link) in links.into_iter().flatten() {
        symlink(to, link).map_err(|error| error.to_string())?;
    }
    let map = named_anew(&map, &exe, &place(&program), library.as_ref());
    write(format!("{folder}/maps"), map).map_err(|error| error.to_string())?;
    Ok((program, opened))
}

/// `libpython3.11.so.1.0`, and not `libpython3.so`, which has no code.
fn is_library(path: &str) -> bool {
    let release = file_name(path).strip_prefix("libpython");
    release.is_some_and(|release| release.as_bytes().get(2).is_some_and(u8::is_ascii_digit))
}

/// A map in which only the program and libpython have names.
fn named_anew(map: &str, exe: &str, program: &str, library: Option<&Mapped>) -> String {
    let lines = map.lines().map(|line| {
        let mut words = line.splitn(6, ' ');
        let head: Vec<&str> = words.by_ref().take(5).collect();
        let path = words.next().unwrap_or_default().trim_start();
        let is_library = library.is_some_and(|library| {
            let numbers = (library.device.as_str(), library.inode.to_string());
            head.get(3..)
                .is_some_and(|last| last == [numbers.0, numbers.1.as_str()])
        });
        let name = match path {
            _ if path == exe => program,
            _ if is_library => LIBRARY,
            _ => "",
        };
        format!("{} {name}\n", head.join(" "))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_program_and_library_have_names() {
        let map = "1000-2000 r-xp 00003000 08:01 7     /usr/bin/python3.11 (deleted)\n\
                   2000-3000 rw-p 00000000 00:00 0 \n\
                   3000-4000 r-xp 00000000 08:01 8     /my lib/libpython3.11.so.1.0\n\
                   4000-5000 r-xp 00000000 08:01 9     /lib/other\n";
        let library = Mapped {
            path: "/my lib/libpython3.11.so.1.0".to_owned(),
            device: "08:01".to_owned(),
            inode: 8,
        };
        let named = named_anew(map, "/usr/bin/python3.11 (deleted)", "/p", Some(&library));
        let names: Vec<&str> = named
            .lines()
            .map(|line| line.split(' ').nth(5).unwrap())
            .collect();
        assert_eq!(names, ["/p", "", LIBRARY, ""]);
        assert!(named.starts_with("1000-2000 r-xp 00003000 08:01 7 /p\n"));
    }

    #[test]
    fn the_library_without_code_is_left_out() {
        let wanted = [
            "/libpython3.11.so",
            "/libpython3.7m.so.1.0",
            "/libpython2.7.so",
        ];
        assert!(wanted.iter().all(|path| is_library(path)));
        assert!(
            !is_library("/libpython3.so")
                && !is_library("/libpython")
                && !is_library("/python3.11")
        );
    }
}
