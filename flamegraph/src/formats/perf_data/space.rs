//! What is mapped where, in a process or in the kernel.

use std::sync::Arc;

/// A stretch of addresses and the module behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// What to add to an address to get the module's own (a place in its file).
    pub(crate) shift: u64,
    pub(crate) module: u32,
}

impl Mapping {
    /// The module's own address of this one.
    pub(crate) fn address(&self, ip: u64) -> u64 {
        ip.wrapping_add(self.shift)
    }
}

/// Mappings that do not overlap, in order. A process that forks shares them with its child until one of both
/// changes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    mappings: Arc<Vec<Mapping>>,
}

impl Space {
    pub(crate) fn len(&self) -> usize {
        self.mappings.len()
    }

    /// Whether another space has the same mappings in the same memory.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.mappings) > 1
    }

    /// Maps over whatever was there; of older mappings stays what the new one leaves. Whether an address that was
    /// mapped is another place now.
    pub(crate) fn insert(&mut self, new: Mapping) -> bool {
        if new.start >= new.end {
            return false;
        }
        let all = Arc::make_mut(&mut self.mappings);
        let first = all.partition_point(|old| old.end <= new.start);
        let behind = all.partition_point(|old| old.start < new.end);
        let cut = &all[first..behind];
        let place = |mapping: &Mapping| (mapping.module, mapping.shift);
        let changes = cut.iter().any(|old| place(old) != place(&new));
        let before = cut.first().filter(|old| old.start < new.start);
        let before = before.map(|&old| Mapping {
            end: new.start,
            ..old
        });
        let after = cut.last().filter(|old| old.end > new.end);
        let after = after.map(|&old| Mapping {
            start: new.end,
            ..old
        });
        let pieces = before.into_iter().chain([new]).chain(after);
        all.splice(first..behind, pieces);
        changes
    }

    pub(crate) fn find(&self, ip: u64) -> Option<&Mapping> {
        let place = self.mappings.partition_point(|mapping| mapping.end <= ip);
        let found = self.mappings.get(place);
        found.filter(|mapping| mapping.start <= ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a table of every address.
    #[test]
    fn a_new_mapping_cuts_the_old_ones() {
        let mut space = Space::default();
        let mut table = vec![None; 300];
        for number in 0..400u32 {
            let start = u64::from(number * 7919 % 251);
            let end = start + u64::from(number * 31 % 40);
            let parent = space.clone();
            let changes = space.insert(Mapping {
                start,
                end,
                shift: 0,
                module: number,
            });
            let modules = |space: &Space| -> Vec<Option<u32>> {
                let module = |ip| space.find(ip).map(|found| found.module);
                (0..300).map(module).collect()
            };
            assert_eq!(modules(&parent), table);
            let covered = &table[start as usize..(end as usize).max(start as usize)];
            assert_eq!(changes, covered.iter().any(Option::is_some));
            table[start as usize..end as usize].fill(Some(number));
            assert_eq!(modules(&space), table);
        }
    }
}
