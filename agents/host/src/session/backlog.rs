//! The end of the output: the bytes that the coordinator may not have received yet.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::resources::folding::Waiting;

/// A stream whose beginning is forgotten as it is received. Places are counted from its first byte.
#[derive(Default)]
pub struct Backlog {
    chunks: VecDeque<Chunk>,
    begin: u64,
    end: u64,
}

pub enum Chunk {
    Bytes(Vec<u8>),
    Result(Waiting),
    /// With its size.
    File(File, u64),
}

impl Chunk {
    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Result(bytes) => bytes.as_ref().len() as u64,
            Self::File(_, size) => *size,
        }
    }

    /// The bytes at a place. If a file was cut or cannot be read, the rest is zeros: the coordinator sees the wrong
    /// hash.
    fn read(&self, at: u64, piece: &mut [u8]) -> usize {
        let count = piece.len().min((self.size() - at) as usize);
        let (piece, at) = (&mut piece[..count], at as usize);
        match self {
            Self::Bytes(bytes) => piece.copy_from_slice(&bytes[at..][..count]),
            Self::Result(bytes) => piece.copy_from_slice(&bytes.as_ref()[at..][..count]),
            Self::File(file, _) => match file.read_at(piece, at as u64) {
                Ok(read) if read > 0 => return read,
                _ => piece.fill(0),
            },
        }
        count
    }
}

impl Backlog {
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn reaches(&self, at: u64) -> bool {
        (self.begin..=self.end).contains(&at)
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn add(&mut self, chunk: Chunk) {
        self.end += chunk.size();
        if chunk.size() > 0 {
            self.chunks.push_back(chunk);
        }
    }

    /// 0: the end.
    pub fn read(&self, at: u64, piece: &mut [u8]) -> usize {
        let mut begin = self.begin;
        for chunk in &self.chunks {
            let end = begin + chunk.size();
            if (begin..end).contains(&at) {
                return chunk.read(at - begin, piece);
            }
            begin = end;
        }
        0
    }

    /// Everything before this place was received.
    pub fn forget(&mut self, until: u64) {
        while let Some(chunk) = self.chunks.front() {
            if self.begin + chunk.size() > until {
                break;
            }
            self.begin += chunk.size();
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::files::tests::Folder;

    fn all_from(backlog: &Backlog, mut at: u64) -> Vec<u8> {
        let (mut all, mut piece) = (Vec::new(), [0; 3]);
        loop {
            let count = backlog.read(at, &mut piece);
            if count == 0 {
                return all;
            }
            all.extend(&piece[..count]);
            at += count as u64;
        }
    }

    #[test]
    fn it_is_read_from_anywhere() {
        let file = File::open(Folder::new().put("file", "of a file")).unwrap();
        let mut backlog = Backlog::default();
        backlog.add(Chunk::Bytes(b"hello\n".to_vec()));
        backlog.add(Chunk::Bytes(Vec::new()));
        backlog.add(Chunk::File(file, 9));
        backlog.add(Chunk::Bytes(b"end".to_vec()));
        let all = b"hello\nof a fileend";
        for at in 0..=all.len() {
            assert_eq!(all_from(&backlog, at as u64), all[at..], "{at}");
        }
        assert_eq!(backlog.end(), 18);
    }
}
