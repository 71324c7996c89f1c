//! The chunks of a recording that goes on. Each can be read by itself once it is finished, and then its place on the
//! disk is given back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8] = b"FLR\0";
const HEADER: usize = 68;

/// Where the last finished chunk ends, in bytes, and when it ended, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    pub to: u64,
    pub until: i64,
}

/// The last finished chunk behind a place where one begins; None if there is none yet. The JVM's user may write
/// anything there.
pub fn finished(file: &File, from: u64) -> io::Result<Option<Finished>> {
    let size = file.metadata()?.len();
    let mut found = None;
    let mut at = from;
    loop {
        let mut header = [0; HEADER];
        match file.read_exact_at(&mut header, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(found),
            read => read?,
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&header[at..at + 8]);
            i64::from_be_bytes(word)
        };
        let (bytes, start, duration) = (word(8), word(32), word(40));
        // The profiler writes these when the chunk is over.
        let ends = u64::try_from(bytes).ok().filter(|_| duration > 0);
        let ends = ends.and_then(|bytes| at.checked_add(bytes));
        match ends
            .filter(|end| header.starts_with(MAGIC) && *end >= at + HEADER as u64 && *end <= size)
        {
            Some(end) => at = end,
            None => return Ok(found),
        }
        found = Some(Finished {
            to: at,
            until: start.saturating_add(duration) / 1000,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{memfd_create, MemfdFlags};

    use super::*;

    fn chunk(bytes: i64, duration: i64) -> Vec<u8> {
        let mut chunk = vec![0; HEADER + 32];
        chunk[..4].copy_from_slice(MAGIC);
        for (at, word) in [(8, bytes), (32, 5_000_000_000), (40, duration)] {
            chunk[at..at + 8].copy_from_slice(&word.to_be_bytes());
        }
        chunk
    }

    #[test]
    fn chunks_that_are_finished() {
        let end = |to, seconds: i64| {
            Some(Finished {
                to,
                until: seconds * 1_000_000,
            })
        };
        for (chunks, from, want) in [
            (
                vec![
                    chunk(100, 1_000_000_000),
                    chunk(100, 2_000_000_000),
                    chunk(0, 0),
                ],
                0,
                end(200, 7),
            ),
            (
                vec![chunk(100, 1_000_000_000), chunk(100, 2_000_000_000)],
                100,
                end(200, 7),
            ),
            (vec![chunk(100, 1_000_000_000), chunk(0, 0)], 100, None),
            (
                vec![chunk(100, 1_000_000_000), chunk(101, 1)],
                0,
                end(100, 6),
            ),
            (vec![chunk(-1, 1)], 0, None),
            (vec![chunk(67, 1)], 0, None),
            (vec![chunk(100, 1), b"FLX".repeat(40)], 0, end(100, 5)),
            (vec![], 0, None),
        ] {
            let mut file = File::from(memfd_create("chunks", MemfdFlags::CLOEXEC).unwrap());
            file.write_all(&chunks.concat()).unwrap();
            assert_eq!(finished(&file, from).unwrap(), want);
        }
    }
}
