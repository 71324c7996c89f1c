//! The constants of a chunk, found by number. Only where they begin is kept; they are read when needed.

use std::borrow::Cow;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::bytes::{Cursor, Text};
use super::layout::{Layout, Slots};
use super::metadata::Types;
use super::numbered::Numbered;

/// Most constants of a chunk. Two bytes can claim one.
const MOST_CONSTANTS: usize = 1 << 24;
/// Steps of all pools that are passed over, together.
const MOST_STEPS: usize = 1 << 20;

/// The pools that matter.
#[derive(Clone, Copy)]
pub(super) enum Of {
    Strings,
    Symbols,
    Classes,
    Methods,
    Threads,
    Stacks,
    States,
    FrameTypes,
}

/// For each of them its type and which fields go to which slot.
const WANTED: [(&str, &[&str]); 8] = [
    ("java.lang.String", &[]),
    ("jdk.types.Symbol", &["string"]),
    ("java.lang.Class", &["name"]),
    ("jdk.types.Method", &["type", "name"]),
    (
        "java.lang.Thread",
        &["osName", "osThreadId", "javaName", "javaThreadId"],
    ),
    ("jdk.types.StackTrace", &["frames"]),
    ("jdk.types.ThreadState", &["name"]),
    ("jdk.types.FrameType", &["description"]),
];
const FRAME: &[&str] = &["method", "type"];

#[derive(Default)]
struct Pool {
    class: Option<u64>,
    layout: Layout,
    places: Numbered<Place>,
}

/// Where a constant begins and ends; a chunk has less than 4 GB.
#[derive(Clone, Copy)]
struct Place {
    begin: u32,
    end: u32,
}

/// The encoded frames of a stack, leaf first, and their number.
pub(super) struct Packed<'a> {
    pub(super) count: u64,
    pub(super) bytes: &'a [u8],
}

/// The pools of one chunk.
pub(super) struct Pools<'a> {
    bytes: &'a [u8],
    pools: [Pool; WANTED.len()],
    frame: Layout,
    /// If frames consist of numbers only: how many numbers, and the indices of method and type.
    frame_numbers: Option<(usize, usize, usize)>,
    /// The fields before a stack's frames, and whether the frames come last.
    before_frames: Option<(Layout, bool)>,
    left: usize,
    /// Layouts of the pools that do not matter, to pass over them.
    others: HashMap<u64, Layout, RandomState>,
    others_left: usize,
}

impl<'a> Pools<'a> {
    pub(super) fn new(bytes: &'a [u8], types: &Types<'a>) -> Pools<'a> {
        let pools = WANTED.map(|(name, wanted)| {
            let class = types.id(name);
            let layout = class.and_then(|class| Layout::of(types, class, wanted));
            Pool {
                class: layout.as_ref().and(class),
                layout: layout.unwrap_or_default(),
                places: Numbered::default(),
            }
        });
        let stacks = pools[Of::Stacks as usize].class;
        let frame = stacks.and_then(|class| Layout::of_elements(types, class, "frames", FRAME));
        let frame = frame.unwrap_or_default();
        let before_frames = pools[Of::Stacks as usize].layout.before_array(0);
        Pools {
            bytes,
            pools,
            frame_numbers: frame.numbers(),
            frame,
            before_frames,
            left: MOST_CONSTANTS,
            others: HashMap::default(),
            others_left: MOST_STEPS,
        }
    }

    /// Reads the checkpoint whose fields begin here. `None` if the rest of it cannot be read.
    pub(super) fn add(&mut self, at: usize, end: usize, types: &Types<'a>) -> Option<()> {
        let mut cursor = Cursor::new(&self.bytes[..end], at);
        for _start_duration_delta_mask in 0..4 {
            cursor.number()?;
        }
        for _ in 0..cursor.number()? {
            let (class, count) = (cursor.number()?, cursor.number()?);
            match self.pools.iter().position(|pool| pool.class == Some(class)) {
                Some(pool) => self.add_constants(pool, count, &mut cursor)?,
                None => self.pass_over(class, count, &mut cursor, types)?,
            }
        }
        Some(())
    }

    fn add_constants(&mut self, pool: usize, count: u64, cursor: &mut Cursor<'a>) -> Option<()> {
        let pool = &mut self.pools[pool];
        let mut slots = Slots::default();
        for _ in 0..count {
            let id = cursor.number()?;
            self.left = self.left.checked_sub(1)?;
            let begin = u32::try_from(cursor.at()).ok()?;
            pool.layout.read(cursor, &mut slots)?;
            let end = u32::try_from(cursor.at()).ok()?;
            pool.places.insert(id, Place { begin, end });
        }
        Some(())
    }

    fn pass_over(
        &mut self,
        class: u64,
        count: u64,
        cursor: &mut Cursor<'a>,
        types: &Types<'a>,
    ) -> Option<()> {
        if !self.others.contains_key(&class) {
            let layout = Layout::of(types, class, &[])?;
            self.others_left = self.others_left.checked_sub(layout.len())?;
            self.others.insert(class, layout);
        }
        let layout = self.others.get(&class)?;
        let mut slots = Slots::default();
        for _ in 0..count {
            cursor.number()?;
            layout.read(cursor, &mut slots)?;
        }
        Some(())
    }

    /// The wanted fields of a constant.
    pub(super) fn get(&self, of: Of, id: u64) -> Option<Slots> {
        let pool = &self.pools[of as usize];
        let mut slots = Slots::default();
        let mut cursor = Cursor::new(self.bytes, pool.places.get(id)?.begin as usize);
        pool.layout.read(&mut cursor, &mut slots)?;
        Some(slots)
    }

    /// The numbers of all constants of a pool.
    pub(super) fn ids(&self, of: Of) -> impl Iterator<Item = u64> + '_ {
        self.pools[of as usize].places.numbers()
    }

    /// The text that begins at a place, or that the place refers to.
    pub(super) fn text(&self, place: u64) -> Text<'a> {
        let read = |place: usize| Cursor::new(self.bytes, place).text();
        match read(place as usize) {
            Some(Text::Pooled(id)) => {
                let strings = &self.pools[Of::Strings as usize];
                strings
                    .places
                    .get(id)
                    .and_then(|place| read(place.begin as usize))
                    .unwrap_or(Text::Null)
            }
            text => text.unwrap_or(Text::Null),
        }
    }

    pub(super) fn symbol(&self, id: u64) -> Cow<'a, [u8]> {
        let symbol = self.get(Of::Symbols, id);
        symbol.map_or(Cow::Borrowed(b""), |[text, ..]| self.text(text).utf8())
    }

    /// The frames of a stack. `None`: there is no such stack.
    pub(super) fn stack(&self, stack: u64) -> Option<Packed<'a>> {
        let place = self.pools[Of::Stacks as usize].places.get(stack)?;
        let (before, _) = self.before_frames.as_ref()?;
        let mut cursor = Cursor::new(&self.bytes[..place.end as usize], place.begin as usize);
        before.read(&mut cursor, &mut Slots::default())?;
        let count = cursor.number()?;
        let bytes = cursor.take(cursor.left() as u64)?;
        Some(Packed { count, bytes })
    }

    /// Whether stacks that end with the same bytes behind the end of a number end with the same frames.
    pub(super) fn frames_are_numbers(&self) -> bool {
        self.frame_numbers.is_some() && matches!(self.before_frames, Some((_, true)))
    }

    /// Reads the method and the type of a frame.
    #[inline]
    pub(super) fn frame(&self, cursor: &mut Cursor<'a>) -> Option<(u64, u64)> {
        if let Some((count, method, frame_type)) = self.frame_numbers {
            return cursor.two_of(count, method, frame_type);
        }
        let mut slots = Slots::default();
        self.frame.read(cursor, &mut slots)?;
        Some((slots[0], slots[1]))
    }
}
