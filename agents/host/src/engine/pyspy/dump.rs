//! What all threads of a Python process do at one moment, as `py-spy dump` prints it.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::io::Read;
use std::thread::sleep;
use std::time::Duration;

use py_spy::StackTrace;

use super::messages::{Command, Message, Order};
use super::python::{self, no_python};
use super::reader::Reader;
use super::sampler::Member;
use super::tasks::Task;
use super::{open_memory, refuse_two_users, LAST, LONGEST_NAME, OPEN, PART};
use crate::jvm::preflight::Findings;
use crate::os::proc::target::Target;
use crate::os::proc::{mask, split_zero};
use crate::resources::limits::Limits;
use crate::wire::outcome::Failure;

/// The longest command line that is read, and that is shown, in bytes.
const MOST_COMMAND: u64 = 64 << 10;
const COMMAND: usize = 500;
/// Python may change its stacks while they are read.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// The text, of at most so many bytes, and whether it was cut. A child of the agent reads the process.
pub fn ask(
    target: &Target,
    findings: &Findings,
    limits: &Limits,
    most: usize,
) -> Result<(String, bool), Failure> {
    let pid = target.pid;
    drop(open_memory(target)?);
    let python = python::look(&findings.loaded.paths()).ok_or_else(|| no_python(pid))?;
    python.refuse_unknown(pid)?;
    refuse_two_users(target)?;
    let mut reader = Reader::start(&Order {
        recorded: vec![pid],
        lines: true,
        ..Order::of(target, limits.memory_part(PART))
    })?;
    let mut next = |command: Option<Command>, patience| {
        command.iter().for_each(|command| reader.command(command));
        reader.next(patience)
    };
    let wrong = std::io::ErrorKind::InvalidData;
    match (next(None, OPEN)?, next(Some(Command::Dump(most)), LAST)?) {
        (Message::Ready, Message::Dump { size, cut }) if size <= most => {
            let mut text = vec![0; size];
            let read = reader.bytes(LAST).read_exact(&mut text);
            read.map_err(|error| reader.lost(&error))?;
            let command = target.read("cmdline", MOST_COMMAND).unwrap_or_default();
            let command = mask::command(&split_zero(command.as_bytes()), COMMAND);
            let text = String::from_utf8_lossy(&text);
            Ok((format!("Process {pid}: {}\n{text}", plain(&command)), cut))
        }
        _ => Err(reader.lost(&wrong.into())),
    }
}

/// In the child.
pub(super) fn text(mut member: Member, most: usize) -> Result<(String, bool), String> {
    let tasks = member.tasks.read().unwrap_or_default();
    let traces = traces(&mut member)?;
    let mut text = format!("Python v{}\n\n", member.spy.version);
    for trace in traces.iter().rev() {
        let before = text.len();
        let _ = write_thread(&mut text, &mut member, &tasks, trace);
        if text.len() > most {
            text.truncate(before);
            return Ok((text, true));
        }
    }
    Ok((text, false))
}

fn traces(member: &mut Member) -> Result<Vec<StackTrace>, String> {
    let mut attempt = 1;
    loop {
        match member.spy.get_stack_traces() {
            Ok(traces) => return Ok(traces),
            Err(error) if attempt == ATTEMPTS => return Err(format!("{error:#}")),
            Err(_) => sleep(PAUSE),
        }
        attempt += 1;
    }
}

fn write_thread(
    text: &mut String,
    member: &mut Member,
    tasks: &HashMap<i32, Task>,
    trace: &StackTrace,
) -> fmt::Result {
    let tid = member.thread_of(trace, tasks);
    let running = tid
        .and_then(|tid| tasks.get(&tid))
        .map_or(trace.active, |task| task.running);
    let number = tid.map_or_else(|| format!("{:#X}", trace.thread_id), |tid| tid.to_string());
    let state = match (running, trace.owns_gil) {
        (true, true) => "active+gil",
        (true, false) => "active",
        (false, _) => "idle",
    };
    write!(text, "Thread {number} ({state})")?;
    match &trace.thread_name {
        Some(name) => writeln!(text, ": \"{}\"", plain(name))?,
        None => writeln!(text)?,
    }
    for frame in &trace.frames {
        let file = frame.short_filename.as_ref().unwrap_or(&frame.filename);
        write!(text, "    {} ({}", plain(&frame.name), plain(file))?;
        match frame.line {
            0 => writeln!(text, ")")?,
            line => writeln!(text, ":{line})")?,
        }
    }
    Ok(())
}

/// On one line.
fn plain(name: &str) -> String {
    let shown = name.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.take(LONGEST_NAME).collect()
}
