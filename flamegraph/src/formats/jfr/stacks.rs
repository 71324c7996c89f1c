//! From the numbers of a stack, a thread and a class to frames.

use super::bytes::Cursor;
use super::columns::Pair;
use super::names::Namer;
use super::numbered::Numbered;
use super::places::Place;
use super::pools::{Packed, Pools};
use crate::formats::shared::shared_suffix;
use crate::ops::waits::Waits;
use crate::ops::Threads;
use crate::profile::{Error, Frame, Frames, Kind, ModuleTable, Result};

/// The frame of a sample without a stack.
const NO_STACK: &[u8] = b"[unknown]";

/// A limit for the total length of all stacks. A small recording can refer to a long stack very often.
#[derive(Clone)]
pub(super) struct Budget {
    /// Bytes of folded text that are left.
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

/// Finds the frames of stacks.
pub(super) struct Finder<'a> {
    pools: &'a Pools<'a>,
    /// Whether the chunk is complete. The JDK may still refer to a stack of the chunk before.
    complete: bool,
    namer: Namer<'a>,
    frames: StackFrames<'a>,
}

/// What there is of a stack.
#[derive(PartialEq, Eq)]
pub(super) enum Found {
    Frames,
    /// It is empty, or there is none.
    Nothing,
    /// It is lost with a part of the chunk.
    Lost,
}

impl<'a> Finder<'a> {
    pub(super) fn new(pools: &'a Pools<'a>, namer: Namer<'a>, complete: bool) -> Finder<'a> {
        Finder {
            pools,
            complete,
            namer,
            frames: StackFrames::default(),
        }
    }

    /// Finds the frames of a stack.
    pub(super) fn find(
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

    /// Forgets all names, after their table was replaced.
    pub(super) fn forget(&mut self) {
        self.namer = Namer::new(self.pools, self.namer.limits);
        self.frames = StackFrames::default();
    }

    /// Whether a stack is lost with a part of the chunk.
    pub(super) fn is_lost(&self, stack: u64) -> bool {
        stack != 0 && !self.complete && self.pools.stack(stack).is_none()
    }

    /// The frames of the last stack found, root first.
    pub(super) fn frames(&self) -> &[Frame] {
        self.frames.root_first()
    }
}

/// The stacks of one place after the other.
pub(super) struct Stacks<'a> {
    finder: Finder<'a>,
    threads: Threads,
    waits: Waits,
    last: Last,
}

/// The stack of the place before.
#[derive(Default)]
struct Last {
    /// Its number, its thread's, and whether it has a frame of what the thread waits for.
    key: Option<(u64, u64, bool)>,
    /// Its frames, root first.
    path: Vec<Frame>,
    /// The number of frames without the class.
    callers: usize,
    /// Memory for the next one.
    next: Vec<Frame>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(finder: Finder<'a>, threads: Threads) -> Stacks<'a> {
        Stacks {
            finder,
            threads,
            waits: Waits::default(),
            last: Last::default(),
        }
    }

    /// Where the native functions of the stacks so far lie.
    pub(super) fn modules(&self) -> &ModuleTable {
        &self.finder.namer.modules
    }

    /// The next stack shares nothing with the one before.
    pub(super) fn begin(&mut self) {
        self.last = Last::default();
    }

    /// The stack of a place: how many frames, from the root on, it has in common with the one before, and the
    /// others. One that is lost has none.
    pub(super) fn next(
        &mut self,
        place: &Place,
        names: &mut Frames,
        budget: &mut Budget,
    ) -> Result<(usize, &[Frame])> {
        let key = (place.stack, place.thread, place.pair == Pair::OffCpu);
        let mut shared = self.last.callers;
        if self.last.key != Some(key) {
            if !self.walk(place, names, budget)? {
                self.begin();
                return Ok((0, &[]));
            }
            shared = self.last.turn();
            self.last.key = Some(key);
        }
        let path = &mut self.last.path;
        path.truncate(self.last.callers);
        if place.class != 0 {
            let name = self.finder.namer.class(names, place.class, budget)?;
            path.push(Frame::new(name, class_kind(place)));
        }
        Ok((shared, &path[shared..]))
    }

    /// Puts the callers of the class into `next`. Returns false if the stack is lost.
    fn walk(&mut self, place: &Place, names: &mut Frames, budget: &mut Budget) -> Result<bool> {
        let found = self.finder.find(place.stack, names, budget)?;
        let unknown = match found {
            Found::Lost => return Ok(false),
            Found::Frames => None,
            Found::Nothing => Some([plain(names, NO_STACK)?]),
        };
        let next = &mut self.last.next;
        next.clear();
        if self.threads != Threads::Off {
            let namer = &mut self.finder.namer;
            next.push(namer.thread(names, place.thread, self.threads)?);
        }
        let frames = unknown
            .as_ref()
            .map_or(self.finder.frames(), |frames| frames);
        if place.pair == Pair::OffCpu {
            let wait = self.waits.of(names, frames).frame();
            next.push(plain(names, wait.as_bytes())?);
        }
        next.extend_from_slice(frames);
        Ok(true)
    }
}

impl Last {
    /// Makes the next stack the last one. Returns how many callers both share.
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

/// The frames of the stack decoded last.
#[derive(Default)]
pub(super) struct StackFrames<'a> {
    /// Its bytes in the chunk; empty if equal bytes do not mean equal frames.
    bytes: &'a [u8],
    /// Root first.
    frames: Vec<Frame>,
    /// For each frame, how long it and its callers are.
    extents: Vec<Extent>,
    /// Those the stack before has not, leaf first, each with the bytes that it and its callers are, and those of
    /// its name.
    own: Vec<(Frame, usize, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Extent {
    /// Bytes in the chunk.
    packed: usize,
    /// Bytes as folded text.
    text: u64,
}

impl<'a> StackFrames<'a> {
    /// Root first.
    pub(super) fn root_first(&self) -> &[Frame] {
        &self.frames
    }

    /// How long the stack is as folded text.
    pub(super) fn text_bytes(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.text)
    }

    /// Takes the place of the stack before.
    pub(super) fn decode(
        &mut self,
        stack: &Packed<'a>,
        names: &mut Frames,
        (pools, namer): (&Pools<'a>, &mut Namer<'a>),
    ) -> Result<()> {
        let shared = self.shared(stack.bytes);
        self.frames.truncate(shared);
        self.extents.truncate(shared);
        let mut so_far = self.extents.last().copied().unwrap_or_default();
        self.own.clear();
        let mut cursor = Cursor::new(stack.bytes, 0);
        for _ in 0..stack.count {
            let packed = cursor.left();
            if shared > 0 && packed <= so_far.packed {
                break;
            }
            let Some((method, frame_type)) = pools.frame(&mut cursor) else {
                break;
            };
            let (frame, name_bytes) = namer.method(names, method, frame_type)?;
            self.own.push((frame, packed, name_bytes));
        }
        for &(frame, packed, name_bytes) in self.own.iter().rev() {
            let text = so_far.text + u64::from(name_bytes) + 1;
            so_far = Extent { packed, text };
            self.frames.push(frame);
            self.extents.push(so_far);
        }
        let by_bytes = pools.frames_are_numbers();
        self.bytes = if by_bytes { stack.bytes } else { &[] };
        Ok(())
    }

    /// How many callers a stack has in common with the one before.
    fn shared(&self, bytes: &[u8]) -> usize {
        let same = shared_suffix(bytes, self.bytes);
        let shared = self.extents.partition_point(|extent| extent.packed <= same);
        // A number begins only after a byte below 0x80. Elsewhere, equal bytes may be the end of a longer number.
        let begins = |extent: &Extent| match bytes.len() - extent.packed {
            0 => true,
            start => bytes[start - 1] < 0x80,
        };
        let innermost = self.extents[..shared].iter().rposition(begins);
        innermost.map_or(0, |innermost| innermost + 1)
    }
}

/// Names are dropped when they take more bytes.
const MOST_NAMES: usize = 4 << 20;

pub(super) struct FileCalls<'a> {
    finder: Finder<'a>,
    /// Names that only this search needs.
    names: Frames,
    waits: Waits,
    known: Numbered<bool>,
}

impl<'a> FileCalls<'a> {
    pub(super) fn new(finder: Finder<'a>) -> FileCalls<'a> {
        FileCalls {
            finder,
            names: Frames::default(),
            waits: Waits::default(),
            known: Numbered::default(),
        }
    }

    /// Whether a stack is lost with a part of the chunk.
    pub(super) fn is_lost(&self, stack: u64) -> bool {
        self.finder.is_lost(stack)
    }

    /// Whether a thread with this stack, which seems to run, is in such a call.
    #[inline]
    pub(super) fn has(&mut self, stack: u64, budget: &mut Budget) -> Result<bool> {
        if let Some(known) = self.known.get(stack) {
            return Ok(known);
        }
        if self.names.text_bytes() > MOST_NAMES {
            self.names = Frames::default();
            self.waits = Waits::default();
            self.finder.forget();
        }
        let found = self.finder.find(stack, &mut self.names, budget)? == Found::Frames;
        let has = found && self.waits.is_file_call(&self.names, self.finder.frames());
        self.known.keep(stack, has);
        Ok(has)
    }
}
