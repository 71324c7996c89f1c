//! From a stack and a thread, by their numbers, to the node of the tree; each pair is walked once a chunk.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::frames::Frames;
use super::names::Namer;
use super::pools::Pools;
use super::waits::{self, Waiting};
use crate::error::{Error, Result};
use crate::frames::{Frame, Kind};
use crate::profile::Profile;
use crate::stack::Stack;
use crate::threads::Threads;
use crate::tree::Node;

/// What a sample without a stack has as its stack.
const NO_STACK: &[u8] = b"[unknown]";

/// What is looked up once is kept, up to this many of a kind: damaged recordings have no end of them.
pub(super) const MOST_CACHED: usize = 1 << 22;

/// How much may be walked: stacks are short in a recording that makes much of them.
pub(super) struct Budget {
    /// Bytes of folded text that the walks so far would not yet have filled.
    pub(super) left: u64,
    pub(super) limit: u64,
}

impl Budget {
    pub(super) fn spend(&mut self, bytes: u64) -> Result<()> {
        let limit = self.limit;
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(Error::Limit {
            what: "bytes of the stacks as text",
            limit,
        })?;
        Ok(())
    }
}

pub(super) struct Stacks<'a> {
    pools: &'a Pools<'a>,
    /// Whether all stacks should be there. The JDK still may refer to one of the chunk before.
    complete: bool,
    pub(super) namer: Namer<'a>,
    /// By stack and thread, without threads the thread is 0: of all samples, and of those that wait.
    nodes: [HashMap<(u64, u64), Option<Node>, RandomState>; 2],
    /// Whether a thread with this stack is in a call that works on files.
    file_calls: HashMap<u64, bool, RandomState>,
    frames: Frames<'a>,
    last: Stack,
}

/// What decides on a sample's node.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) stack: u64,
    /// The thread, if it has a frame.
    pub(super) thread: Option<(u64, Threads)>,
    /// Whether there is a frame of what the thread waits for.
    pub(super) waits: bool,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(pools: &'a Pools<'a>, namer: Namer<'a>, complete: bool) -> Stacks<'a> {
        Stacks {
            pools,
            complete,
            namer,
            nodes: Default::default(),
            file_calls: HashMap::default(),
            frames: Frames::default(),
            last: Stack::default(),
        }
    }

    /// The node of a stack; `None` if it is lost with a part of the chunk.
    #[inline]
    pub(super) fn node(
        &mut self,
        profile: &mut Profile,
        place: Place,
        budget: &mut Budget,
    ) -> Result<Option<Node>> {
        let nodes = &self.nodes[usize::from(place.waits)];
        let key = (place.stack, place.thread.map_or(0, |(thread, _)| thread));
        if let Some(&node) = nodes.get(&key) {
            return Ok(node);
        }
        let node = self.walk(profile, place, budget)?;
        let nodes = &mut self.nodes[usize::from(place.waits)];
        if nodes.len() >= MOST_CACHED {
            nodes.clear();
        }
        nodes.insert(key, node);
        Ok(node)
    }

    /// Whether a thread with this stack, which seems to run, is in a call that works on files.
    #[inline]
    pub(super) fn is_in_a_file_call(
        &mut self,
        profile: &mut Profile,
        stack: u64,
        budget: &mut Budget,
    ) -> Result<bool> {
        if let Some(&known) = self.file_calls.get(&stack) {
            return Ok(known);
        }
        let in_a_call = match self.find_frames(profile, stack, budget)? {
            Found::Frames => waits::is_in_a_file_call(&waiting(profile, self.frames.root_first())),
            Found::Nothing | Found::Lost => false,
        };
        if self.file_calls.len() >= MOST_CACHED {
            self.file_calls.clear();
        }
        self.file_calls.insert(stack, in_a_call);
        Ok(in_a_call)
    }

    fn walk(
        &mut self,
        profile: &mut Profile,
        place: Place,
        budget: &mut Budget,
    ) -> Result<Option<Node>> {
        let unknown;
        let frames = match self.find_frames(profile, place.stack, budget)? {
            Found::Lost => return Ok(None),
            Found::Frames => self.frames.root_first(),
            Found::Nothing => {
                unknown = [plain(profile, NO_STACK)?];
                &unknown
            }
        };
        let thread = match place.thread {
            Some((thread, how)) => Some(self.namer.thread(profile, thread, how)?),
            None => None,
        };
        let wait = match place.waits {
            true => Some(plain(
                profile,
                waits::wait_of(&waiting(profile, frames)).as_bytes(),
            )?),
            false => None,
        };
        let path = [thread, wait]
            .into_iter()
            .flatten()
            .chain(frames.iter().copied());
        self.last.leaf(profile, path).map(Some)
    }

    /// Puts the frames of a stack into `frames`.
    fn find_frames(
        &mut self,
        profile: &mut Profile,
        stack: u64,
        budget: &mut Budget,
    ) -> Result<Found> {
        let Some(packed) = self.pools.stack(stack) else {
            return Ok(match stack {
                0 => Found::Nothing,
                _ if self.complete => Found::Nothing,
                _ => Found::Lost,
            });
        };
        self.frames
            .decode(profile, &packed, (self.pools, &mut self.namer))?;
        budget.spend(self.frames.text_bytes())?;
        let found = !self.frames.root_first().is_empty();
        Ok(if found { Found::Frames } else { Found::Nothing })
    }
}

/// What there is of a stack.
enum Found {
    Frames,
    /// It is empty, or there is none.
    Nothing,
    /// It is lost with a part of the chunk.
    Lost,
}

fn plain(profile: &mut Profile, name: &[u8]) -> Result<Frame> {
    Ok(Frame::new(profile.frames.intern_name(name)?, Kind::Plain))
}

/// Leaf first.
fn waiting<'p>(profile: &'p Profile, frames: &[Frame]) -> Vec<Waiting<'p>> {
    let waiting = frames.iter().rev().map(|&frame| Waiting {
        name: profile.frames.name_of(frame),
        kind: frame.kind(),
    });
    waiting.collect()
}
