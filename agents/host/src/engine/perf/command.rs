//! Runs the host's `perf` without the agent's environment, and never longer than the agent lives.
//!
//! The kernel ends perf with the agent, unless the program has capabilities of its own and the user is not root. Then
//! the program that perf runs sees the end of its stdin, and perf ends with it.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{
    getpid, getppid, kill_process, kill_process_group, set_parent_process_death_signal, waitid,
    Pid, Signal, WaitId, WaitIdOptions,
};

use crate::os::audit;
use crate::os::files::is_ready;
use crate::resources::limits::{restore_memory_limit, usual_memory_limit};

/// The most bytes that are kept of a program's output, and of its messages.
const MOST_OUTPUT: usize = 64 << 10;
const MOST_WORDS: u64 = 16 << 10;
pub const SEARCH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// How long a process may take to end after its output: some seconds on a busy host.
const END: Duration = Duration::from_secs(10);
/// How long it may take to die. A process that hangs in the kernel is not waited for.
const DIE: Duration = Duration::from_secs(2);

pub struct Ended {
    pub output: Vec<u8>,
    pub words: String,
    pub good: bool,
    pub killed: Option<i32>,
}

/// Run a program to its end. Err: it cannot be run, or takes too long.
pub fn run(program: &Path, arguments: &[String], limit: Duration) -> Result<Ended, String> {
    let started = Running::start(program, arguments).map_err(|error| error.to_string());
    let (mut running, stream) = started?;
    drop(running.child.stdin.take());
    let slow = || format!("takes longer than {} s", limit.as_secs_f32());
    let output = read_until(stream, Instant::now() + limit).ok_or_else(slow)?;
    if !running.wait(END) {
        return Err("does not end".to_owned());
    }
    Ok(Ended {
        output,
        words: running.words(),
        good: running.status.is_some_and(|status| status.success()),
        killed: running.killed(),
    })
}

/// The first of a program's output. None: it does not end in time.
fn read_until(mut stream: ChildStdout, end: Instant) -> Option<Vec<u8>> {
    let (mut output, mut buffer) = (Vec::new(), [0; 16 << 10]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match is_ready(&stream, PollFlags::IN, left) {
            Ok(true) => {}
            Ok(false) if !left.is_zero() => continue, // the time may be over
            _ => return None,
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Some(output),
            Ok(read) if output.len() < MOST_OUTPUT => output.extend(&buffer[..read]),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// A command in its own process group. The kernel ends it when the thread that starts it ends.
fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        // Not the caller's: a perf that is a script searches it.
        .env("PATH", SEARCH)
        .env("LC_ALL", "C")
        .env("PERF_CONFIG", "/dev/null")
        .current_dir("/")
        .process_group(0);
    let agent = getpid();
    let usual = usual_memory_limit();
    let end_with_agent = move || {
        // If SIGPIPE kills perf, its child stays; if perf sees the error, it ends the child. perf ends by SIGINT, which
        // background jobs of scripts and their children ignore.
        // SAFETY: sets what two signals do to the child, by two system calls.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::signal(libc::SIGINT, libc::SIG_DFL);
        }
        restore_memory_limit(usual);
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // The agent may have ended already.
        match getppid() == Some(agent) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotConnected.into()),
        }
    };
    // SAFETY: runs in the child between fork and exec, where only async-signal-safe functions may be called: it makes
    // a few system calls and allocates nothing.
    unsafe { command.pre_exec(end_with_agent) };
    command
}

/// Whether it ends within this time. It is not reaped, so that its pid and group are not reused.
fn ends(child: &Child, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid_of(child)), ended) {
            Ok(Some(_)) => return true,
            Ok(None) if Instant::now() >= end => return false,
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// A running `perf record`. It is killed at the latest when this is dropped or the agent ends.
pub struct Running {
    child: Child,
    words: Receiver<String>,
    /// Set once it is reaped.
    status: Option<ExitStatus>,
    asked: bool,
    forced: bool,
}

impl Running {
    /// Start it; its recording comes from the stream. The calling thread must live as long as the recording. Its stdin,
    /// and its child's, end at the latest with the agent.
    pub fn start(program: &Path, arguments: &[String]) -> io::Result<(Self, ChildStdout)> {
        let mut command = clean(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        audit::note("program", || {
            format!("{} {}", program.display(), arguments.join(" "))
        });
        let mut child = command.spawn()?;
        let (Some(stream), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("perf has no output"));
        };
        let (sender, words) = channel();
        let running = Self {
            child,
            words,
            status: None,
            asked: false,
            forced: false,
        };
        let listen = move || {
            // The receiver may be gone.
            let _ = sender.send(keep_first(errors));
        };
        thread::Builder::new().stack_size(64 << 10).spawn(listen)?;
        Ok((running, stream))
    }

    pub fn interrupt(&mut self) {
        if self.status.is_none() {
            self.asked = true;
            audit::note("signal", || format!("SIGINT to perf, {}", self.child.id()));
            let _ = kill_process(pid_of(&self.child), Signal::INT);
        }
    }

    /// Wait for its end, and kill it after this time. False: it was killed. If it does not die it stays unreaped.
    pub fn wait(&mut self, patience: Duration) -> bool {
        if self.status.is_none() {
            let (patience, to_die) = match self.forced {
                true => (Duration::ZERO, Duration::ZERO),
                false => (patience, DIE),
            };
            let again = self.forced;
            self.forced |= !ends(&self.child, patience);
            if !again {
                audit::note("signal", || {
                    format!("SIGKILL to the group of perf, {}", self.child.id())
                });
            }
            // A killed perf leaves its child behind. It is not reaped, so the group is still its own.
            let _ = kill_process_group(pid_of(&self.child), Signal::KILL);
            // The child may have made a group of its own.
            drop(self.child.stdin.take());
            if ends(&self.child, to_die) {
                self.status = self.child.wait().ok();
            }
        }
        !self.forced
    }

    /// The signal that killed it, unless we sent it. An interrupted perf ends its child by SIGTERM, and then itself by
    /// the same signal.
    pub fn killed(&self) -> Option<i32> {
        let signal = self.status.and_then(|status| status.signal());
        let follows = |signal| self.asked && matches!(signal, libc::SIGINT | libc::SIGTERM);
        signal.filter(|&signal| !follows(signal) && !self.forced)
    }

    /// Its messages on stderr; called once, after its end.
    pub fn words(&self) -> String {
        self.words.recv_timeout(END).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.wait(Duration::ZERO);
    }
}

/// The first of the messages. The rest is read and dropped, so that perf does not block.
fn keep_first(mut errors: impl Read) -> String {
    let mut words = Vec::new();
    let _ = errors.by_ref().take(MOST_WORDS).read_to_end(&mut words);
    let _ = io::copy(&mut errors, &mut io::sink());
    String::from_utf8_lossy(&words).into_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// A program cannot be run just after it was written while another test, which starts one, holds the file open.
    pub fn alone() -> MutexGuard<'static, ()> {
        static STARTS: Mutex<()> = Mutex::new(());
        STARTS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const SHELL: &str = "/bin/sh";
    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, limit: Duration) -> Result<Ended, String> {
        run(
            Path::new(SHELL),
            &["-c".to_owned(), script.to_owned()],
            limit,
        )
    }

    #[test]
    fn what_a_program_does_is_bounded_in_size_and_time() {
        let _alone = alone();
        let ended = shell("echo $LC_ALL$HOME $(pwd) $PATH; echo why >&2; exit 3", LONG).unwrap();
        let output = format!("C / {SEARCH}\n");
        assert_eq!(
            (ended.output.as_slice(), ended.words.as_str()),
            (output.as_bytes(), "why\n")
        );
        assert!(!ended.good);
        let much = shell("yes | head -c 1000000", LONG).unwrap();
        assert!((MOST_OUTPUT..2 * MOST_OUTPUT).contains(&much.output.len()) && much.good);
        let begin = Instant::now();
        assert!(shell("sleep 600 & wait", Duration::from_millis(100)).is_err());
        assert!(begin.elapsed() < Duration::from_secs(600));
        assert!(run(Path::new("/none"), &[], LONG).is_err());
    }
}
