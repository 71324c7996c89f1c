//! Samples counted by their stack, thread and class, before there is a tree.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use super::columns::Pair;
use super::weights::Weight;
use crate::profile::Result;

/// Most places of a round. More are counted in several rounds.
const MOST_PLACES: usize = 1 << 20;

/// What decides on where a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) stack: u64,
    /// Its number, if threads have frames.
    pub(super) thread: u64,
    /// The class that was allocated or contended for; 0 for none.
    pub(super) class: u64,
    pub(super) pair: Pair,
    /// Whether the class is marked as one outside a TLAB.
    pub(super) outside: bool,
}

/// A place, and what its samples add up to.
pub(super) struct Tally {
    pub(super) place: Place,
    /// The stack is lost with a part of the chunk.
    pub(super) lost: bool,
    pub(super) count: i64,
    pub(super) amount: Option<i64>,
}

/// All places of a round, numbered as they came.
#[derive(Default)]
pub(super) struct Places {
    tallies: Vec<Tally>,
    index: HashTable<u32>,
    /// Seeded anew in each process: numbers come from hosts, which must not choose collisions.
    hasher: RandomState,
}

impl Places {
    /// The number of a place, if it is known.
    #[inline]
    pub(super) fn find(&self, place: &Place) -> Option<usize> {
        let is_it = |&number: &u32| self.tallies[number as usize].place == *place;
        let found = self.index.find(self.hasher.hash_one(place), is_it);
        found.map(|&number| number as usize)
    }

    /// Adds a place that is not known yet.
    pub(super) fn push(&mut self, place: Place, lost: bool) -> usize {
        let (number, hasher) = (self.tallies.len(), &self.hasher);
        self.tallies.push(Tally {
            place,
            lost,
            count: 0,
            amount: None,
        });
        let tallies = &self.tallies;
        let hash = |&number: &u32| hasher.hash_one(tallies[number as usize].place);
        self.index
            .insert_unique(hasher.hash_one(place), number as u32, hash);
        number
    }

    pub(super) fn is_lost(&self, number: usize) -> bool {
        self.tallies[number].lost
    }

    /// Counts samples.
    #[inline]
    pub(super) fn add(&mut self, number: usize, (count, amount): Weight) -> Result<()> {
        let tally = &mut self.tallies[number];
        let pair = tally.place.pair;
        tally.count = pair.sum(false, tally.count, count)?;
        if let Some(amount) = amount {
            tally.amount = Some(pair.sum(true, tally.amount.unwrap_or(0), amount)?);
        }
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.tallies.len() >= MOST_PLACES
    }

    /// Ends the round: returns its counts by place number, and starts another.
    pub(super) fn take(&mut self) -> Vec<Tally> {
        self.index.clear();
        std::mem::take(&mut self.tallies)
    }
}
