//! The stacks of places, decoded and named, on their way to the tree.

use super::places::Place;
use super::stacks::{Budget, Stacks};
use crate::profile::{Frame, Frames, Result};

/// Frames of stacks that are handed over together, but for those of the last one.
const MOST_FRAMES: usize = 64 << 10;

/// The stacks of some places.
#[derive(Default)]
pub(super) struct Paths {
    paths: Vec<Path>,
    /// The own frames of all of them.
    frames: Vec<Frame>,
}

/// One stack: how many frames, from the root on, it has in common with the one before, and how many of its own.
struct Path {
    shared: usize,
    own: usize,
}

/// Who takes paths. An error: no more are taken.
pub(super) type Give<'g> = &'g mut dyn FnMut(Paths) -> Result<()>;

impl Paths {
    pub(super) fn push(&mut self, shared: usize, own: &[Frame]) {
        self.frames.extend_from_slice(own);
        let own = own.len();
        self.paths.push(Path { shared, own });
    }

    /// Of each stack how many frames it shares with the one before, and its own.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[Frame])> {
        let mut rest = &self.frames[..];
        self.paths.iter().map(move |path| {
            let (own, behind) = rest.split_at(path.own);
            rest = behind;
            (path.shared, own)
        })
    }
}

/// Hands the paths of places over, once at least.
pub(super) fn decode(
    places: &[Place],
    stacks: &mut Stacks<'_>,
    (names, budget): (&mut Frames, &mut Budget),
    give: Give<'_>,
) -> Result<()> {
    let mut paths = Paths::default();
    for place in places {
        if paths.frames.len() >= MOST_FRAMES {
            give(std::mem::take(&mut paths))?;
        }
        let (shared, own) = stacks.next(place, names, budget)?;
        paths.push(shared, own);
    }
    give(paths)
}
