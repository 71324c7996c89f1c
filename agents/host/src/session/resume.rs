//! A session that continues over another connection.
//!
//! An agent whose results its coordinator may want to fetch listens at an abstract socket, which is not a file and ends
//! with the process. The coordinator starts a second agent on the host. It hands its stdin and stdout to the first one,
//! and ends with it. Each end asks the kernel for the user at the other end. The name of the socket is a hash of the
//! coordinator's token.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix,
};
use rustix::process::geteuid;

use crate::os::files::sha256;
use crate::os::peer;
use crate::os::threads::STACK;
use crate::session::inbox::{Inbox, Message};
use crate::wire::outcome::{Code, Failure};

const STEP: Duration = Duration::from_secs(10);
/// How long an agent that connects may take to send its request: others wait meanwhile.
const ASKING: Duration = Duration::from_secs(2);
/// How often an agent that waits for the end of the other one looks for signals.
const LOOK: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(20);
const DIGITS: usize = 32;
const LONGEST: usize = 64;
const ACCEPTED: u8 = 1;
/// The exit code of an agent whose request failed. It prints nothing: the other one may use its stdout by now.
const UNLENT: u8 = 1;

/// The coordinator's secret that identifies a session.
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

    fn name(&self) -> String {
        let hash = sha256(format!("hprofiler session {}", self.0).as_bytes());
        format!("hprofiler-{}", &hash[..DIGITS])
    }
}

/// Another agent's stdin and stdout, for a coordinator that has received this many bytes.
pub struct Successor {
    pub received: u64,
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub control: Control,
}

/// The connection to that agent, which waits for the end.
pub struct Control(UnixStream);

impl Control {
    pub fn accept(&mut self) -> io::Result<()> {
        self.0.write_all(&[ACCEPTED])
    }

    pub fn end(mut self, code: u8) {
        let _ = self.0.write_all(&[code]);
    }
}

/// Send the inbox each agent that comes with the token. `wanted` is set first: it ends a write that waits for a reader.
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

/// The request of a coordinator that connected. None: it is refused.
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

/// Hand this process's stdin and stdout to the agent of that token, and wait until it has ended or a signal comes. Returns
/// the exit code. None: there is no such agent.
pub fn forward(token: &Token, bytes: u64, inbox: &Inbox) -> Option<u8> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let mut keeper = match ask(token, bytes, [stdin.as_fd(), stdout.as_fd()]) {
        Answer::Nobody => return None,
        Answer::Unclear => return Some(UNLENT),
        Answer::Taken(keeper) => keeper,
    };
    let mut code = [UNLENT];
    let _ = keeper.set_read_timeout(Some(LOOK));
    loop {
        let waits = |error: &io::Error| {
            use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
            matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
        };
        match keeper.read(&mut code) {
            Err(error) if waits(&error) => {}
            _ => return Some(code[0]),
        }
        if let Some(Message::Signal(signal)) = inbox.next(Instant::now()) {
            return Some((128 + signal).clamp(1, 255) as u8);
        }
    }
}

enum Answer {
    /// There is none, or it does not have this place.
    Nobody,
    /// It uses the files from now on.
    Taken(UnixStream),
    /// It may or may not have taken them.
    Unclear,
}

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

fn offered(token: &Token, bytes: u64, files: [BorrowedFd<'_>; 2]) -> Option<UnixStream> {
    let address = SocketAddrUnix::new_abstract_name(token.name().as_bytes()).ok()?;
    let keeper = UnixStream::from(peer::connect(&address, STEP).ok()?);
    keeper.set_read_timeout(Some(STEP)).ok()?;
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
