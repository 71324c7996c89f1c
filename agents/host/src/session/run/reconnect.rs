//! A lost coordinator: what was recorded is kept for one lease, so that it can reconnect.

use std::time::Instant;

use super::{complain, End, Session};
use crate::os::lease;
use crate::recording::group::Recordings;
use crate::session::inbox::Connection;
use crate::session::resume::{self, Successor, Token};
use crate::wire::events::Event;

impl Session {
    /// When the session ends if nothing more is read.
    pub(super) fn lease_ends(&self) -> Instant {
        self.lost.unwrap_or_else(|| self.inbox.last_read()) + self.lease
    }

    /// A recording starts: from now on output is kept until it is received. If nobody could reconnect, nothing is kept.
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

    /// The coordinator is gone. Err: there is nothing that it could want to fetch.
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

    /// A request arrived on the old connection after all.
    pub(super) fn mark_found(&mut self) {
        if self.lost.is_some() {
            self.lost = None;
            self.output.revive();
        }
    }

    /// The coordinator has reconnected.
    pub(super) fn switch_connection(&mut self, mut successor: Successor) {
        let connection = match self.output.reaches(successor.received) {
            true => self.inbox.connection(successor.input).ok(),
            false => None,
        };
        let accepted = |_: &Connection| successor.control.accept().is_ok();
        let Some(connection) = connection.filter(accepted) else {
            // The output was told to stop waiting for the reader that it has.
            return self.output.revive();
        };
        self.lost = None;
        self.control = Some(successor.control);
        self.inbox.listen_to(connection);
        let found = Event::Resumed { found: true };
        self.output
            .switch_connection(successor.output, &found, successor.received);
    }

    /// Have the agent of that session continue here. This one then only waits for its end.
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
