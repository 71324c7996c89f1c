//! A coordinator that is lost: what was recorded is kept for one lease, for it to come back by another connection.

use std::time::Instant;

use super::{complain, End, Session};
use crate::os::lease;
use crate::recording::group::Recordings;
use crate::session::resume::{self, Successor, Token};
use crate::wire::events::Event;

impl Session {
    /// Until when the coordinator is waited for.
    pub(super) fn lease_ends(&self) -> Instant {
        self.lost.unwrap_or_else(|| self.inbox.heard()) + self.lease
    }

    /// A recording begins: from now on nothing that is told may be lost. Where nobody could come back nothing is kept,
    /// and the recording goes on.
    pub(super) fn keep(&mut self) {
        let Some(token) = &self.token else {
            return;
        };
        let wanted = self.output.keep();
        if self.listens {
            return;
        }
        match resume::listen(token, self.inbox.sender.clone(), wanted) {
            Ok(()) => self.listens = true,
            Err(error) => {
                complain(&format!("cannot listen for another agent: {error}"));
                self.token = None;
                self.output.keep_no_more();
            }
        }
    }

    /// The coordinator is gone. Err where there is nothing that it could want to fetch.
    pub(super) fn lose(&mut self, why: &'static str, end: End) -> Result<(), End> {
        let records = self.recordings.as_ref().is_some_and(Recordings::is_started);
        if self.token.is_none() || !(records || self.output.is_awaited()) {
            return Err(end);
        }
        if self.lost.is_some() {
            return Ok(());
        }
        self.lost = Some(Instant::now());
        self.output.lose();
        if let Some(recordings) = &mut self.recordings {
            if let Some(seconds) = recordings.sampling() {
                self.output.send(&Event::Interrupted {
                    seconds,
                    reason: why,
                });
                recordings.stop();
            }
        }
        self.advance();
        Ok(())
    }

    /// It was silent, and is not any more.
    pub(super) fn mark_found(&mut self) {
        if self.lost.is_some() {
            self.lost = None;
            self.output.revive();
        }
    }

    /// It has come back by another connection.
    pub(super) fn switch_connection(&mut self, mut successor: Successor) {
        let reaches = self.output.reaches(successor.received);
        let Some(connection) = reaches.then(|| self.inbox.connection(successor.input)) else {
            self.output.revive(); // which was told to wait no longer for whoever reads now
            return;
        };
        // Without a thread to listen it is not now that it can go on: the coordinator tries again.
        let connection = match connection {
            Ok(connection) if successor.control.accept().is_ok() => connection,
            Ok(_) => return self.output.revive(),
            Err(_) => {
                successor.control.put_off();
                return self.output.revive();
            }
        };
        self.lost = None;
        self.control = Some(successor.control);
        self.inbox.listen_to(connection);
        let found = Event::Resumed { found: true };
        self.output
            .switch_connection(successor.output, &found, successor.received);
    }

    /// Have the agent of that session go on here; this one then only waits for its end.
    pub(super) fn resume(&mut self, token: String, received: u64) -> Result<(), End> {
        let asked = Token::new(token).and_then(|token| {
            self.refuse_busy("resume")?;
            Ok(token)
        });
        let token = asked.map_err(End::Refused)?;
        lease::hide();
        if let Some(code) = resume::forward(&token, received, &self.inbox) {
            return Err(End::Forwarded(code));
        }
        self.inbox.read_on();
        self.output.send(&Event::Resumed { found: false });
        Ok(())
    }

    pub(super) fn received(&mut self, bytes: u64) {
        self.output.received(bytes);
        if self.recordings.is_none() && !self.output.is_awaited() {
            self.output.keep_no_more();
        }
    }
}
