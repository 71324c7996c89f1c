//! perf's stream as it comes, until it ends or nobody waits for the rest.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::process::ChildStdout;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::Arc;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;

use super::stream::Progress;
use crate::engine::api::Shared;

/// How far a recording has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// perf has opened its events.
    Opened,
    /// They count.
    Recording,
}

/// A stream that tells how it begins, and how it grows.
pub struct Heard {
    stream: ChildStdout,
    /// Once its other end is closed, what is there by then is the last.
    until: UnixStream,
    shared: Arc<Shared>,
    progress: Progress,
    /// Whether it was told that it is opened, and that it records.
    begun: [bool; 2],
    began: Sender<Begin>,
    samples: Arc<AtomicU64>,
}

impl Heard {
    /// `samples`: how many there were by now.
    pub fn new(
        stream: ChildStdout,
        until: UnixStream,
        shared: Arc<Shared>,
        began: Sender<Begin>,
        samples: Arc<AtomicU64>,
    ) -> Self {
        Self {
            stream,
            until,
            shared,
            progress: Progress::new(),
            begun: [false; 2],
            began,
            samples,
        }
    }

    /// Wait for more; false where none is waited for any longer.
    fn comes(&self) -> io::Result<bool> {
        let wanted = PollFlags::IN;
        let mut fds = [
            PollFd::new(&self.stream, wanted),
            PollFd::new(&self.until, wanted),
        ];
        loop {
            match poll(&mut fds, None) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if fds[1].revents().is_empty() {
            // Meanwhile perf waits, and what the kernel has no room for it counts as lost.
            self.shared.limits.rest();
        }
        Ok(!fds[0].revents().is_empty())
    }
}

impl Read for Heard {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.comes()? {
            return Ok(0);
        }
        let read = self.stream.read(buffer)?;
        let now = [read > 0, self.progress.follow(&buffer[..read])];
        for (step, at) in [Begin::Opened, Begin::Recording].into_iter().zip(0..) {
            if now[at] && !std::mem::replace(&mut self.begun[at], true) {
                // Nobody may wait any more.
                let _ = self.began.send(step);
            }
        }
        self.samples
            .store(self.progress.samples(), Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::sampling::AgentLimits;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;

    /// Of a program that says something and goes on, so that its output has no end.
    #[test]
    fn what_is_there_is_read_and_no_end_is_waited_for() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "printf 12345678; exec sleep 600"]);
        let mut program = command.stdout(Stdio::piped()).spawn().unwrap();
        let (cut, until) = UnixStream::pair().unwrap();
        let shared = Arc::new(Shared::within(&AgentLimits::default(), 1));
        let (began, begin) = channel();
        let stream = program.stdout.take().unwrap();
        let mut heard = Heard::new(stream, until, shared, began, Arc::default());
        let mut bytes = [0; 8];
        heard.read_exact(&mut bytes[..4]).unwrap();
        assert_eq!(begin.recv(), Ok(Begin::Opened));
        drop(cut);
        heard.read_exact(&mut bytes[4..]).unwrap();
        assert_eq!(&bytes, b"12345678");
        assert_eq!(heard.read(&mut bytes).unwrap(), 0);
        program.kill().unwrap();
        program.wait().unwrap();
    }
}
