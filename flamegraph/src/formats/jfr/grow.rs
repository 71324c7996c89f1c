//! Places become nodes of the tree. A second thread decodes and names their stacks, while this one counts samples
//! and adds the decoded stacks to the tree.

use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::thread;

use super::places::Place;
use super::stacks::{Budget, Stacks};
use crate::profile::{Error, Frame, Frames, Node, Result, Tree, ROOT};

/// Places that are handed over together, and how many such batches may wait.
const BATCH: usize = 1 << 10;
const MOST_BATCHES: usize = 16;
/// Most pieces of paths that may wait.
const MOST_PATHS: usize = 4;

/// Takes a batch of places. After an error no more are taken.
pub(super) type Take<'t> = &'t mut dyn FnMut(Vec<Place>) -> Result<()>;

/// Puts places together until they are handed over.
pub(super) struct Batches<'t> {
    batch: Vec<Place>,
    take: Take<'t>,
}

impl<'t> Batches<'t> {
    pub(super) fn new(take: Take<'t>) -> Batches<'t> {
        let batch = Vec::new();
        Batches { batch, take }
    }

    pub(super) fn push(&mut self, place: Place) -> Result<()> {
        self.batch.push(place);
        if self.batch.len() < BATCH {
            return Ok(());
        }
        self.hand_over()
    }

    pub(super) fn hand_over(&mut self) -> Result<()> {
        (self.take)(std::mem::take(&mut self.batch))
    }
}

/// Lets `count` hand over places, and `decode` make paths of them; returns what `count` does, and the node of each
/// place. `apart`: by two threads, if there may be a second one.
pub(super) fn grow<T>(
    mut grower: Grower<'_>,
    apart: bool,
    mut decode: impl FnMut(&[Place], Give<'_>) -> Result<()> + Send,
    count: impl FnOnce(Take<'_>) -> Result<T>,
) -> Result<(T, Vec<Node>)> {
    let made = match apart {
        true => with_another(&mut grower, decode, count)?,
        false => count(&mut |batch| decode(&batch, &mut |paths| grower.take(&paths)))?,
    };
    Ok((made, grower.nodes))
}

/// Lets a second thread decode what `count` hands over.
fn with_another<T>(
    grower: &mut Grower<'_>,
    mut decode: impl FnMut(&[Place], Give<'_>) -> Result<()> + Send,
    count: impl FnOnce(Take<'_>) -> Result<T>,
) -> Result<T> {
    let (places, handed_over) = sync_channel::<Vec<Place>>(MOST_BATCHES);
    let (decoded, paths) = sync_channel(MOST_PATHS);
    thread::scope(|scope| {
        let decode_all = move || {
            let mut give = |paths| decoded.send(paths).map_err(|_| gone());
            let mut batches = handed_over.into_iter();
            batches.try_for_each(|batch| decode(&batch, &mut give))
        };
        let decoding = thread::Builder::new().spawn_scoped(scope, decode_all)?;
        let counted = count(&mut |batch| hand_over(batch, &places, &paths, grower));
        drop(places);
        let grown = paths.iter().try_for_each(|paths| grower.take(&paths));
        drop(paths);
        let decoded = decoding.join().unwrap_or_else(|panic| resume_unwind(panic));
        // If one side fails, the other only sees a closed channel. So report the first real error, in this order.
        grown.and(decoded).and(counted)
    })
}

/// Hands places over. While too many of them wait, adds paths to the tree.
fn hand_over(
    mut batch: Vec<Place>,
    places: &SyncSender<Vec<Place>>,
    paths: &Receiver<Paths>,
    grower: &mut Grower<'_>,
) -> Result<()> {
    loop {
        paths.try_iter().try_for_each(|paths| grower.take(&paths))?;
        batch = match places.try_send(batch) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(gone()),
            Err(TrySendError::Full(batch)) => batch,
        };
        // Of each batch that waits paths will come.
        grower.take(&paths.recv().map_err(|_| gone())?)?;
    }
}

/// The other thread has failed, and says why.
fn gone() -> Error {
    Error::Io(ErrorKind::BrokenPipe.into())
}

/// The tree in growth.
pub(super) struct Grower<'t> {
    tree: &'t mut Tree,
    most_nodes: usize,
    /// The nodes of the stack added last, root first.
    path: Vec<Node>,
    /// The last node of each stack.
    nodes: Vec<Node>,
}

impl<'t> Grower<'t> {
    pub(super) fn new(tree: &'t mut Tree, most_nodes: usize) -> Grower<'t> {
        Grower {
            tree,
            most_nodes,
            path: Vec::new(),
            nodes: Vec::new(),
        }
    }

    fn take(&mut self, paths: &Paths) -> Result<()> {
        for (shared, own) in paths.iter() {
            self.path.truncate(shared);
            let mut node = self.path.last().copied().unwrap_or(ROOT);
            for &frame in own {
                node = self.tree.child(node, frame, self.most_nodes)?;
                self.path.push(node);
            }
            self.nodes.push(node);
        }
        Ok(())
    }
}

/// Frames after which paths are handed over.
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

/// Takes a batch of paths. After an error no more are taken.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::jfr::columns::Pair;
    use crate::profile::{Frame, Kind};

    fn frames(names: &[u32]) -> Vec<Frame> {
        let plain = |&name: &u32| Frame::new(name, Kind::Plain);
        names.iter().map(plain).collect()
    }

    /// Places whose stacks are `1;2`, `1;3` and the same again, in turns.
    fn count(take: Take<'_>) -> Result<usize> {
        let mut batches = Batches::new(take);
        for stack in 0..100 * BATCH as u64 {
            batches.push(Place {
                stack: stack % 3,
                thread: 0,
                class: 0,
                pair: Pair::Cpu,
                outside: false,
            })?;
        }
        batches.hand_over()?;
        Ok(100 * BATCH)
    }

    fn decode(places: &[Place], give: Give<'_>) -> Result<()> {
        let mut paths = Paths::default();
        for place in places {
            match place.stack {
                0 => paths.push(0, &frames(&[1, 2])),
                1 => paths.push(1, &frames(&[3])),
                _ => paths.push(2, &[]),
            }
        }
        give(paths)
    }

    #[test]
    fn each_place_has_its_node_whoever_decodes() {
        for apart in [false, true] {
            let mut tree = Tree::new();
            let grower = Grower::new(&mut tree, 9);
            let (counted, nodes) = grow(grower, apart, decode, count).unwrap();
            assert_eq!(nodes.len(), counted);
            let whole = nodes.chunks_exact(3);
            assert_eq!(whole.remainder().len(), counted % 3);
            assert!(whole.into_iter().all(|nodes| nodes == [2, 3, 3]));
            assert_eq!((tree.len(), tree.parent(3)), (4, 1));
        }
    }

    #[test]
    fn a_tree_that_is_full_is_said() {
        for apart in [false, true] {
            let mut tree = Tree::new();
            let error = grow(Grower::new(&mut tree, 3), apart, decode, count).err();
            let error = error.unwrap();
            assert!(matches!(error, Error::Limit { limit: 3, .. }), "{error}");
        }
    }

    #[test]
    fn the_error_of_who_fails_is_said() {
        let failing = |_: &[Place], _: Give<'_>| Err(Error::Empty("decoding".to_string()));
        let stopping = |take: Take<'_>| -> Result<()> {
            count(take)?;
            Err(Error::Empty("counting".to_string()))
        };
        for apart in [false, true] {
            let mut tree = Tree::new();
            let error = grow(Grower::new(&mut tree, 9), apart, failing, count).err();
            assert!(error.unwrap().to_string().contains("decoding"));
            let error = grow(Grower::new(&mut tree, 9), apart, decode, stopping).err();
            assert!(error.unwrap().to_string().contains("counting"));
        }
    }
}
