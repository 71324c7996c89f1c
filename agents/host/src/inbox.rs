//! Everything the session waits for comes by one channel: requests, signals, reports of recordings.

use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::protocol::{read_input, Input};
use crate::recording::Report;

/// What can happen.
pub enum Happening {
    Input(Input),
    Signal(i32),
    Report(i32, Report),
}

impl From<(i32, Report)> for Happening {
    fn from((pid, report): (i32, Report)) -> Self {
        Self::Report(pid, report)
    }
}

/// The receiving end, and what it takes to see that the other side has gone silent.
pub struct Inbox {
    receiver: Receiver<Happening>,
    pub sender: Sender<Happening>,
    begin: Instant,
    /// When something was last read from stdin, in milliseconds since `begin`.
    heard: Arc<AtomicU64>,
}

impl Inbox {
    /// Start listening to stdin and signals.
    pub fn open() -> io::Result<Self> {
        let (sender, receiver) = channel();
        let inbox = Self {
            receiver,
            sender,
            begin: Instant::now(),
            heard: Arc::default(),
        };
        inbox.listen_to_signals()?;
        inbox.listen_to_stdin();
        Ok(inbox)
    }

    /// One that hears nothing but what is sent to it.
    #[cfg(test)]
    pub fn silent() -> Self {
        let (sender, receiver) = channel();
        Self {
            receiver,
            sender,
            begin: Instant::now(),
            heard: Arc::default(),
        }
    }

    fn listen_to_signals(&self) -> io::Result<()> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let sender = self.sender.clone();
        thread::spawn(move || {
            for signal in signals.forever() {
                let _ = sender.send(Happening::Signal(signal));
            }
        });
        Ok(())
    }

    fn listen_to_stdin(&self) {
        let stdin = Listener {
            begin: self.begin,
            heard: self.heard.clone(),
        };
        let sender = self.sender.clone();
        thread::spawn(move || {
            let mut stdin = BufReader::with_capacity(64 << 10, stdin);
            loop {
                let input = read_input(&mut stdin);
                let last = !matches!(input, Input::Request(..));
                if sender.send(Happening::Input(input)).is_err() || last {
                    return;
                }
            }
        });
    }

    /// The next happening, or None at `until`.
    pub fn next(&self, until: Instant) -> Option<Happening> {
        let patience = until.saturating_duration_since(Instant::now());
        self.receiver.recv_timeout(patience).ok()
    }

    /// When something was last read from stdin.
    pub fn heard(&self) -> Instant {
        self.begin + Duration::from_millis(self.heard.load(Ordering::Relaxed))
    }
}

/// stdin, with a note of when something came: a long payload is a sign of life as much as a ping.
struct Listener {
    begin: Instant,
    heard: Arc<AtomicU64>,
}

impl Read for Listener {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = io::stdin().lock().read(buffer)?;
        if count > 0 {
            self.heard
                .store(self.begin.elapsed().as_millis() as u64, Ordering::Relaxed);
        }
        Ok(count)
    }
}
