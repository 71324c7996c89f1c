//! The one way out: events and payloads on stdout.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd};

use crate::protocol::Event;
use crate::recording::Over;
use crate::recordings::Audience;

/// A pipe that polls as writable takes this much (PIPE_BUF) without blocking.
const PIECE: usize = 4096;

/// Writes events; once the coordinator is gone every further write does nothing.
pub struct Output {
    gone: bool,
    patience: Duration,
}

impl Output {
    pub fn new() -> Self {
        Self {
            gone: false,
            patience: Duration::from_secs(60),
        }
    }

    /// How long a coordinator that reads nothing is waited for.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// True once a write failed: nobody listens any more.
    pub fn gone(&self) -> bool {
        self.gone
    }

    pub fn send(&mut self, event: &Event) {
        self.send_with(event, &[]);
    }

    /// Send an event and the payload whose size it names.
    pub fn send_with(&mut self, event: &Event, payload: &[u8]) {
        let Ok(mut line) = serde_json::to_vec(event) else {
            return;
        };
        line.push(b'\n');
        self.write(&line);
        self.write(payload);
    }

    /// Send an event and a file of the size it names. Of a file that was cut since, the rest is zeros: it then has
    /// another hash than the event says, which the coordinator sees.
    pub fn send_file(&mut self, event: &Event, file: &mut File, size: u64) {
        self.send(event);
        let _ = file.rewind();
        let mut padded = file.chain(io::repeat(0)).take(size);
        let mut piece = vec![0; 1 << 16];
        while !self.gone && padded.limit() > 0 {
            match padded.read(&mut piece) {
                Ok(count) => self.write(&piece[..count]),
                // Nothing can take the place of what was announced.
                Err(_) => self.gone = true,
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if !self.gone {
            self.gone = write_all(bytes, self.patience).is_err();
        }
    }
}

impl Audience for Output {
    fn tell(&mut self, event: &Event) {
        self.send(event);
    }

    fn result(&mut self, over: Over) {
        for (head, bytes) in over.profiles {
            self.send_with(&Event::Profile(head), &bytes);
        }
        if let Some((head, mut raw)) = over.raw {
            self.send_file(&Event::Raw(head), &mut raw.file, raw.size);
        }
        self.send(&Event::Outcome(over.outcome));
    }
}

/// Write without ever blocking for longer than `patience`: a coordinator that stalls must not keep
/// the agent from seeing that its lease is over.
fn write_all(mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    let stdout = io::stdout();
    let stdout = stdout.as_fd();
    while !bytes.is_empty() {
        wait_writable(stdout, patience)?;
        let piece = &bytes[..bytes.len().min(PIECE)];
        match rustix::io::write(stdout, piece) {
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn wait_writable(fd: BorrowedFd<'_>, patience: Duration) -> io::Result<()> {
    let timeout = Timespec {
        tv_sec: patience.as_secs().max(1) as i64,
        tv_nsec: 0,
    };
    loop {
        match poll(
            &mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)],
            Some(&timeout),
        ) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
impl Output {
    /// One that nobody listens to.
    pub fn unheard() -> Self {
        Self {
            gone: true,
            ..Self::new()
        }
    }
}
