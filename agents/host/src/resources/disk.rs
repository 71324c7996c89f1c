//! How much a recording may use of the disk, or of the memory, that its folder is on.
//!
//! Hundreds of recordings may share a disk. They do not share a counter: each checks the free space.

use std::sync::Arc;

use rustix::fd::AsFd;

use crate::os::free_space::{Memory, Room};
use crate::wire::outcome::{Code, Failure};

/// The largest recording, in bytes. With 300 samples per second and processor it takes hours.
const MOST: u64 = 1 << 30;
/// A recording ends when less is left, in bytes.
const LEAST_FREE: u64 = 32 << 20;
/// A folder without room for the first piece of a recording is not used, in bytes.
const LEAST: u64 = 8 << 20;
/// The parts of a free disk, and of free memory, for all recordings.
const PART_OF_DISK: u64 = 2;
const PART_OF_MEMORY: u64 = 4;
const MORE_ROOM: &str =
    "give the JVM's user more room in /tmp or /var/tmp, or record for a shorter time or with longer intervals";

pub struct DiskCap {
    memory: Arc<Memory>,
    /// A larger recording ends once all have used their part, in bytes.
    pub share: u64,
    /// The free space when all have used their part, in bytes.
    floor: u64,
}

impl DiskCap {
    /// The limits for `recordings` recordings in an open folder. Err: it has no room for one.
    pub fn new(folder: impl AsFd, memory: &Arc<Memory>, recordings: usize) -> Result<Self, String> {
        let room = memory.room(folder).unwrap_or(Room {
            free: u64::MAX,
            is_memory: false,
        });
        if room.free < LEAST_FREE + LEAST {
            return Err(format!("has only {} MiB left", room.free >> 20));
        }
        let part = match room.is_memory {
            true => room.free / PART_OF_MEMORY,
            false => room.free / PART_OF_DISK,
        };
        Ok(Self {
            memory: memory.clone(),
            share: part / recordings.max(1) as u64,
            floor: room.free - part,
        })
    }

    /// Why a recording of this size ends, if it takes too much.
    pub fn refuse(&self, size: u64, folder: impl AsFd, path: &str) -> Result<(), Failure> {
        let room = self.memory.room(folder);
        let free = room.map_or(u64::MAX, |room| room.free);
        let what = match room.is_some_and(|room| room.is_memory) {
            true => "memory",
            false => "disk",
        };
        let (reason, bytes) = if size > MOST {
            let reason = format!("the recording is larger than {} MiB", MOST >> 20);
            (reason, ("limit_bytes", MOST))
        } else if free < LEAST_FREE {
            let reason = format!("the {what} of {path} is nearly full");
            (reason, ("free_bytes", free))
        } else if size > self.share && free < self.floor {
            let share = self.share >> 20;
            let reason = format!(
                "the recording is larger than {share} MiB, its part of the {what} of {path}"
            );
            (reason, ("limit_bytes", self.share))
        } else {
            return Ok(());
        };
        Err(Failure::new(reason, MORE_ROOM)
            .coded(Code::DiskLimit)
            .with(bytes.0, bytes.1))
    }
}
