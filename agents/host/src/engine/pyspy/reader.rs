//! The agent's side of its child for one Python process (`child`).

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command as Program, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::messages::{failure, read_message, Command, Message, Order};
use crate::os::audit;
use crate::os::files::is_ready;
use crate::os::proc::executable;
use crate::os::threads::hangs;
use crate::resources::children::Counted;
use crate::wire::outcome::{Code, Failure};

/// The word by which the agent's program knows that it is such a child.
pub const WORD: &str = "--python";
const PROGRAM: &str = "/proc/self/exe";
/// How long a killed child may take to end.
const DIE: Duration = Duration::from_secs(2);
/// How long a message may take from its begin to its end.
const WHOLE: Duration = Duration::from_secs(2);
/// A child that samples and is silent for so long hangs.
const SILENCE: Duration = Duration::from_secs(20);
/// The messages that are read at once.
const AT_ONCE: usize = 100;

pub struct Reader {
    /// The process that it reads.
    pid: i32,
    memory: u64,
    child: Child,
    output: Timed,
    heard: Instant,
    _counted: Counted,
}

/// What a child writes, until an instant.
struct Timed {
    output: ChildStdout,
    until: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            match is_ready(&self.output, PollFlags::IN, left)? {
                true => return self.output.read(buffer),
                false if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
                false => {} // the time may be over
            }
        }
    }
}

impl Reader {
    /// Start a child. The calling thread must live as long as it: the kernel ends both together.
    pub fn start(order: &Order) -> Result<Self, Failure> {
        // By this name `clean` knows it, where the kernel hides its program.
        let name = executable(order.agent).unwrap_or_else(|| PROGRAM.to_owned());
        audit::note("program", || format!("{name} {WORD}"));
        let spawned = Program::new(PROGRAM)
            .arg0(name)
            .arg(WORD)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let cannot = |error: io::Error| {
            Failure::new(
                format!(
                    "the agent cannot start a child for process {}: {error}",
                    order.pid
                ),
                "raise the limits of processes and open files (ulimit -u, ulimit -n)",
            )
            .coded(Code::TooManyThreads)
        };
        let mut child = spawned.map_err(cannot)?;
        let output = child.stdout.take();
        let output = output.ok_or_else(|| cannot(io::ErrorKind::BrokenPipe.into()))?;
        let mut reader = Self {
            pid: order.pid,
            memory: order.memory,
            _counted: Counted::of(child.id() as i32),
            child,
            output: Timed {
                output,
                until: Instant::now(),
            },
            heard: Instant::now(),
        };
        let line = serde_json::to_string(order).map_err(|error| cannot(error.into()))?;
        reader.write(&format!("{line}\n"));
        Ok(reader)
    }

    /// The child's number.
    pub fn number(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn command(&mut self, command: &Command) {
        self.write(&command.line());
        self.heard = Instant::now();
    }

    /// If it has ended, the next read shows that.
    fn write(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut();
        let _ = stdin.map(|stdin| stdin.write_all(line.as_bytes()));
    }

    /// The next message other than a sign of life. Err says why there is none.
    pub fn next(&mut self, patience: Duration) -> Result<Message, Failure> {
        self.output.until = Instant::now() + patience;
        loop {
            match self.read()? {
                Message::Alive if Instant::now() < self.output.until => {}
                Message::Alive => return Err(self.lost(&io::ErrorKind::TimedOut.into())),
                message => return Ok(message),
            }
        }
    }

    fn read(&mut self) -> Result<Message, Failure> {
        let message = read_message(&mut self.output);
        self.heard = Instant::now();
        match message {
            Ok(Message::Failed {
                code,
                reason,
                remedy,
            }) => Err(failure(code, &reason, &remedy)),
            Ok(message) => Ok(message),
            Err(error) => Err(self.lost(&error)),
        }
    }

    /// What it has said meanwhile while it samples. None: nothing but that it is alive.
    pub fn look(&mut self) -> Result<Option<Message>, Failure> {
        for _ in 0..AT_ONCE {
            let ready = is_ready(&self.output.output, PollFlags::IN, Duration::ZERO);
            if !ready.unwrap_or(false) {
                return match self.heard.elapsed() > SILENCE {
                    true => Err(self.lost(&io::ErrorKind::TimedOut.into())),
                    false => Ok(None),
                };
            }
            self.output.until = Instant::now() + WHOLE;
            match self.read()? {
                Message::Alive => {}
                message => return Ok(Some(message)),
            }
        }
        Err(self.lost(&io::ErrorKind::InvalidData.into()))
    }

    /// The bytes that follow a message.
    pub fn bytes(&mut self, patience: Duration) -> &mut impl Read {
        self.output.until = Instant::now() + patience;
        &mut self.output
    }

    /// Why nothing more can be read of it. It is ended.
    pub fn lost(&mut self, error: &io::Error) -> Failure {
        let pid = self.pid;
        let ended = error.kind() == io::ErrorKind::UnexpectedEof;
        let status = self.end(if ended { DIE } else { Duration::ZERO });
        if error.kind() == io::ErrorKind::TimedOut {
            return hangs(pid);
        }
        let signal = status.filter(|_| ended).and_then(|it| it.signal());
        let why = match (signal, ended) {
            (Some(signal), _) => format!("was ended by signal {signal}"),
            (None, true) => "ended".to_owned(),
            (None, false) => "sent what it must not".to_owned(),
        };
        let lost = Failure::new(
            format!(
                "the agent's child that reads process {pid} {why}: the process or its files are not those of a usual \
                 Python, or reading them takes more than {} MiB",
                self.memory >> 20
            ),
            "record it with --engine perf",
        )
        .coded(Code::ReaderEnded);
        match signal {
            Some(signal) => lost.with("signal", signal),
            None => lost,
        }
    }

    /// End it, after this time at the latest. None: it hangs in the kernel.
    fn end(&mut self, patience: Duration) -> Option<ExitStatus> {
        let ends = |child: &mut Child, patience| {
            let end = Instant::now() + patience;
            loop {
                match child.try_wait() {
                    Ok(None) if Instant::now() < end => sleep(Duration::from_millis(5)),
                    ended => return ended.ok().flatten(),
                }
            }
        };
        ends(&mut self.child, patience).or_else(|| {
            let _ = self.child.kill();
            ends(&mut self.child, DIE)
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.end(Duration::ZERO);
    }
}
