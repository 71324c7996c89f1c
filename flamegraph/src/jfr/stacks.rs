//! From a stack and a thread, by their numbers, to the node of the tree; each pair is walked once a chunk.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

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
    pub(super) fn spend(&mut self, bytes: usize) -> Result<()> {
        let limit = self.limit;
        let left = self.left.checked_sub(bytes as u64);
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
    frames: Vec<Frame>,
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
            frames: Vec::new(),
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

    fn walk(
        &mut self,
        profile: &mut Profile,
        place: Place,
        budget: &mut Budget,
    ) -> Result<Option<Node>> {
        let Stacks {
            pools,
            namer,
            frames,
            ..
        } = self;
        frames.clear();
        let found = pools.frames(place.stack);
        if found.is_none() && place.stack != 0 && !self.complete {
            return Ok(None);
        }
        for (method, frame_type) in found.into_iter().flatten() {
            let frame = namer.method(profile, method, frame_type)?;
            budget.spend(profile.frames.name_of(frame).len() + 1)?;
            frames.push(frame);
        }
        if frames.is_empty() {
            let name = profile.frames.intern_name(NO_STACK)?;
            frames.push(Frame::new(name, Kind::Plain));
        }
        if place.waits {
            let wait = wait_of(profile, frames);
            let name = profile.frames.intern_name(wait.as_bytes())?;
            frames.push(Frame::new(name, Kind::Plain));
        }
        if let Some((thread, how)) = place.thread {
            frames.push(namer.thread(profile, thread, how)?);
        }
        self.last
            .leaf(profile, frames.iter().rev().copied())
            .map(Some)
    }
}

/// What a thread with these frames, leaf first, waits for.
fn wait_of(profile: &Profile, frames: &[Frame]) -> &'static str {
    let waiting = frames.iter().map(|&frame| Waiting {
        name: profile.frames.name_of(frame),
        kind: frame.kind(),
    });
    waits::wait_of(&waiting.collect::<Vec<_>>())
}
