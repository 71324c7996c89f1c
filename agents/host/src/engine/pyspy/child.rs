//! The agent's child for one Python process and those that it forks: all that reads what such a process made runs here,
//! as the process's user and within limits (`fence`).

use std::io::{self, BufRead, BufReader, Read};
use std::process::{exit, ExitCode};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use flamegraph::Profile;
use py_spy::config::{Config, LineNo, LockingStrategy};

use super::dump;
use super::files::Reading;
use super::forks::Forks;
use super::messages::{write_message, Command, Head, Message, Order};
use super::python::Python;
use super::sampler::{Member, Work};
use super::tasks::Tasks;
use super::{open_memory, unreadable, LEASE};
use crate::os::fence;
use crate::os::lease;
use crate::os::proc::target::Target;
use crate::os::system_calls;
use crate::os::threads::STACK;
use crate::resources::pace::Pace;
use crate::wire::outcome::{Code, Failure};

/// How often to look for the interpreter, which may change meanwhile.
const ATTEMPTS: u32 = 3;
/// The longest order, in bytes.
const MOST_ORDER: u64 = 1 << 20;
/// How long it may take from the order until the recording is started.
const PREPARED: Duration = Duration::from_secs(600);

/// The child's main function. It ends when its stdin does.
pub fn run() -> ExitCode {
    let Some(order) = read_order() else {
        return ExitCode::FAILURE;
    };
    lease::show(Instant::now() + PREPARED);
    let work = prepare(&order);
    match serve(&order, work) {
        Ok(()) => ExitCode::SUCCESS,
        // The agent is gone.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Read to the end of the line, and no further.
fn read_order() -> Option<Order> {
    let mut line = Vec::new();
    let bytes = io::stdin().lock().take(MOST_ORDER).bytes();
    for byte in bytes {
        match byte.ok()? {
            b'\n' => break,
            byte => line.push(byte),
        }
    }
    serde_json::from_slice(&line).ok()
}

fn prepare(order: &Order) -> Result<(Member, Forks), Failure> {
    let own_files = give_up_rights(order)?;
    let target = Target::open(order.pid, order.start_time)?;
    // What only root may read is not tried before it is needed.
    let memory = open_memory(&target).map(drop);
    let traced = fence::may_trace(memory.is_err());
    traced.map_err(|error| unfenced(order.pid, &error))?;
    let memory = open_memory(&target)?;
    let config = Config {
        blocking: LockingStrategy::NonBlocking,
        lineno: match order.lines {
            true => LineNo::LastInstruction,
            false => LineNo::NoLine,
        },
        full_filenames: true,
        ..Config::default()
    };
    let reading = Reading { config, own_files };
    let spy = reading.open(&target, ATTEMPTS);
    let spy = spy.map_err(|error| unreadable(order.pid, &error))?;
    Python::of(spy.version.major, spy.version.minor).refuse_unknown(order.pid)?;
    let forks = Forks::of(order, reading);
    Ok((Member::of(spy, Tasks::of(target, memory, 0)), forks))
}

/// Returns whether this process has files of its own.
fn give_up_rights(order: &Order) -> Result<bool, Failure> {
    let given_up = || {
        let target = fence::capabilities_of(order.pid);
        fence::limit(order.memory)?;
        let own_files = match rustix::process::geteuid().is_root() {
            true => fence::have_own_files(order.uid, order.gid)?,
            false => false,
        };
        fence::become_user(order.uid, order.gid, &order.groups, target)?;
        fence::end_with(order.agent)?;
        system_calls::only_read()?;
        Ok(own_files)
    };
    given_up().map_err(|error: rustix::io::Errno| unfenced(order.pid, &error))
}

fn unfenced(pid: i32, error: &rustix::io::Errno) -> Failure {
    Failure::new(
        format!("the agent cannot become the user of process {pid}: {error}"),
        "record it with --engine perf",
    )
    .coded(Code::NotPermitted)
}

fn serve(order: &Order, work: Result<(Member, Forks), Failure>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let commands = listen()?;
    let (member, forks) = match work {
        Ok(work) => work,
        Err(failure) => {
            let Failure {
                code,
                reason,
                remedy,
                ..
            } = failure;
            return write_message(
                &mut out,
                &Message::Failed {
                    code,
                    reason,
                    remedy,
                },
            );
        }
    };
    write_message(&mut out, &Message::Ready)?;
    let cores = match commands.recv() {
        Ok(Command::Start(cores)) => cores,
        Ok(Command::Dump(most)) => return send_dump(&mut out, member, most),
        _ => return Ok(()),
    };
    let limit = Duration::from_secs_f64(order.duration) + LEASE;
    lease::show(Instant::now() + limit);
    let mut work = Work::of(order, member, forks, Pace::new(cores));
    let end = Instant::now() + limit;
    work.begin();
    while work.run(&commands, end, || write_message(&mut out, &Message::Alive))? {
        let forked_ticks = work.forked_ticks();
        let profiles = work.profiles().map_err(io::Error::other)?;
        send(&mut out, profiles, |profiles| Message::Part {
            forked_ticks,
            profiles,
        })?;
    }
    write_message(&mut out, &Message::Over(work.totals()))?;
    let profiles = work.profiles().map_err(io::Error::other)?;
    send(&mut out, profiles, |profiles| Message::Profiles {
        profiles,
    })
}

fn send_dump(out: &mut impl io::Write, member: Member, most: usize) -> io::Result<()> {
    let (text, cut) = dump::text(member, most).map_err(io::Error::other)?;
    let size = text.len();
    write_message(out, &Message::Dump { size, cut })?;
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The agent reads this when it is the recording's turn.
fn send(
    out: &mut impl io::Write,
    profiles: Vec<(u64, Profile)>,
    message: impl FnOnce(Vec<Head>) -> Message,
) -> io::Result<()> {
    let mut written = Vec::new();
    for (interval, profile) in profiles {
        let mut bytes = Vec::new();
        profile
            .write_compact(&mut bytes)
            .map_err(io::Error::other)?;
        written.push((interval, bytes));
    }
    let heads = written.iter().map(|(interval, bytes)| Head {
        interval: *interval,
        size: bytes.len() as u64,
    });
    write_message(out, &message(heads.collect()))?;
    for (_, bytes) in written {
        out.write_all(&bytes)?;
    }
    out.flush()
}

/// The agent's commands. When there can be no more, this process ends, whatever it waits for.
fn listen() -> io::Result<Receiver<Command>> {
    let (sender, commands) = channel();
    let listen = move |sender: Sender<Command>| {
        for line in BufReader::new(io::stdin()).lines() {
            match line.ok().as_deref().and_then(Command::of) {
                Some(command) => drop(sender.send(command)),
                None => break,
            }
        }
        exit(0);
    };
    let thread = thread::Builder::new().stack_size(STACK);
    thread.spawn(move || listen(sender))?;
    Ok(commands)
}
