//! Bytes that a thread of its own writes, while further blocks are made.

use std::io::{self, Write};
use std::mem;
use std::panic::resume_unwind;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;

use crate::profile::Result;

/// How much is handed over at once.
const BLOCK: usize = 512 << 10;
/// Blocks that may wait; their memory is used again.
const MOST_WAITING: usize = 2;

/// Lets `write` write to `out`, which another thread does; returns `out` with everything written to it.
pub fn write_by_thread<W: Write + Send>(
    mut out: W,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<W> {
    thread::scope(|scope| {
        let (full, to_write) = sync_channel::<Vec<u8>>(MOST_WAITING);
        let (written, empty) = sync_channel(MOST_WAITING + 1);
        let writer = thread::Builder::new().spawn_scoped(scope, move || -> io::Result<W> {
            for mut block in to_write {
                out.write_all(&block)?;
                block.clear();
                // Nobody waits for it any more: it was the last.
                let _ = written.try_send(block);
            }
            Ok(out)
        })?;
        let mut blocks = Blocks {
            block: Vec::with_capacity(BLOCK),
            full,
            empty,
        };
        let made = write(&mut blocks).and_then(|()| Ok(blocks.hand_over()?));
        drop(blocks);
        // What ended the writing ended the making, too.
        let out = writer.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        made.map(|()| out)
    })
}

struct Blocks {
    block: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
}

impl Blocks {
    fn hand_over(&mut self) -> io::Result<()> {
        let empty = self.empty.try_recv();
        let empty = empty.unwrap_or_else(|_| Vec::with_capacity(BLOCK));
        let full = mem::replace(&mut self.block, empty);
        let ended = |_| io::ErrorKind::BrokenPipe.into();
        self.full.send(full).map_err(ended)
    }
}

impl Write for Blocks {
    /// Blocks are filled to the last byte: what the kernel gets in whole pages costs it a third.
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = BLOCK - self.block.len();
        if bytes.len() < room {
            self.block.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        self.block.extend_from_slice(&bytes[..room]);
        self.hand_over()?;
        Ok(room)
    }

    /// Blocks are handed over when they are full, and the last one at the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
