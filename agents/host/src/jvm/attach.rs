//! HotSpot's dynamic attach: on request the JVM opens a socket, and runs the commands that arrive there.
//!
//! The request is a trigger file and SIGQUIT. The signal kills a process without a handler, and a JVM that does not
//! allow an attach answers with a thread dump on the application's output: so both are checked first.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{stat, statat, AtFlags, FileType, CWD};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::SocketAddrUnix;
use rustix::process::Signal;

use crate::os::audit;
use crate::os::files::{could_make_files, enter_folder, file_id};
use crate::os::identity::Namespaces;
use crate::os::peer;
use crate::os::proc::target::Target;
use crate::wire::outcome::{Code, Failure};

mod reply;
mod trigger;
mod unread;

use self::reply::read_until;
pub use self::reply::{parse_reply, Reply};
use self::trigger::Trigger;
pub use self::unread::{left, see_off};

/// How long a JVM may take to open its socket.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest reply that is read, but for thread dumps, in bytes.
const MOST_REPLY: usize = 64 << 10;
/// The shortest time-out: zero would mean forever.
const MOMENT: Duration = Duration::from_millis(1);
/// With less time no request is sent: the trigger would be gone too early, and the JVM would dump threads.
const LEAST: Duration = Duration::from_secs(1);
/// How long to wait for a stopped JVM to continue, and how often to look.
const STANDSTILL: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);
/// A folder (device and inode) and a pid. JVMs with the same pid in one `/tmp` get requests one after the other: see
/// `open_listener`.
type Place = (u64, u64, i32);
static OPENING: Mutex<BTreeMap<Place, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());

pub struct Attach<'a> {
    target: &'a Target,
    namespaces: &'a Namespaces,
    /// When all waiting ends. Each step has its own limit too.
    until: Option<Instant>,
}

impl<'a> Attach<'a> {
    pub fn new(target: &'a Target, namespaces: &'a Namespaces) -> Self {
        Self {
            target,
            namespaces,
            until: None,
        }
    }

    /// From now on all requests together take no longer than this.
    pub fn within(self, all: Duration) -> Self {
        Self {
            until: Some(Instant::now() + all),
            ..self
        }
    }

    pub fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn limit(&self, usual: Duration) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.until
            .map_or(usual, |until| usual.min(left(until)))
            .max(MOMENT)
    }

    /// Have the JVM load a library (a path as the JVM sees it) and run its entry point with these options.
    pub fn load(&self, library: &str, options: &str, timeout: Duration) -> Result<Reply, Failure> {
        let request = format!("1\0load\0{library}\0true\0{options}\0");
        let reply = self.ask(&request, timeout, MOST_REPLY)?;
        parse_reply(&reply).ok_or_else(|| self.closed())
    }

    /// Have the JVM run a diagnostic command. Whether it could, and what it printed.
    pub fn command(&self, command: &str, timeout: Duration) -> Result<(bool, String), Failure> {
        let reply = self.ask(&format!("1\0jcmd\0{command}\0\0\0"), timeout, MOST_REPLY)?;
        let (verdict, text) = reply.split_once('\n').unwrap_or((&reply, ""));
        let verdict: i32 = verdict.trim().parse().map_err(|_| self.closed())?;
        Ok((verdict == 0, text.trim().to_owned()))
    }

    /// Have the JVM print the stacks of its threads, as `jstack` does, and whether `most` bytes were too few for them.
    /// With `owners` it also prints who owns the locks of java.util.concurrent: it stands still while it searches its
    /// heap for them.
    pub fn thread_dump(
        &self,
        owners: bool,
        timeout: Duration,
        most: usize,
    ) -> Result<(String, bool), Failure> {
        let option = if owners { "-l" } else { "" };
        self.print(&format!("threaddump\0{option}"), timeout, most)
    }

    /// Have the JVM count all objects by class, those too that are not reachable any more: it stands still meanwhile.
    pub fn histogram(&self, timeout: Duration, most: usize) -> Result<String, Failure> {
        let (text, _) = self.print("inspectheap\0-all", timeout, most)?;
        Ok(text)
    }

    /// What it prints, and whether that is more than `most` bytes.
    fn print(&self, what: &str, timeout: Duration, most: usize) -> Result<(String, bool), Failure> {
        let reply = self.ask(&format!("1\0{what}\0\0\0"), timeout, most)?;
        match reply.split_once('\n') {
            Some(("0", text)) if !text.is_empty() => Ok((text.to_owned(), reply.len() >= most)),
            Some((code, text)) if !code.is_empty() => {
                Err(self.refused(text.lines().next().unwrap_or(code)))
            }
            _ => Err(self.closed()),
        }
    }

    fn refused(&self, why: &str) -> Failure {
        let why: String = why.chars().take(200).collect();
        let reason = format!("the JVM of process {} refused: {why}", self.target.pid);
        Failure::plain(reason).coded(Code::AttachFailed)
    }

    /// Why it would not answer, as far as that shows from outside: nothing is sent, signalled or written.
    pub fn foresee(&self) -> Result<(), Failure> {
        self.refuse_stopped()?;
        let path = self.namespaces.path(&self.socket_path());
        match look(&path, self.target.status.uid) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => self.refuse_deaf().and_then(|()| self.refuse_closed_tmp()),
            Err(error) => Err(self.cannot_connect(error)),
        }
    }

    /// The JVM opens its socket only there. A JVM of root may have rights that this thread does not have.
    fn refuse_closed_tmp(&self) -> Result<(), Failure> {
        match could_make_files(&self.namespaces.path("/tmp")) {
            Err(error) if error == Errno::ROFS || self.target.status.uid != 0 => Err(Failure::new(
                format!(
                    "process {} cannot open {}: {error}",
                    self.target.pid,
                    self.socket_path()
                ),
                "the JVM's user needs a writable /tmp",
            )
            .coded(Code::NotPermitted)),
            _ => Ok(()),
        }
    }

    /// The answer to a request; only the beginning of a long one.
    fn ask(&self, request: &str, timeout: Duration, most: usize) -> Result<String, Failure> {
        let socket = self.connection()?;
        let timeout = self.limit(timeout);
        let failed = |error: io::Error| self.no_answer(timeout, &error);
        set_socket_timeout(&socket, Timeout::Send, Some(timeout))
            .map_err(|error| failed(error.into()))?;
        let mut stream = File::from(socket);
        audit::note("attach", || request.replace('\0', " "));
        let until = Instant::now() + timeout;
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let reply = read_until(&mut stream, until, most).map_err(failed)?;
        Ok(String::from_utf8_lossy(&reply).into_owned())
    }

    fn closed(&self) -> Failure {
        Failure::new(
            format!(
                "the JVM of process {} closed the attach connection without an answer",
                self.target.pid
            ),
            "check whether the JVM is shutting down",
        )
        .coded(Code::AttachFailed)
    }

    fn no_answer(&self, timeout: Duration, error: &std::io::Error) -> Failure {
        Failure::new(
            format!("the JVM of process {} did not answer within {} s: {error}", self.target.pid, timeout.as_secs_f64().round()),
            "the JVM may be stopped, swapping or unable to reach a safepoint; try again when it answers jcmd",
        ).coded(Code::AttachTimeout).with("seconds", timeout.as_secs_f64())
    }

    fn connection(&self) -> Result<OwnedFd, Failure> {
        self.refuse_stopped()?;
        match self.own_socket()? {
            Some(socket) => Ok(socket),
            None => self.open_listener(),
        }
    }

    /// A connection to this JVM's own socket, if there is one. Its name proves nothing: JVMs in several pid namespaces
    /// may have the same pid and share a `/tmp`. (All HotSpot JVMs listen in their own process.)
    fn own_socket(&self) -> Result<Option<OwnedFd>, Failure> {
        let socket = match self.connect() {
            Ok(socket) => socket,
            // Refused: the socket of an earlier process with this pid. The JVM will replace it.
            Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(None),
            Err(error) => return Err(self.cannot_connect(error)),
        };
        let listener = peer::listener(&socket).map_err(|error| self.cannot_connect(error))?;
        // Checked last: while the process lives nobody else has its pid. A listener without a pid in the agent's own
        // namespace is not the JVM either.
        if listener == Some(self.target.pid) && self.target.stat().is_some() {
            unread::let_go(self.target);
            return Ok(Some(socket));
        }
        Err(self.not_its_own(listener))
    }

    fn not_its_own(&self, listener: Option<i32>) -> Failure {
        let (pid, path) = (self.target.pid, self.socket_path());
        let number = self.target.status.namespace_pid;
        let other = listener.map_or(
            "a process outside the agent's pid namespace".to_owned(),
            |other| format!("process {other}"),
        );
        Failure::new(
            format!("the attach socket {path} belongs to {other}, not to process {pid}: both have the number {number} in their pid namespaces and share /tmp"),
            "give each container a /tmp of its own, or end the other process first and try again",
        ).coded(Code::AttachSocketTaken)
    }

    /// Wait a moment for a stopped JVM to continue. A recording would be lost at its end without it.
    pub fn await_motion(&self) {
        let until = Instant::now() + STANDSTILL;
        let stands = || self.target.stat().is_some_and(|stat| stat.is_stopped());
        while stands() && Instant::now() < until {
            sleep(LOOK);
        }
    }

    fn refuse_stopped(&self) -> Result<(), Failure> {
        let pid = self.target.pid;
        match self.target.stat() {
            None => {
                Err(Failure::plain(format!("process {pid} has ended")).coded(Code::ProcessEnded))
            }
            Some(stat) if stat.is_stopped() => Err(Failure::new(
                format!(
                    "process {pid} is stopped (state {}): it cannot answer",
                    stat.state
                ),
                format!("continue it (kill -CONT {pid}, or end the debugger), then try again"),
            )
            .coded(Code::ProcessStopped)),
            Some(_) => Ok(()),
        }
    }

    fn cannot_connect(&self, error: Errno) -> Failure {
        Failure::new(
            format!(
                "cannot connect to {} of process {}: {error}",
                self.socket_path(),
                self.target.pid
            ),
            "connect as the JVM's own user, or as root",
        )
        .coded(Code::AttachFailed)
    }

    fn socket_path(&self) -> String {
        format!("/tmp/.java_pid{}", self.target.status.namespace_pid)
    }

    fn connect(&self) -> Result<OwnedFd, Errno> {
        let path = self.namespaces.path(&self.socket_path());
        connect(&path, self.target.status.uid, self.limit(OPEN_TIMEOUT))
    }

    /// If several JVMs have this pid and this `/tmp`, asking one while another opens its socket would replace that
    /// socket, or (without the trigger) dump its threads. So the second one looks again.
    fn open_listener(&self) -> Result<OwnedFd, Failure> {
        let tmp = stat(self.namespaces.path("/tmp")).map_or((0, 0), |tmp| file_id(&tmp));
        let place = (tmp.0, tmp.1, self.target.status.namespace_pid);
        let mut opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        let place = opening.entry(place).or_default().clone();
        drop(opening);
        let _turn = place.lock().unwrap_or_else(PoisonError::into_inner);
        match self.own_socket()? {
            Some(socket) => Ok(socket),
            None => self.ask_for_socket(),
        }
    }

    fn ask_for_socket(&self) -> Result<OwnedFd, Failure> {
        self.refuse_deaf()?;
        self.refuse_closed_tmp()?;
        let pid = self.target.pid;
        let (start, limit) = (Instant::now(), self.limit(OPEN_TIMEOUT));
        if limit < LEAST {
            let reason =
                format!("process {pid} was not asked to open its socket: no time was left");
            return Err(Failure::plain(reason));
        }
        if unread::has(self.target) {
            return self.wait_for_socket(start, limit);
        }
        let trigger = self.trigger()?;
        // Checked last: another tool may have had it opened just now.
        if let Some(socket) = self.own_socket()? {
            return Ok(socket);
        }
        let tmp = self.tmp().map_err(|error| self.cannot_connect(error))?;
        audit::note("signal", || format!("SIGQUIT to {pid}"));
        self.target.signal(Signal::QUIT).map_err(|error| {
            Failure::plain(format!("cannot send SIGQUIT to process {pid}: {error}"))
                .coded(Code::NotPermitted)
        })?;
        let opened = self.wait_for_socket(start, limit);
        if opened.is_err() && self.target.stat().is_some() {
            unread::keep(self.target, tmp, trigger);
        }
        opened
    }

    fn tmp(&self) -> Result<OwnedFd, Errno> {
        enter_folder(&self.namespaces.path("/tmp"))
    }

    /// Another JVM with the same pid may see it too, but reads it only after its own SIGQUIT. In `/tmp`, else in
    /// the JVM's working directory, where applications keep their own files.
    fn trigger(&self) -> Result<Trigger, Failure> {
        let name = format!(".attach_pid{}", self.target.status.namespace_pid);
        let cwd = self.namespaces.cwd.as_ref().ok_or(Errno::NOENT);
        let cwd = cwd.and_then(|cwd| cwd.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE));
        let mut tried = Vec::new();
        for (place, dir) in [("/tmp", self.tmp()), ("its working directory", cwd)] {
            match dir.and_then(|dir| Trigger::put(dir, &name, self.target.status.uid, place)) {
                Ok(trigger) => return Ok(trigger),
                Err(error) => tried.push(format!("{place}: {error}")),
            }
        }
        Err(Failure::new(
            format!(
                "cannot create {name} for process {}: {}",
                self.target.pid,
                tried.join("; ")
            ),
            "the JVM's user needs a writable /tmp",
        )
        .coded(Code::AttachFailed))
    }

    fn refuse_deaf(&self) -> Result<(), Failure> {
        let pid = self.target.pid;
        let status = self.target.status_now();
        match status.is_some_and(|status| status.catches_quit()) {
            true => Ok(()),
            false => Err(Failure::new(
                format!(
                    "process {pid} does not handle SIGQUIT: it is just starting, or is not a HotSpot JVM"
                ),
                "try again in a moment",
            )
            .coded(Code::NotReady)),
        }
    }

    /// The JVM does not say when the socket is there, so the agent polls, ever less often.
    fn wait_for_socket(&self, start: Instant, limit: Duration) -> Result<OwnedFd, Failure> {
        let mut pause = Duration::from_millis(5);
        loop {
            match self.own_socket()? {
                Some(socket) => return Ok(socket),
                None => self.refuse_stopped()?,
            }
            if start.elapsed() > limit {
                return Err(Failure::new(
                    format!(
                        "process {} did not open {} within {} s after SIGQUIT",
                        self.target.pid,
                        self.socket_path(),
                        limit.as_secs_f64().round()
                    ),
                    "attach may be disabled, /tmp not writable for the JVM, or the JVM unable to reach a safepoint",
                ).coded(Code::AttachTimeout).with("seconds", limit.as_secs_f64()));
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }
}

/// The JVM asks the kernel for the user who connects.
fn connect(path: &str, uid: u32, limit: Duration) -> Result<OwnedFd, Errno> {
    look(path, uid)?;
    peer::connect(&SocketAddrUnix::new(path)?, limit)
}

/// Err: there is no socket of the JVM's user.
fn look(path: &str, uid: u32) -> Result<(), Errno> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(Errno::NOTSOCK);
    }
    match stat.st_uid == uid {
        true => Ok(()),
        false => Err(Errno::PERM),
    }
}
