//! The output: events and payloads, on stdout or on its replacement.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{open, Mode, OFlags};
use rustix::net::{shutdown, Shutdown};
use rustix::stdio::{dup2_stderr, dup2_stdout};

use crate::os::audit;
use crate::os::files::is_ready;
use crate::os::lease;
use crate::recording::group::EventSink;
use crate::recording::process::{Finished, PartMessages};
use crate::resources::folding::Waiting;
use crate::session::backlog::{Backlog, Chunk};
use crate::wire::events::{Event, ProfileHead};

/// A pipe that polls as writable takes this much (PIPE_BUF) without blocking.
const PIECE: usize = 4096;
/// How long one check takes whether something can be written.
const LOOK: Duration = Duration::from_millis(200);
/// How long to wait for a coordinator that reads nothing, when all is done.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Writes events. Once the coordinator is gone nothing is written any more. What it has not received is kept if it may
/// reconnect.
pub struct Output {
    /// None: this process's own stdout.
    to: Option<OwnedFd>,
    gone: bool,
    /// Nothing can be written there any more.
    broken: bool,
    patience: Duration,
    backlog: Backlog,
    written: u64,
    keeps: bool,
    /// Another connection is about to replace this one.
    wanted: Arc<AtomicBool>,
}

impl Output {
    pub fn new() -> Self {
        Self {
            to: None,
            gone: false,
            broken: false,
            patience: Duration::from_secs(60),
            backlog: Backlog::default(),
            written: 0,
            keeps: false,
            wanted: Arc::default(),
        }
    }

    /// How long to wait for a coordinator that reads nothing.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Whether a write failed.
    pub fn gone(&self) -> bool {
        self.gone
    }

    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// From now on output is kept until it is received. Returns the flag that ends a wait for a reader that is gone.
    pub fn keep(&mut self) -> Arc<AtomicBool> {
        self.keeps = true;
        self.wanted.clone()
    }

    pub fn keep_no_more(&mut self) {
        self.keeps = false;
        self.backlog.forget(self.written);
    }

    /// Everything before this place was received.
    pub fn received(&mut self, until: u64) {
        self.backlog.forget(until.min(self.written));
    }

    /// Whether something that is kept was not received yet.
    pub fn is_awaited(&self) -> bool {
        self.keeps && !self.backlog.is_empty()
    }

    pub fn lose(&mut self) {
        self.gone = true;
    }

    /// Continue after a silence of the coordinator.
    pub fn revive(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        self.gone = self.broken;
        self.flush();
    }

    /// Continue at this place on another connection, after an event that belongs to this connection alone.
    pub fn switch_connection(&mut self, to: OwnedFd, event: &Event, received: u64) {
        self.received(received);
        (self.to, self.written, self.broken) = (Some(to), received, false);
        self.wanted.store(false, Ordering::Relaxed);
        let written = line(event)
            .iter()
            .flat_map(|line| line.chunks(PIECE))
            .try_for_each(|piece| self.write(piece).map(|_| ()));
        self.broken = written.is_err();
        self.revive();
    }

    pub fn reaches(&self, received: u64) -> bool {
        self.keeps && self.backlog.reaches(received)
    }

    pub fn send(&mut self, event: &Event) {
        self.send_audit();
        self.put(event, None);
    }

    /// Send an event and the payload whose size it names.
    pub fn send_with(&mut self, event: &Event, payload: Chunk) {
        self.send_audit();
        self.put(event, Some(payload));
    }

    /// Send the actions since the last call, before the answer that follows from them.
    pub fn send_audit(&mut self) {
        for action in audit::take() {
            self.put(&Event::Audit(action), None);
        }
    }

    /// Send the last actions.
    pub fn send_last_audit(&mut self) {
        self.patience = self.patience.min(LAST_WORD);
        self.send_audit();
    }

    /// Send nothing any more. Whoever waits for the end of stdout, or of stderr, sees it.
    pub fn close(&mut self) {
        (self.gone, self.broken) = (true, true);
        self.keep_no_more();
        // Stdin may be the same socket, and is still open.
        let _ = shutdown(io::stdout(), Shutdown::Write);
        let _ = self.to.take().map(|to| shutdown(to, Shutdown::Write));
        if let Ok(nowhere) = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
            let _ = dup2_stdout(&nowhere);
            let _ = dup2_stderr(&nowhere);
        }
    }

    fn send_profiles(&mut self, profiles: Vec<(ProfileHead, Waiting)>) {
        for (head, bytes) in profiles {
            self.send_with(&Event::Profile(head), Chunk::Result(bytes));
        }
    }

    fn put(&mut self, event: &Event, payload: Option<Chunk>) {
        let Some(line) = line(event) else {
            return;
        };
        self.backlog.add(Chunk::Bytes(line));
        if let Some(payload) = payload {
            self.backlog.add(payload);
        }
        self.flush();
    }

    /// Over a slow connection this may take far longer than a lease. So each piece has its own time limit, and renews
    /// the lease that is shown.
    fn flush(&mut self) {
        let mut piece = [0; PIECE];
        while !self.gone {
            let count = self.backlog.read(self.written, &mut piece);
            if count == 0 {
                break;
            }
            lease::show(Instant::now() + self.patience);
            match self.write(&piece[..count]) {
                Ok(written) => self.written += written as u64,
                Err(error) => {
                    self.gone = true;
                    self.broken = error.kind() != io::ErrorKind::TimedOut;
                }
            }
        }
        if !self.keeps {
            if self.gone {
                self.written = self.backlog.end();
            }
            self.backlog.forget(self.written);
        }
    }

    /// Write a part of it, within the time limit: a coordinator that stalls must not keep the agent from noticing the
    /// end of its lease.
    fn write(&self, piece: &[u8]) -> io::Result<usize> {
        let stdout = io::stdout();
        let to = match &self.to {
            Some(to) => to.as_fd(),
            None => stdout.as_fd(),
        };
        let until = Instant::now() + self.patience;
        loop {
            if !is_ready(to, PollFlags::OUT, LOOK)? {
                if Instant::now() >= until || self.is_wanted() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                continue;
            }
            match rustix::io::write(to, piece) {
                Ok(written) => return Ok(written),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl EventSink for Output {
    fn send_event(&mut self, event: &Event) {
        self.send(event);
    }

    fn send_part(&mut self, part: PartMessages) {
        self.send_profiles(part.profiles);
        if let Some(pauses) = part.pauses {
            self.send(&Event::Pauses(pauses));
        }
    }

    fn send_result(&mut self, over: Finished) {
        self.send_profiles(over.profiles);
        if let Some((head, raw)) = over.raw {
            self.send_with(&Event::Raw(head), Chunk::File(raw.file, raw.size));
        }
        if let Some(pauses) = over.pauses {
            self.send(&Event::Pauses(pauses));
        }
        self.send(&Event::Outcome(over.outcome));
    }
}

fn line(event: &Event) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(event).ok()?;
    line.push(b'\n');
    Some(line)
}

#[cfg(test)]
impl Output {
    pub fn unheard() -> Self {
        Self {
            gone: true,
            ..Self::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn event(text: &str) -> Event {
        Event::Stored {
            sha256: text.to_owned(),
        }
    }

    fn all_of(mut from: UnixStream) -> String {
        let mut output_text = String::new();
        from.read_to_string(&mut output_text).unwrap();
        output_text
    }

    #[test]
    fn what_was_not_received_is_told_again() {
        let mut output = Output::unheard();
        output.keep();
        output.send(&event("one"));
        output.send_with(&event("two"), Chunk::Bytes(b"payload\n".to_vec()));
        let all = "{\"type\":\"stored\",\"sha256\":\"one\"}\n{\"type\":\"stored\",\"sha256\":\"two\"}\npayload\n";
        for at in [0, 5, 33, 70] {
            assert!(output.reaches(at));
            let (to, from) = UnixStream::pair().unwrap();
            output.switch_connection(to.into(), &event("new"), at);
            assert!(!output.gone());
            drop(output.to.take());
            output.gone = true;
            let output_text = all_of(from);
            assert!(
                output_text.starts_with("{\"type\":\"stored\",\"sha256\":\"new\"}\n"),
                "{output_text}"
            );
            assert!(output_text.ends_with(&all[at as usize..]), "{output_text}");
        }
        assert!(!output.reaches(0) && !output.reaches(1000));
        output.received(output.backlog.end());
        assert!(!output.is_awaited());
    }
}
