//! Files from the coordinator, by hash: in the private folder, which is kept between sessions, or in memory.

use std::collections::HashMap;
use std::env;
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{fstat, stat, statat, AtFlags, Dir, FileType, Gid, Mode, Uid};
use rustix::process::geteuid;

use crate::os::audit;
use crate::os::files::{
    file_id, is_sha256, make_private, open_private, read_regular, sha256, write_whole,
};
use crate::wire::outcome::{Code, Failure};

/// The largest file the folder holds, in bytes.
const LIMIT: u64 = 64 << 20;

pub enum Store {
    Folder(Folder),
    Memory(HashMap<String, Vec<u8>>),
}

impl Store {
    /// The folder of this binary if that is private, else the first usable one of the usual places.
    pub fn open() -> Result<Self, Failure> {
        Folder::open().map(Self::Folder)
    }

    pub fn in_memory() -> Self {
        Self::Memory(HashMap::new())
    }

    /// Contents are checked when they are used.
    pub fn blobs(&self) -> Vec<String> {
        match self {
            Self::Folder(folder) => folder.blobs(),
            Self::Memory(kept) => kept.keys().cloned().collect(),
        }
    }

    pub fn put(&mut self, hash: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        if !is_sha256(hash) || sha256(&bytes) != hash {
            return Err(Failure::new(
                format!(
                    "{} bytes arrived damaged: their SHA-256 is not {}",
                    bytes.len(),
                    hash.get(..64).unwrap_or(hash)
                ),
                "run again; if it happens again, check the network",
            )
            .coded(Code::DamagedTransfer));
        }
        match self {
            Self::Folder(folder) => folder.put(hash, &bytes)?,
            Self::Memory(kept) => {
                kept.insert(hash.to_owned(), bytes);
            }
        }
        Ok(())
    }

    pub fn get(&self, hash: &str) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Folder(folder) => folder.get(hash),
            Self::Memory(kept) => kept.get(hash).cloned().ok_or_else(|| {
                Failure::new(format!("{hash} was not sent"), "run again")
                    .coded(Code::LibraryMissing)
            }),
        }
    }

    pub fn folder(&self) -> Option<&str> {
        match self {
            Self::Folder(folder) => Some(&folder.path),
            Self::Memory(_) => None,
        }
    }
}

pub struct Folder {
    path: String,
    dir: OwnedFd,
}

impl Folder {
    fn open() -> Result<Self, Failure> {
        if let Some(own) = own_folder() {
            return Ok(own);
        }
        let mut tried = Vec::new();
        for (path, owner) in usual_folders() {
            match make_private(&path, owner) {
                Ok(dir) => return Ok(Self { path, dir }),
                Err(reason) => tried.push(reason),
            }
        }
        Err(Failure::new(
            format!("no private folder can be made: {}", tried.join("; ")),
            "make one of these folders writable for the user, or remove what blocks it",
        )
        .coded(Code::NoWritableFolder))
    }

    fn blobs(&self) -> Vec<String> {
        let Ok(entries) = Dir::read_from(&self.dir) else {
            return Vec::new();
        };
        let files = entries
            .flatten()
            .filter(|entry| entry.file_type() != FileType::Directory);
        files
            .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| is_sha256(name))
            .collect()
    }

    fn put(&self, hash: &str, bytes: &[u8]) -> Result<(), Failure> {
        let kept = self
            .owner()
            .and_then(|owner| write_whole(owner, &self.dir, hash, bytes, Mode::RUSR | Mode::WUSR));
        kept.map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space there",
                ErrorKind::ReadOnlyFilesystem => "make its file system writable",
                _ => "check the folder and its file system",
            };
            Failure::new(format!("cannot write to {}: {error}", self.path), remedy)
                .coded(Code::NoWritableFolder)
        })?;
        audit::note("file", || format!("{}/{hash}", self.path));
        Ok(())
    }

    fn get(&self, hash: &str) -> Result<Vec<u8>, Failure> {
        let missing = |why: String| {
            Failure::new(format!("{hash} in {}: {why}", self.path), "run again")
                .coded(Code::LibraryMissing)
        };
        if !is_sha256(hash) {
            return Err(missing("not a SHA-256".into()));
        }
        let bytes = read_regular(&self.dir, hash, None, LIMIT)
            .map_err(|error| missing(error.to_string()))?;
        if sha256(&bytes) != hash {
            return Err(missing("its contents have changed".into()));
        }
        Ok(bytes)
    }

    /// Under sudo the folder belongs to the connecting user, who must be able to use and remove its files.
    fn owner(&self) -> io::Result<Option<(Uid, Gid)>> {
        let folder = fstat(&self.dir)?;
        let other = folder.st_uid != geteuid().as_raw();
        Ok(other.then(|| (Uid::from_raw(folder.st_uid), Gid::from_raw(folder.st_gid))))
    }
}

/// The folder of this binary, if nobody else can write there. Root trusts the owner of the binary, who could move the
/// folder and put a link in its place: the folder must contain this very file.
fn own_folder() -> Option<Folder> {
    let binary = env::current_exe().ok()?;
    let (folder, name) = (binary.parent()?, binary.file_name()?);
    let path = folder.to_str()?.to_owned();
    let owner = stat(&path).ok()?.st_uid;
    let own = geteuid().as_raw();
    let dir = open_private(&path, owner).ok()?;
    let there = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let runs = stat("/proc/self/exe").ok()?;
    ((own == owner || own == 0) && file_id(&there) == file_id(&runs))
        .then_some(Folder { path, dir })
}

fn usual_folders() -> Vec<(String, u32)> {
    let uid = geteuid().as_raw();
    let mut folders = vec![
        format!("/tmp/.hprofiler-{uid}"),
        format!("/var/tmp/.hprofiler-{uid}"),
    ];
    if let Some(home) = env::var("HOME")
        .ok()
        .filter(|home| Path::new(home).is_absolute())
    {
        folders.push(format!("{home}/.cache/hprofiler"));
    }
    folders.push(format!("/dev/shm/.hprofiler-{uid}"));
    folders.into_iter().map(|path| (path, uid)).collect()
}
