//! Where a JVM writes its recording, and how much of that place the recording may take.

use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use super::budget::{part_of, Budget, Share};
use crate::os::free_space::{Memory, Room};
use crate::os::identity::Shoes;
use crate::staging::folders::{could_make_run_folder, is_usual, run_folder_in, Held};
use crate::wire::outcome::{Code, Failure};

/// No recording grows larger, in bytes; one of 300 samples a second and processor takes hours to.
const MOST: u64 = 1 << 30;
/// A place where it may grow to this is as good as any.
const PLENTY: u64 = 256 << 20;
/// A disk, or memory, with less than this left is left alone, in bytes.
const LEAST_FREE: u64 = 32 << 20;
/// A place without room for the first piece of a recording beside that is none.
const LEAST: u64 = 8 << 20;
const MORE_ROOM: &str =
    "give the JVM's user more room in /tmp or /var/tmp, or record for a shorter time or with longer intervals";

/// The folder for a recording.
pub struct Place {
    pub run: Held,
    /// The size at which the recording is ended, in bytes.
    most: u64,
    room: Option<Room>,
    memory: Arc<Memory>,
    /// Of what all JVMs may take together, once the place is chosen.
    share: Option<Share>,
}

impl Place {
    /// The first of the usual bases with plenty of room, or else the one with most; another base only where none of them
    /// will do, since what is left there is not found once the JVM has ended. Err says why there is none.
    pub fn choose(
        shoes: &Shoes,
        bases: &[String],
        session: &str,
        memory: &Arc<Memory>,
        budget: &Arc<Budget>,
    ) -> Result<Self, String> {
        let mut tried = Vec::new();
        let place = |base: &String| {
            run_folder_in(shoes, base, session).and_then(|run| Self::of(run, memory))
        };
        let found = usual_first(bases)
            .into_iter()
            .find_map(|bases| Self::best(bases, &place, &mut tried));
        let mut place = found.ok_or_else(|| tried.join("; "))?;
        place.share = Some(budget.take(&memory.stores(&place.run.dir)));
        Ok(place)
    }

    fn best(
        bases: Vec<&String>,
        place: &dyn Fn(&String) -> Result<Self, String>,
        tried: &mut Vec<String>,
    ) -> Option<Self> {
        let mut best: Option<Self> = None;
        for base in bases {
            match place(base) {
                Ok(place) if best.as_ref().is_some_and(|best| best.most >= place.most) => {
                    place.let_go();
                }
                Ok(place) => {
                    best.replace(place).into_iter().for_each(Self::let_go);
                }
                Err(reason) => tried.push(reason),
            }
            if best.as_ref().is_some_and(|best| best.most >= PLENTY) {
                break;
            }
        }
        best
    }

    fn of(run: Held, memory: &Arc<Memory>) -> Result<Self, String> {
        let room = memory.room(&run.dir);
        if let Err(reason) = refuse_full(room, &run.path) {
            // What cannot be deleted now is found by `clean`.
            let _ = run.release(|_| true);
            return Err(reason);
        }
        Ok(Self {
            run,
            most: most(room),
            room,
            memory: memory.clone(),
            share: None,
        })
    }

    fn let_go(self) {
        let _ = self.run.release(|_| true);
    }

    /// Why a recording of this size is ended, where it takes too much.
    pub fn too_much(&self, size: u64) -> Option<Failure> {
        let together = self.together(size);
        let reason = match size > self.most {
            true => Some(self.outgrown()),
            false => together.or_else(|| self.nearly_full()),
        };
        reason.map(|reason| Failure::new(reason, MORE_ROOM).coded(Code::DiskLimit))
    }

    fn outgrown(&self) -> String {
        let of_what = match self.room.filter(|_| self.most < MOST) {
            Some(room) => format!(
                ", its part of the {} of {}",
                what(room.is_memory),
                self.run.path
            ),
            None => String::new(),
        };
        let most = self.most >> 20;
        format!("the recording is larger than {most} MiB{of_what}")
    }

    fn together(&self, size: u64) -> Option<String> {
        let outgrown = self.share.as_ref()?.outgrown(size)?;
        Some(format!(
            "the recordings of {} JVMs are together larger than {} MiB, their part of the {} of {}",
            outgrown.recordings,
            outgrown.most >> 20,
            what(outgrown.is_memory),
            self.run.path
        ))
    }

    /// Others need what is left.
    fn nearly_full(&self) -> Option<String> {
        let room = self.memory.room(&self.run.dir)?;
        let full = room.free < LEAST_FREE;
        let reason = || {
            let what = what(room.is_memory);
            format!("the {what} of {} is nearly full", self.run.path)
        };
        full.then(reason)
    }
}

/// Why there would be no place; nothing is made.
pub fn foresee(
    shoes: &Shoes,
    bases: &[String],
    session: &str,
    memory: &Memory,
) -> Result<(), String> {
    let mut tried = Vec::new();
    for base in bases {
        let room = open_path(&shoes.path(base)).and_then(|folder| memory.room(folder));
        let fits = could_make_run_folder(shoes, base, session);
        match fits.and_then(|()| refuse_full(room, base)) {
            Ok(()) => return Ok(()),
            Err(reason) => tried.push(reason),
        }
    }
    Err(tried.join("; "))
}

fn open_path(path: &str) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

fn refuse_full(room: Option<Room>, path: &str) -> Result<(), String> {
    match room.map_or(u64::MAX, |room| room.free) {
        free if free < LEAST_FREE + LEAST => {
            Err(format!("{path} has only {} MiB left", free >> 20))
        }
        _ => Ok(()),
    }
}

/// The usual bases, and the others.
fn usual_first(bases: &[String]) -> [Vec<&String>; 2] {
    let (usual, others) = bases.iter().partition(|base| is_usual(base));
    [usual, others]
}

fn what(is_memory: bool) -> &'static str {
    match is_memory {
        true => "memory",
        false => "disk",
    }
}

/// To what size a recording may grow where there is so much room.
fn most(room: Option<Room>) -> u64 {
    room.map_or(MOST, |room| part_of(room).min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_directory_is_no_choice_beside_the_usual_places() {
        let bases = ["/srv/work", "/var/tmp", "/tmp"].map(str::to_owned);
        let [usual, others] = usual_first(&bases);
        assert_eq!(
            (usual, others),
            (vec![&bases[1], &bases[2]], vec![&bases[0]])
        );
    }

    #[test]
    fn a_recording_leaves_room_for_others() {
        const M: u64 = 1 << 20;
        for (free, is_memory, want) in [
            (100 << 30, false, MOST),
            (100 << 30, true, MOST),
            (800 * M, false, 400 * M),
            (800 * M, true, 200 * M),
        ] {
            assert_eq!(most(Some(Room { free, is_memory })), want);
        }
        assert_eq!(most(None), MOST);
    }
}
