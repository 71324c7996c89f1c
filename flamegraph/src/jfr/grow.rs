//! Stacks become nodes of the tree, on a thread of its own while further ones are decoded.

use std::panic::resume_unwind;
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

use crate::error::{Error, Result};
use crate::frames::Frame;
use crate::tree::{Node, Tree, ROOT};

/// Frames that are handed over together, and how many such batches may wait.
const BATCH: usize = 16 << 10;
const MOST_BATCHES: usize = 4;

/// Stacks on their way to the tree.
#[derive(Default)]
pub(super) struct Batch {
    paths: Vec<Path>,
    /// The own frames of all of them.
    frames: Vec<Frame>,
}

/// One stack: how many frames, from the root on, it has in common with the one before, and how many of its own.
struct Path {
    shared: usize,
    own: usize,
}

/// Who takes batches. An error: no more are taken.
pub(super) type Take<'t> = &'t mut dyn FnMut(Batch) -> Result<()>;

/// Puts stacks together until they are handed over.
pub(super) struct Paths<'t> {
    batch: Batch,
    take: Take<'t>,
}

impl<'t> Paths<'t> {
    pub(super) fn new(take: Take<'t>) -> Paths<'t> {
        let batch = Batch::default();
        Paths { batch, take }
    }

    /// Adds a stack; `own` are its frames behind those that it shares with the one added before.
    pub(super) fn push(&mut self, shared: usize, own: &[Frame]) -> Result<()> {
        let batch = &mut self.batch;
        batch.frames.extend_from_slice(own);
        let own = own.len();
        batch.paths.push(Path { shared, own });
        if batch.frames.len().max(batch.paths.len()) < BATCH {
            return Ok(());
        }
        self.hand_over()
    }

    pub(super) fn hand_over(&mut self) -> Result<()> {
        (self.take)(std::mem::take(&mut self.batch))
    }
}

/// Lets `decode` hand over stacks; returns what it does, and the node of each stack. `apart`: by two threads, if there may
/// be a second one.
pub(super) fn grow<T>(
    tree: &mut Tree,
    most_nodes: usize,
    apart: bool,
    decode: impl FnOnce(Take<'_>) -> Result<T>,
) -> Result<(T, Vec<Node>)> {
    let mut grower = Grower::new(tree, most_nodes);
    let made = match apart {
        true => by_another(Builder::new(), &mut grower, decode)?,
        false => decode(&mut |batch| grower.take(&batch))?,
    };
    Ok((made, grower.nodes))
}

/// Lets a thread of this kind take what `decode` hands over; this one, where there can be none: a user may have no more.
fn by_another<T>(
    kind: Builder,
    grower: &mut Grower<'_>,
    decode: impl FnOnce(Take<'_>) -> Result<T>,
) -> Result<T> {
    let most_nodes = grower.most_nodes;
    let grower = Mutex::new(grower);
    let take_all = |batches: Receiver<Batch>| {
        let mut grower = grower.lock().unwrap_or_else(PoisonError::into_inner);
        batches.iter().try_for_each(|batch| grower.take(&batch))
    };
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(MOST_BATCHES);
        let Ok(grown) = kind.spawn_scoped(scope, move || take_all(batches)) else {
            let mut grower = grower.lock().unwrap_or_else(PoisonError::into_inner);
            return decode(&mut |batch| grower.take(&batch));
        };
        let made = decode(&mut |batch| sender.send(batch).map_err(|_| full(most_nodes)));
        drop(sender);
        grown.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        made
    })
}

/// A tree that takes no more is full; its own error comes first.
fn full(most_nodes: usize) -> Error {
    Error::Limit {
        what: "nodes of the call tree",
        limit: most_nodes as u64,
    }
}

struct Grower<'t> {
    tree: &'t mut Tree,
    most_nodes: usize,
    /// The nodes of the stack added last, root first.
    path: Vec<Node>,
    /// The last node of each stack.
    nodes: Vec<Node>,
}

impl<'t> Grower<'t> {
    fn new(tree: &'t mut Tree, most_nodes: usize) -> Grower<'t> {
        Grower {
            tree,
            most_nodes,
            path: Vec::new(),
            nodes: Vec::new(),
        }
    }

    fn take(&mut self, batch: &Batch) -> Result<()> {
        let mut frames = batch.frames.iter();
        for path in &batch.paths {
            self.path.truncate(path.shared);
            let mut node = self.path.last().copied().unwrap_or(ROOT);
            for &frame in frames.by_ref().take(path.own) {
                node = self.tree.child(node, frame, self.most_nodes)?;
                self.path.push(node);
            }
            self.nodes.push(node);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Kind;

    fn frames(names: &[u32]) -> Vec<Frame> {
        let plain = |&name: &u32| Frame::new(name, Kind::Plain);
        names.iter().map(plain).collect()
    }

    fn add(take: Take<'_>) -> Result<()> {
        let mut paths = Paths::new(take);
        for _ in 0..BATCH {
            paths.push(0, &frames(&[1, 2]))?;
            paths.push(1, &frames(&[3]))?;
            paths.push(2, &[])?;
        }
        paths.hand_over()
    }

    #[test]
    fn each_stack_has_its_node_whoever_grows_the_tree() {
        for apart in [false, true] {
            let mut tree = Tree::new();
            let ((), nodes) = grow(&mut tree, 9, apart, add).unwrap();
            assert_eq!(nodes.len(), 3 * BATCH);
            assert!(nodes.chunks(3).all(|nodes| nodes == [2, 3, 3]));
            assert_eq!((tree.len(), tree.parent(3)), (4, 1));
        }
    }

    #[test]
    fn without_a_second_thread_the_first_grows_it() {
        let no_thread = || Builder::new().stack_size(1 << 60);
        assert!(no_thread().spawn(|| ()).is_err());
        let mut tree = Tree::new();
        let mut grower = Grower::new(&mut tree, 9);
        by_another(no_thread(), &mut grower, add).unwrap();
        assert_eq!((grower.nodes.len(), tree.len()), (3 * BATCH, 4));
    }

    #[test]
    fn a_tree_that_is_full_is_said() {
        for apart in [false, true] {
            let error = grow(&mut Tree::new(), 3, apart, add).err().unwrap();
            assert!(matches!(error, Error::Limit { limit: 3, .. }), "{error}");
        }
    }
}
