//! A session that goes on over another connection.
//!
//! While an agent has what its coordinator may want to fetch it listens at an abstract socket: no file, gone with the
//! process. The coordinator starts a second agent on the host, which lends the first its stdin and stdout, and ends
//! with it. Each end asks the kernel whose process is at the other; the name of the socket follows from a
//! secret of the coordinator's, and does not tell it.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::geteuid;
use rustix::{cmsg_space, net};

use crate::os::files::sha256;
use crate::os::peer;
use crate::os::threads::STACK;
use crate::session::inbox::{Inbox, Message};
use crate::wire::outcome::{Code, Failure};

/// How long either end may take for a step.
const STEP: Duration = Duration::from_secs(10);
/// How long one that connects may take to say what it wants: others wait meanwhile.
const ASKING: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
const DIGITS: usize = 32;
/// A token, a space and a number.
const LONGEST: usize = 64;
const ACCEPTED: u8 = 1;
const LATER: u8 = 2;
/// The exit code of an agent that could not be lent, and says nothing: its stdout may be the other's by now.
const UNLENT: u8 = 1;

/// The coordinator's secret, by which a session is known.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn new(text: String) -> Result<Self, Failure> {
        let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match digits && text.len() == DIGITS {
            true => Ok(Self(text)),
            false => Err(
                Failure::plain(format!("a token is {DIGITS} hexadecimal digits"))
                    .coded(Code::BadRequest),
            ),
        }
    }

    /// The name of the socket.
    fn name(&self) -> String {
        let hash = sha256(format!("hprofiler session {}", self.0).as_bytes());
        format!("hprofiler-{}", &hash[..DIGITS])
    }
}

/// Another agent's stdin and stdout, for a coordinator that has received so many bytes.
pub struct Successor {
    pub received: u64,
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub control: Control,
}

/// The connection to that agent, which waits for the end.
pub struct Control(UnixStream);

impl Control {
    /// From now on its stdin and stdout are used.
    pub fn accept(&mut self) -> io::Result<()> {
        self.0.write_all(&[ACCEPTED])
    }

    /// It cannot be now.
    pub fn put_off(mut self) {
        let _ = self.0.write_all(&[LATER]);
    }

    /// Have it end with this exit code.
    pub fn end(mut self, code: u8) {
        let _ = self.0.write_all(&[code]);
    }
}

/// Tell the inbox of each agent that comes with the token. `wanted` is set before, which ends waits for a reader.
pub fn listen(token: &Token, sender: Sender<Message>, wanted: Arc<AtomicBool>) -> io::Result<()> {
    let name = SocketAddr::from_abstract_name(token.name())?;
    let listener = UnixListener::bind_addr(&name)?;
    let token = token.clone();
    let thread = thread::Builder::new()
        .name("resume".to_owned())
        .stack_size(STACK);
    thread.spawn(move || {
        for connection in listener.incoming() {
            let Ok(connection) = connection else {
                thread::sleep(PAUSE); // no descriptor is free
                continue;
            };
            if let Some(successor) = asked(connection, &token) {
                wanted.store(true, Ordering::Relaxed);
                if sender.send(Message::Successor(successor)).is_err() {
                    return;
                }
            }
        }
    })?;
    Ok(())
}

/// What somebody wants who connected; None where he is not to have it.
fn asked(connection: UnixStream, token: &Token) -> Option<Successor> {
    if !is_own(&connection) {
        return None;
    }
    connection.set_write_timeout(Some(STEP)).ok()?;
    let (text, mut files) = received(&connection, Instant::now() + ASKING)?;
    let (theirs, count) = text.strip_suffix('\n')?.split_once(' ')?;
    let (output, input) = (files.pop()?, files.pop()?);
    (theirs == token.0 && files.is_empty()).then_some(Successor {
        received: count.parse().ok()?,
        input,
        output,
        control: Control(connection),
    })
}

fn is_own(connection: &UnixStream) -> bool {
    peer::user(connection) == Ok(geteuid().as_raw())
}

/// A line and the files that came with it.
fn received(connection: &UnixStream, until: Instant) -> Option<(String, Vec<OwnedFd>)> {
    let (mut text, mut files) = (Vec::new(), Vec::new());
    while text.last() != Some(&b'\n') && text.len() <= LONGEST && files.len() <= 2 {
        let left = until.checked_duration_since(Instant::now())?;
        set_socket_timeout(connection, Timeout::Recv, Some(left.max(PAUSE))).ok()?;
        let mut piece = [0; LONGEST];
        let mut space = [std::mem::MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(
            connection,
            &mut [IoSliceMut::new(&mut piece)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        );
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                files.extend(rights);
            }
        }
        match got.ok()?.bytes {
            0 => return None,
            count => text.extend(&piece[..count]),
        }
    }
    Some((String::from_utf8(text).ok()?, files))
}

/// Lend this process's stdin and stdout to the agent of that token, and wait until it has ended or a signal comes; the
/// exit code. None where there is no such agent.
pub fn forward(token: &Token, bytes: u64, inbox: &Inbox) -> Option<u8> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let sender = inbox.sender.clone();
    let (to_wait_for, keepers) = channel::<UnixStream>();
    let thread = thread::Builder::new().stack_size(STACK);
    // Made first: nothing may fail here once the other agent writes.
    let waiting = thread.spawn(move || {
        let Ok(mut keeper) = keepers.recv() else {
            return;
        };
        let mut code = [UNLENT];
        let _ = keeper.set_read_timeout(None);
        let _ = keeper.read(&mut code);
        let _ = sender.send(Message::Ended(code[0]));
    });
    if waiting.is_err() {
        return Some(UNLENT);
    }
    match ask(token, bytes, [stdin.as_fd(), stdout.as_fd()]) {
        Answer::Nobody => return None,
        Answer::Unclear => return Some(UNLENT),
        Answer::Taken(keeper) => drop(to_wait_for.send(keeper)),
    }
    loop {
        match inbox.next(Instant::now() + STEP) {
            Some(Message::Ended(code)) => return Some(code),
            Some(Message::Signal(signal)) => return Some((128 + signal).clamp(1, 255) as u8),
            _ => {}
        }
    }
}

/// What came of asking for the agent of a token.
enum Answer {
    /// There is none, or it has no such place.
    Nobody,
    /// It uses the files from now on.
    Taken(UnixStream),
    /// It was asked, and may or may not have taken them.
    Unclear,
}

/// Offer the files to the agent.
fn ask(token: &Token, bytes: u64, files: [BorrowedFd<'_>; 2]) -> Answer {
    let Some(mut keeper) = offered(token, bytes, files) else {
        return Answer::Nobody;
    };
    let mut answer = [0];
    match keeper.read(&mut answer) {
        Ok(0) => Answer::Nobody,
        Ok(_) if answer[0] == ACCEPTED => Answer::Taken(keeper),
        _ => Answer::Unclear,
    }
}

/// A connection to the agent, to which the files were sent.
fn offered(token: &Token, bytes: u64, files: [BorrowedFd<'_>; 2]) -> Option<UnixStream> {
    let keeper = connected(&token.name())?;
    if !is_own(&keeper) {
        return None;
    }
    let text = format!("{} {bytes}\n", token.0);
    let mut space = [std::mem::MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&files));
    let text = [IoSlice::new(text.as_bytes())];
    sendmsg(&keeper, &text, &mut ancillary, SendFlags::NOSIGNAL).ok()?;
    Some(keeper)
}

/// Somebody may keep the queue of the socket full; no longer than a while is waited for a place in it.
fn connected(name: &str) -> Option<UnixStream> {
    let until = Instant::now() + STEP;
    let address = net::SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()?;
    let socket = net::socket_with(
        net::AddressFamily::UNIX,
        net::SocketType::STREAM,
        net::SocketFlags::CLOEXEC,
        None,
    )
    .ok()?;
    set_socket_timeout(&socket, Timeout::Send, Some(STEP)).ok()?;
    set_socket_timeout(&socket, Timeout::Recv, Some(STEP)).ok()?;
    loop {
        match net::connect(&socket, &address) {
            Ok(()) => return Some(socket.into()),
            Err(Errno::INTR) if Instant::now() < until => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests;
