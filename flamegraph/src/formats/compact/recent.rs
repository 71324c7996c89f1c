//! Which callees each caller had lately: the same walk on both sides makes the same lists.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The caller of the outermost frames.
pub(super) const NOBODY: u32 = u32::MAX;

/// Callees remembered of one caller. Bounds what looking for one costs.
const MOST: usize = 32;

/// Frames by number, as the file has them: for each caller its callees, the latest first.
#[derive(Default)]
pub(super) struct Recent {
    callees: HashMap<u32, Vec<u32>, RandomState>,
}

impl Recent {
    /// The place of a callee among its caller's, if it has one. It becomes the latest.
    pub(super) fn place(&mut self, caller: u32, callee: u32) -> Option<usize> {
        let callees = self.callees.entry(caller).or_default();
        match callees.iter().position(|&known| known == callee) {
            Some(place) => {
                callees[..=place].rotate_right(1);
                Some(place)
            }
            None => {
                put_first(callees, callee);
                None
            }
        }
    }

    /// The callee at a place, if there is one. It becomes the latest.
    pub(super) fn take(&mut self, caller: u32, place: usize) -> Option<u32> {
        let callees = self.callees.get_mut(&caller)?;
        callees.get_mut(..=place)?.rotate_right(1);
        callees.first().copied()
    }

    /// Remembers a callee that has no place.
    pub(super) fn add(&mut self, caller: u32, callee: u32) {
        put_first(self.callees.entry(caller).or_default(), callee);
    }
}

fn put_first(callees: &mut Vec<u32>, callee: u32) {
    callees.truncate(MOST - 1);
    callees.insert(0, callee);
}
