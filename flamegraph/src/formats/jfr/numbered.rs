//! A map by number. Most numbers are small and dense, so they index a table; the others are in a hash map.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Most entries of the table, in total and for each known number.
const MOST_PLACES: usize = 1 << 20;
const PLACES_EACH: usize = 4;
/// Most results that are cached.
const MOST_KEPT: usize = 1 << 22;

pub(super) struct Numbered<T> {
    table: Vec<Option<T>>,
    others: HashMap<u64, T, RandomState>,
    known: usize,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered {
            table: Vec::new(),
            others: HashMap::default(),
            known: 0,
        }
    }
}

impl<T: Copy> Numbered<T> {
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<T> {
        let place = usize::try_from(number).ok();
        match place.and_then(|place| *self.table.get(place)?) {
            None => self.others.get(&number).copied(),
            known => known,
        }
    }

    /// A new value replaces the old one.
    pub(super) fn insert(&mut self, number: u64, value: T) {
        self.known += 1;
        let most = (self.known * PLACES_EACH).min(MOST_PLACES);
        if number >= self.table.len().max(most) as u64 {
            self.others.insert(number, value);
            return;
        }
        let place = number as usize;
        if place >= self.table.len() {
            self.table.resize(place + 1, None);
        }
        self.table[place] = Some(value);
    }

    /// Inserts a cached result. If there are too many, all are dropped first.
    pub(super) fn keep(&mut self, number: u64, value: T) {
        if self.known >= MOST_KEPT {
            *self = Numbered::default();
        }
        self.insert(number, value);
    }

    /// All numbers, some perhaps twice.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let table = self.table.iter().zip(0u64..);
        let table = table.filter_map(|(value, number)| value.is_some().then_some(number));
        table.chain(self.others.keys().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_inserted_last_is_found_wherever_it_lies() {
        let mut numbered = Numbered::default();
        let numbers = [3, 900, 1, 2, u64::MAX, 5];
        for round in 0..1000 {
            for number in numbers {
                numbered.insert(number, (number, round));
            }
            for number in numbers {
                assert_eq!(numbered.get(number), Some((number, round)));
            }
            assert_eq!(numbered.get(4), None);
        }
        let mut found: Vec<u64> = numbered.numbers().collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, [1, 2, 3, 5, 900, u64::MAX]);
    }

    #[test]
    fn few_numbers_take_little_room() {
        let mut numbered = Numbered::default();
        for number in 0..100 {
            numbered.insert(number * 10_000, ());
        }
        assert!(numbered.table.len() <= 100 * PLACES_EACH);
    }
}
