//! One channel for everything a session waits for: requests, signals, and reports of recordings.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::commands::dump::Dumped;
use crate::discovery::find::Matches;
use crate::os::threads::STACK;
use crate::recording::process::Report;
use crate::session::resume::Successor;
use crate::wire::requests::{Request, MAX_LINE, MAX_PAYLOAD};

pub enum Message {
    /// With the number of its connection.
    Input(u32, Input),
    Signal(i32),
    Report(i32, Report),
    Appeared(Matches),
    /// Of one process; None: all are done.
    Dump(Option<Box<Dumped>>),
    AuditPending,
    Successor(Successor),
}

pub struct Inbox {
    receiver: Receiver<Message>,
    pub sender: Sender<Message>,
    begin: Instant,
    connection: Connection,
}

/// A connection to a coordinator, which a thread of its own reads.
pub struct Connection {
    number: u32,
    /// When something was last read, in milliseconds since the inbox's `begin`.
    last_read: Arc<AtomicU64>,
    /// Each message has the thread read on: at the start, and after a `resume`.
    read_on: Sender<()>,
}

impl Inbox {
    /// Start listening to stdin and signals.
    pub fn open() -> io::Result<Self> {
        let mut inbox = Self::new();
        inbox.listen_to_signals()?;
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        inbox.listen_to(inbox.connection(stdin)?);
        Ok(inbox)
    }

    /// Another connection, of which nothing is read yet. Err: no thread can be started.
    pub fn connection(&self, input: OwnedFd) -> io::Result<Connection> {
        let number = self.connection.number + 1;
        let now = self.begin.elapsed().as_millis() as u64;
        let last_read = Arc::new(AtomicU64::new(now));
        let (read_on, may_read_on) = channel();
        let listener = Listener {
            input: input.into(),
            begin: self.begin,
            last_read: last_read.clone(),
        };
        let sender = self.sender.clone();
        let listen = move || {
            if may_read_on.recv().is_ok() {
                listener.listen(number, &sender, &may_read_on);
            }
        };
        thread::Builder::new().stack_size(STACK).spawn(listen)?;
        Ok(Connection {
            number,
            last_read,
            read_on,
        })
    }

    /// From now on only what arrives on this connection counts.
    pub fn listen_to(&mut self, connection: Connection) {
        self.connection = connection;
        self.read_on();
    }

    /// What follows a `resume` is for this agent after all.
    pub fn read_on(&self) {
        let _ = self.connection.read_on.send(());
    }

    /// An inbox without a connection. It receives only what is sent to `sender`.
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        Self {
            receiver,
            sender,
            begin: Instant::now(),
            connection: Connection {
                number: 0,
                last_read: Arc::default(),
                read_on: channel().0,
            },
        }
    }

    fn listen_to_signals(&self) -> io::Result<()> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let sender = self.sender.clone();
        let listen = move || {
            for signal in signals.forever() {
                let _ = sender.send(Message::Signal(signal));
            }
        };
        thread::Builder::new().stack_size(STACK).spawn(listen)?;
        Ok(())
    }

    /// None: nothing came before `until`.
    pub fn next(&self, until: Instant) -> Option<Message> {
        loop {
            let patience = until.saturating_duration_since(Instant::now());
            match self.receiver.recv_timeout(patience).ok()? {
                Message::Input(connection, _) if connection != self.connection.number => {}
                message => return Some(message),
            }
        }
    }

    pub fn next_report(&self, until: Instant) -> Option<(i32, Report)> {
        loop {
            if let Message::Report(pid, report) = self.next(until)? {
                return Some((pid, report));
            }
        }
    }

    pub fn last_read(&self) -> Instant {
        self.begin + Duration::from_millis(self.connection.last_read.load(Ordering::Relaxed))
    }
}

/// What the coordinator sends. Every read renews the lease: a long payload shows that it lives as much as a ping.
struct Listener {
    input: File,
    begin: Instant,
    last_read: Arc<AtomicU64>,
}

impl Listener {
    /// Until the end of the input, or a bad request. What follows a `resume` may be for another process to read.
    fn listen(self, connection: u32, sender: &Sender<Message>, may_read_on: &Receiver<()>) {
        let mut input = BufReader::with_capacity(64 << 10, self);
        loop {
            let request = read_input(&mut input);
            let last = !matches!(request, Input::Request(..));
            let stays = !matches!(request, Input::Request(Request::Resume { .. }, _));
            if sender.send(Message::Input(connection, request)).is_err() || last {
                return;
            }
            if !stays && may_read_on.recv().is_err() {
                return;
            }
        }
    }
}

impl Read for Listener {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        if count > 0 {
            let now = self.begin.elapsed().as_millis() as u64;
            self.last_read.store(now, Ordering::Relaxed);
        }
        Ok(count)
    }
}

#[derive(Debug)]
pub enum Input {
    Request(Request, Vec<u8>),
    /// Not the protocol: the session cannot continue.
    Bad(String),
    /// Perhaps in the middle of a line or payload.
    Closed,
}

/// Read the next request and its payload; never more than the protocol's limits.
pub fn read_input(from: &mut impl BufRead) -> Input {
    let mut line = Vec::new();
    match from
        .by_ref()
        .take(MAX_LINE as u64 + 1)
        .read_until(b'\n', &mut line)
    {
        Err(_) | Ok(0) => return Input::Closed,
        Ok(_) if line.len() > MAX_LINE => {
            return Input::Bad("a request line is longer than 16 MiB".into())
        }
        Ok(_) if line.last() != Some(&b'\n') => return Input::Closed,
        Ok(_) => {}
    }
    let request: Request = match serde_json::from_slice(&line) {
        Ok(request) => request,
        Err(error) => return Input::Bad(format!("a request cannot be understood: {error}")),
    };
    match request.payload_size() {
        size if size > MAX_PAYLOAD => Input::Bad(format!(
            "a payload of {size} bytes is over the limit of 64 MiB"
        )),
        size => match read_payload(from, size) {
            Ok(payload) => Input::Request(request, payload),
            Err(_) => Input::Closed,
        },
    }
}

/// The buffer grows with what arrives: a false size reserves nothing.
fn read_payload(from: &mut impl BufRead, size: u64) -> io::Result<Vec<u8>> {
    let mut payload = Vec::new();
    from.by_ref().take(size).read_to_end(&mut payload)?;
    if payload.len() as u64 == size {
        Ok(payload)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Input {
        read_input(&mut BufReader::new(bytes))
    }

    #[test]
    fn a_request_and_its_payload() {
        let input =
            read(b"{\"type\":\"put\",\"name\":\"l\",\"sha256\":\"ab\",\"size\":3}\nxyzrest");
        assert!(
            matches!(input, Input::Request(Request::Put { size: 3, .. }, payload) if payload == b"xyz")
        );
    }

    #[test]
    fn what_is_not_the_protocol_is_refused() {
        assert!(matches!(read(b"hello\n"), Input::Bad(_)));
        assert!(matches!(read(b"{\"type\":\"dance\"}\n"), Input::Bad(_)));
        assert!(matches!(
            read(b"{\"type\":\"put\",\"sha256\":\"ab\",\"size\":999999999999}\n"),
            Input::Bad(_)
        ));
        assert!(matches!(read(&vec![b' '; MAX_LINE + 2]), Input::Bad(_)));
    }
}
