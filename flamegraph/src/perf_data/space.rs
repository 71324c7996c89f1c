//! What is mapped where, in a process or in the kernel.

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

/// Mappings that do not overlap, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    mappings: Vec<Mapping>,
}

impl Space {
    pub(crate) fn len(&self) -> usize {
        self.mappings.len()
    }

    /// Maps over whatever was there; of older mappings stays what the new one leaves.
    pub(crate) fn insert(&mut self, new: Mapping) {
        if new.start >= new.end {
            return;
        }
        let first = self.mappings.partition_point(|old| old.end <= new.start);
        let last = self.mappings.partition_point(|old| old.start < new.end);
        let mut pieces = Vec::with_capacity(3);
        if let Some(&old) = self.mappings[first..last].first() {
            pieces.push(Mapping {
                end: new.start,
                ..old
            });
        }
        pieces.push(new);
        if let Some(&old) = self.mappings[first..last].last() {
            pieces.push(Mapping {
                start: new.end,
                ..old
            });
        }
        pieces.retain(|piece| piece.start < piece.end);
        self.mappings.splice(first..last, pieces);
    }

    pub(crate) fn find(&self, ip: u64) -> Option<&Mapping> {
        let place = self.mappings.partition_point(|mapping| mapping.end <= ip);
        self.mappings
            .get(place)
            .filter(|mapping| mapping.start <= ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, module: u32) -> Mapping {
        Mapping {
            start,
            end,
            shift: 0,
            module,
        }
    }

    #[test]
    fn a_new_mapping_cuts_the_old_ones() {
        let mut space = Space::default();
        space.insert(mapping(0, 100, 1));
        space.insert(mapping(40, 60, 2));
        space.insert(mapping(90, 120, 3));
        let module = |ip| space.find(ip).map(|found| found.module);
        let found: Vec<_> = [0, 39, 40, 59, 60, 89, 90, 119, 120].map(module).into();
        assert_eq!(
            found,
            [
                Some(1),
                Some(1),
                Some(2),
                Some(2),
                Some(1),
                Some(1),
                Some(3),
                Some(3),
                None
            ]
        );
        space.insert(mapping(10, 200, 4));
        assert_eq!(space.len(), 2);
        assert_eq!(space.find(150).map(|found| found.module), Some(4));
    }
}
