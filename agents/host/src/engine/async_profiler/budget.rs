//! How much all recordings of a session may take together, of each thing that has room for them: a disk, or memory.
//!
//! Each by itself would take its part of what was free before there were any, and there may be hundreds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::os::free_space::{Room, Store};

/// Of what is free on a disk recordings take this part at most, and this one of memory: its processes need that.
const PART_OF_DISK: u64 = 2;
const PART_OF_MEMORY: u64 = 4;

/// What all may take, and what they have taken.
#[derive(Default)]
pub struct Budget {
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    recordings: u64,
    stores: HashMap<Store, Sizes>,
}

struct Sizes {
    /// In bytes, by what was free at first.
    most: u64,
    is_memory: bool,
    /// Of each recording, by its number.
    of_each: HashMap<u64, u64>,
}

/// One recording's part, until this is dropped.
pub struct Share {
    budget: Arc<Budget>,
    number: u64,
    stores: Vec<Store>,
}

/// What so many recordings have outgrown.
#[derive(Debug, PartialEq, Eq)]
pub struct Outgrown {
    pub recordings: usize,
    pub most: u64,
    pub is_memory: bool,
}

/// How much recordings may take where there is so much room, in bytes.
pub fn part_of(room: Room) -> u64 {
    match room.is_memory {
        true => room.free / PART_OF_MEMORY,
        false => room.free / PART_OF_DISK,
    }
}

impl Budget {
    /// One more recording will take from these.
    pub fn take(self: &Arc<Self>, stores: &[(Store, Room)]) -> Share {
        let mut taken = self.taken();
        taken.recordings += 1;
        let number = taken.recordings;
        for &(store, room) in stores {
            let sizes = taken.stores.entry(store).or_insert_with(|| Sizes {
                most: part_of(room),
                is_memory: room.is_memory,
                of_each: HashMap::new(),
            });
            sizes.of_each.insert(number, 0);
        }
        drop(taken);
        Share {
            budget: self.clone(),
            number,
            stores: stores.iter().map(|(store, _)| *store).collect(),
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// What all have outgrown together, where this one, which has so many bytes by now, has its equal part of it or
    /// more. So it is the large ones that are ended, and all together never take twice their part.
    pub fn outgrown(&self, size: u64) -> Option<Outgrown> {
        let mut taken = self.budget.taken();
        let Taken { stores, .. } = &mut *taken;
        let mut outgrown = None;
        for store in &self.stores {
            let Some(sizes) = stores.get_mut(store) else {
                continue;
            };
            sizes.of_each.insert(self.number, size);
            let all: u64 = sizes.of_each.values().sum();
            let recordings = sizes.of_each.len();
            if all > sizes.most && size >= sizes.most / recordings as u64 {
                outgrown = Some(Outgrown {
                    recordings,
                    most: sizes.most,
                    is_memory: sizes.is_memory,
                });
            }
        }
        outgrown
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.budget.taken();
        for store in &self.stores {
            if let Some(sizes) = taken.stores.get_mut(store) {
                sizes.of_each.remove(&self.number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(free: u64, is_memory: bool) -> Room {
        Room { free, is_memory }
    }

    #[test]
    fn the_large_ones_are_ended() {
        let budget = Arc::new(Budget::default());
        let disk = (Store::FileSystem(1), room(200, false));
        let shares: Vec<Share> = (0..4).map(|_| budget.take(&[disk])).collect();
        for (share, size) in shares.iter().zip([60, 20, 19, 0]) {
            assert_eq!(share.outgrown(size), None);
        }
        let outgrown = Some(Outgrown {
            recordings: 4,
            most: 100,
            is_memory: false,
        });
        assert_eq!(shares[3].outgrown(10), None);
        assert_eq!(shares[0].outgrown(61), outgrown);
        assert_eq!(shares[1].outgrown(24), None);
        assert_eq!(shares[1].outgrown(25), outgrown);
    }

    #[test]
    fn what_is_over_makes_room() {
        let budget = Arc::new(Budget::default());
        // What is free has less by now: the part stays what it was.
        let [first, second] =
            [200, 120].map(|free| budget.take(&[(Store::FileSystem(1), room(free, false))]));
        assert_eq!(first.outgrown(90), None);
        assert!(second.outgrown(60).is_some());
        drop(first);
        assert_eq!(second.outgrown(100), None);
        assert!(second.outgrown(101).is_some());
    }

    #[test]
    fn each_store_has_its_own_part() {
        let budget = Arc::new(Budget::default());
        let host = (Store::Host, room(400, true));
        let group = |number, free| (Store::Group(1, number), room(free, true));
        let small = budget.take(&[host, group(1, 80)]);
        let large = budget.take(&[host, group(2, 1000)]);
        assert_eq!(small.outgrown(20), None);
        assert_eq!(small.outgrown(21).map(|outgrown| outgrown.most), Some(20));
        assert_eq!(large.outgrown(79), None);
        assert_eq!(large.outgrown(80).map(|outgrown| outgrown.most), Some(100));
        assert_eq!(budget.take(&[]).outgrown(u64::MAX), None);
    }
}
