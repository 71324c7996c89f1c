//! From the numbers of a stack, a thread and a class to frames on their way to the tree.

use super::columns::Pair;
use super::frames::StackFrames;
use super::names::Namer;
use super::numbered::Numbered;
use super::places::Place;
use super::pools::Pools;
use super::samples::Out;
use super::waits::{self, Waiting};
use crate::error::{Error, Result};
use crate::frames::{Frame, Frames, Kind};
use crate::modules::ModuleTable;
use crate::threads::Threads;

/// What a sample without a stack has as its stack.
const NO_STACK: &[u8] = b"[unknown]";

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
    namer: Namer<'a>,
    /// Whether a thread with this stack is in a call that works on files.
    file_calls: Numbered<bool>,
    frames: StackFrames<'a>,
    last: Last,
}

/// The stack that was sent last.
#[derive(Default)]
struct Last {
    /// Its number, its thread's, and whether it has a frame of what the thread waits for.
    key: Option<(u64, u64, bool)>,
    /// Its frames, root first.
    path: Vec<Frame>,
    /// How many of them there are without the class.
    callers: usize,
    /// Memory for the next one.
    next: Vec<Frame>,
}

/// What there is of a stack.
#[derive(PartialEq, Eq)]
enum Found {
    Frames,
    /// It is empty, or there is none.
    Nothing,
    /// It is lost with a part of the chunk.
    Lost,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(pools: &'a Pools<'a>, namer: Namer<'a>, complete: bool) -> Stacks<'a> {
        Stacks {
            pools,
            complete,
            namer,
            file_calls: Numbered::default(),
            frames: StackFrames::default(),
            last: Last::default(),
        }
    }

    /// Where the native functions of the stacks so far lie.
    pub(super) fn modules(&self) -> &ModuleTable {
        &self.namer.modules
    }

    /// The next stack shares nothing with the one before.
    pub(super) fn begin(&mut self) {
        self.last = Last::default();
    }

    /// Sends the stack of a place to the tree; false if it is lost with a part of the chunk: an empty one
    /// is sent in its stead.
    pub(super) fn send(
        &mut self,
        place: &Place,
        threads: Threads,
        out: &mut Out<'_, '_>,
        budget: &mut Budget,
    ) -> Result<bool> {
        let key = (place.stack, place.thread, place.pair == Pair::OffCpu);
        let mut shared = self.last.callers;
        if self.last.key != Some(key) {
            if !self.walk(place, threads, out.names, budget)? {
                out.paths.push(0, &[])?;
                self.begin();
                return Ok(false);
            }
            shared = self.last.turn();
            self.last.key = Some(key);
        }
        let path = &mut self.last.path;
        path.truncate(self.last.callers);
        if place.class != 0 {
            let name = self.namer.class(out.names, place.class, budget)?;
            path.push(Frame::new(name, class_kind(place)));
        }
        out.paths.push(shared, &path[shared..])?;
        Ok(true)
    }

    /// Whether a thread with this stack, which seems to run, is in a call that works on files.
    #[inline]
    pub(super) fn is_in_a_file_call(
        &mut self,
        stack: u64,
        names: &mut Frames,
        budget: &mut Budget,
    ) -> Result<bool> {
        if let Some(known) = self.file_calls.get(stack) {
            return Ok(known);
        }
        let found = self.find_frames(stack, names, budget)? == Found::Frames;
        let in_a_call =
            found && waits::is_in_a_file_call(&waiting(names, self.frames.root_first()));
        self.file_calls.keep(stack, in_a_call);
        Ok(in_a_call)
    }

    /// Puts what stands above the class into `next`; false if it is lost.
    fn walk(
        &mut self,
        place: &Place,
        threads: Threads,
        names: &mut Frames,
        budget: &mut Budget,
    ) -> Result<bool> {
        let unknown;
        let frames = match self.find_frames(place.stack, names, budget)? {
            Found::Lost => return Ok(false),
            Found::Frames => self.frames.root_first(),
            Found::Nothing => {
                unknown = [plain(names, NO_STACK)?];
                &unknown
            }
        };
        let next = &mut self.last.next;
        next.clear();
        if threads != Threads::Off {
            next.push(self.namer.thread(names, place.thread, threads)?);
        }
        if place.pair == Pair::OffCpu {
            let wait = waits::wait_of(&waiting(names, frames));
            next.push(plain(names, wait.as_bytes())?);
        }
        next.extend_from_slice(frames);
        Ok(true)
    }

    /// Puts the frames of a stack into `frames`.
    fn find_frames(
        &mut self,
        stack: u64,
        names: &mut Frames,
        budget: &mut Budget,
    ) -> Result<Found> {
        let Some(packed) = self.pools.stack(stack) else {
            let lost = stack != 0 && !self.complete;
            return Ok(if lost { Found::Lost } else { Found::Nothing });
        };
        self.frames
            .decode(&packed, names, (self.pools, &mut self.namer))?;
        budget.spend(self.frames.text_bytes())?;
        let found = !self.frames.root_first().is_empty();
        Ok(if found { Found::Frames } else { Found::Nothing })
    }
}

impl Last {
    /// Puts the next stack in the place of the last; returns how many callers they share.
    fn turn(&mut self) -> usize {
        let pairs = self.path.iter().zip(&self.next);
        let shared = pairs.take_while(|(before, now)| before == now).count();
        std::mem::swap(&mut self.path, &mut self.next);
        self.callers = self.path.len();
        shared
    }
}

/// How the class that was allocated or contended for, the leaf, is marked: as async-profiler does.
fn class_kind(place: &Place) -> Kind {
    match place.outside {
        true => Kind::Kernel,
        false => Kind::Inlined,
    }
}

fn plain(names: &mut Frames, name: &[u8]) -> Result<Frame> {
    Ok(Frame::new(names.intern_name(name)?, Kind::Plain))
}

/// Leaf first.
fn waiting<'n>(names: &'n Frames, frames: &[Frame]) -> Vec<Waiting<'n>> {
    let waiting = frames.iter().rev().map(|&frame| Waiting {
        name: names.name_of(frame),
        kind: frame.kind(),
    });
    waiting.collect()
}
