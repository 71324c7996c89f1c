//! From chunks to samples to the tree.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::bytes::Cursor;
use super::chunk::{damaged, Chunk, Chunks, Event, Events, Header};
use super::columns::{pair_of, Columns, Pair};
use super::events::{self, Kind, Kinds, Source};
use super::layout::Slots;
use super::metadata::Types;
use super::names::Namer;
use super::pools::{Of, Pools};
use super::recording::{Recording, Sampled};
use super::settings::Settings;
use super::stacks::{Budget, Place, Stacks};
use super::survey::Survey;
use super::timeline::{Clock, Timeline};
use super::weights::Weights;
use crate::error::{Error, Result};
use crate::frames::{Frame, Kind as FrameKind};
use crate::input::Input;
use crate::options::ReadOptions;
use crate::profile::Profile;
use crate::threads::Threads;
use crate::tree::Node;

/// Reads a recording's profile.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    read(input, options).map(|recording| recording.profile)
}

/// Reads a recording.
pub(super) fn read(input: Input<'_>, options: &ReadOptions) -> Result<Recording> {
    let mut reader = Reader::new(options);
    let mut chunks = Chunks::of(input);
    let mut spent = Vec::new();
    loop {
        match chunks.next(std::mem::take(&mut spent)) {
            Ok(Some(chunk)) => {
                reader.take(&chunk)?;
                spent = chunk.bytes;
            }
            Ok(None) => break,
            Err(error @ Error::Jfr { .. }) => {
                reader.profile.add_warnings([error.to_string()]);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    reader.finish()
}

/// The places async-profiler has for live objects.
const MOST_LIVE: u64 = 1024;
/// Threads whose wall-clock samples are counted; no more, since a recording may name any number.
const MOST_THREADS: usize = 1 << 16;

struct Reader<'o> {
    options: &'o ReadOptions,
    profile: Profile,
    columns: Columns,
    settings: Settings,
    weights: Weights,
    timeline: Timeline,
    budget: Budget,
    lost: u64,
    /// Wall-clock samples by thread.
    wall: HashMap<u64, u64, RandomState>,
    /// When the recording began, in nanoseconds since 1970.
    start: Option<i64>,
    /// Chunks of which something could be read.
    read: u64,
}

/// The samples of a chunk.
struct Samples<'a> {
    stacks: Stacks<'a>,
    ticks: (i64, i64),
    clock: Clock,
    /// The numbers of async-profiler's states for CPU samples, and for threads that do not run.
    default_state: Option<u64>,
    sleeping_state: Option<u64>,
    /// Samples whose stack is not in the recording.
    lost: u64,
    /// Samples of live objects.
    live: u64,
}

impl<'o> Reader<'o> {
    fn new(options: &'o ReadOptions) -> Reader<'o> {
        let limit = options.limits.text_bytes;
        Reader {
            options,
            profile: Profile::bounded(Vec::new(), options.limits.cells),
            columns: Columns::default(),
            settings: Settings::default(),
            weights: Weights::new(options.estimate),
            timeline: Timeline::default(),
            budget: Budget { left: limit, limit },
            lost: 0,
            wall: HashMap::default(),
            start: None,
            read: 0,
        }
    }

    fn take(&mut self, chunk: &Chunk) -> Result<()> {
        self.start.get_or_insert(chunk.header.start);
        let place = chunk.place;
        let survey = Survey::of(chunk);
        let Some(types) = survey.types(chunk) else {
            self.lose(place, "has no metadata that can be read; it was left out");
            return Ok(());
        };
        let mut pools = Pools::new(&chunk.bytes, &types);
        let checkpoints = survey.checkpoints.iter();
        let broken = checkpoints
            .filter(|event| pools.add(event.fields, event.end, &types).is_none())
            .count();
        if survey.checkpoints.is_empty() {
            self.lose(
                place,
                "was never finished and has no names; it was left out",
            );
            return Ok(());
        }
        self.read += 1;
        if broken > 0 {
            self.lose(place, format_args!("has {broken} damaged checkpoints"));
        }
        let cut = !chunk.whole || survey.end != chunk.bytes.len();
        let complete = !cut && broken == 0;
        let lost = self.take_events(chunk, &types, &pools, complete);
        let lost = lost.map_err(|error| at(place, error))?;
        if cut {
            let end = place + survey.end as u64;
            self.lose(place, format_args!("is cut off at byte {end}"));
        }
        self.lost += lost;
        if lost > 0 {
            self.lose(
                place,
                format_args!("lost the stacks of {lost} samples; they were left out"),
            );
        }
        Ok(())
    }

    fn lose(&mut self, place: u64, what: impl std::fmt::Display) {
        let warning = damaged(place, format_args!("the chunk {what}")).to_string();
        self.profile.add_warnings([warning]);
    }

    /// Adds the samples of a chunk; returns how many had a stack that is not there.
    fn take_events(
        &mut self,
        chunk: &Chunk,
        types: &Types<'_>,
        pools: &Pools<'_>,
        complete: bool,
    ) -> Result<u64> {
        let kinds = Kinds::of(types);
        if let Some((setting, _)) = kinds.setting {
            for event in Events::of(&chunk.bytes).filter(|event| event.kind == setting) {
                self.settings.take(event, &kinds, pools, &chunk.bytes);
            }
        }
        let name_bytes = self.options.limits.name_bytes;
        let mut samples = Samples {
            stacks: Stacks::new(pools, Namer::new(pools, name_bytes), complete),
            ticks: self.ticks(&chunk.header),
            clock: self.clock(&chunk.header),
            default_state: state(pools, b"STATE_DEFAULT"),
            sleeping_state: state(pools, b"STATE_SLEEPING"),
            lost: 0,
            live: 0,
        };
        for event in Events::of(&chunk.bytes) {
            if let Some(kind) = kinds.get(event.kind) {
                self.take_sample(&chunk.bytes, event, kind, &mut samples)?;
            }
        }
        let (lost, live) = (samples.lost, samples.live);
        if live >= MOST_LIVE && self.settings.engine().is_some() {
            let what = format_args!(
                "has {live} live objects, the most that async-profiler keeps; there may be more than \
                 it says (a larger allocation interval finds all)"
            );
            self.lose(chunk.place, what);
        }
        Ok(lost)
    }

    /// The first and the last tick of the time that is wanted.
    fn ticks(&self, header: &Header) -> (i64, i64) {
        let Some((from, to)) = self.options.time else {
            return (i64::MIN, i64::MAX);
        };
        let earlier = header
            .start
            .saturating_sub(self.start.unwrap_or(header.start)) as f64
            / 1e9;
        let tick = |seconds: f64| {
            let since_chunk = (seconds - earlier) * header.ticks_per_second as f64;
            header.start_ticks.saturating_add(since_chunk as i64)
        };
        (tick(from), tick(to))
    }

    fn clock(&self, header: &Header) -> Clock {
        let start = self.start.unwrap_or(header.start);
        Clock {
            chunk: header.start.saturating_sub(start),
            ticks: header.start_ticks,
            ticks_per_second: header.ticks_per_second,
        }
    }

    #[inline]
    fn take_sample(
        &mut self,
        bytes: &[u8],
        event: Event,
        kind: &Kind,
        samples: &mut Samples<'_>,
    ) -> Result<()> {
        let mut slots = Slots::default();
        let mut cursor = Cursor::new(&bytes[..event.end], event.fields);
        if kind.layout.read(&mut cursor, &mut slots).is_none() {
            samples.lost += 1;
            return Ok(());
        }
        let time = slots[events::TIME] as i64;
        if time < samples.ticks.0 || time > samples.ticks.1 {
            return Ok(());
        }
        let default_state = samples
            .default_state
            .map(|state| state == slots[events::STATE]);
        let pair = pair_of(kind.source, default_state, &self.settings);
        if !self.add(kind, pair, &slots, samples)? {
            samples.lost += 1;
        } else if self.options.off_cpu && pair == Pair::Wall && self.waits(&slots, samples)? {
            self.add(kind, Pair::OffCpu, &slots, samples)?;
        }
        samples.live += u64::from(pair == Pair::Live);
        Ok(())
    }

    /// Whether the thread of a wall-clock sample does not run.
    fn waits(&mut self, slots: &Slots, samples: &mut Samples<'_>) -> Result<bool> {
        if samples.sleeping_state == Some(slots[events::STATE]) {
            return Ok(true);
        }
        let (profile, stack) = (&mut self.profile, slots[events::STACK]);
        samples
            .stacks
            .is_in_a_file_call(profile, stack, &mut self.budget)
    }

    /// Adds a sample to the values of a pair; false: its stack is not there.
    #[inline]
    fn add(
        &mut self,
        kind: &Kind,
        pair: Pair,
        slots: &Slots,
        samples: &mut Samples<'_>,
    ) -> Result<bool> {
        let threads = self.options.threads;
        let place = Place {
            stack: slots[events::STACK],
            thread: (threads != Threads::Off).then_some((slots[events::THREAD], threads)),
            waits: pair == Pair::OffCpu,
        };
        let (profile, budget) = (&mut self.profile, &mut self.budget);
        let Some(node) = samples.stacks.node(profile, place, budget)? else {
            return Ok(false);
        };
        let node = match slots[events::CLASS] {
            0 => node,
            class => samples.class_below(profile, node, (class, kind.source), budget)?,
        };
        let of_wall = if pair == Pair::OffCpu {
            Pair::Wall
        } else {
            pair
        };
        let per_second = samples.clock.ticks_per_second;
        let weight = self
            .weights
            .of(kind, of_wall, slots, &self.settings, per_second)?;
        let taken = match of_wall {
            Pair::Wall => (weight.0, self.settings.wall_interval().unwrap_or(0)),
            _ => (1, 0),
        };
        if pair == Pair::Wall {
            self.count_wall(slots[events::THREAD], weight.0);
        }
        let ticks = slots[events::TIME] as i64;
        self.timeline.add(pair, &samples.clock, ticks, taken);
        let cells = self.options.limits.cells;
        self.columns
            .add(&mut self.profile, (node, pair), weight, cells)?;
        Ok(true)
    }

    fn count_wall(&mut self, thread: u64, count: i64) {
        let count = count.max(0) as u64;
        if let Some(samples) = self.wall.get_mut(&thread) {
            *samples = samples.saturating_add(count);
        } else if self.wall.len() < MOST_THREADS {
            self.wall.insert(thread, count);
        }
    }

    fn finish(mut self) -> Result<Recording> {
        if let (0, Some(reason)) = (self.read, self.profile.warnings().first()) {
            return Err(Error::Empty(reason.clone()));
        }
        let made = (self.options.off_cpu, self.options.limits.cells);
        let pairs = self
            .columns
            .finish(&mut self.profile, &self.settings, made)?;
        let timeline = &mut self.timeline;
        let sampled = pairs.into_iter().map(|(pair, (count, amount))| Sampled {
            count,
            amount,
            timeline: timeline.take(pair),
        });
        Ok(Recording {
            sampled: sampled.collect(),
            profile: self.profile,
            lost: self.lost,
            wall_busiest: self.wall.values().copied().max().unwrap_or(0),
            start: self.start.unwrap_or(0),
            engine: self.settings.engine().map(str::to_string),
        })
    }
}

impl Samples<'_> {
    /// The class that was allocated or contended for, as the leaf: marked as async-profiler does.
    fn class_below(
        &mut self,
        profile: &mut Profile,
        node: Node,
        (class, source): (u64, Source),
        budget: &mut Budget,
    ) -> Result<Node> {
        let name = self.stacks.namer.class(profile, class, budget)?;
        let kind = match source {
            Source::OutsideTlab | Source::Allocation => FrameKind::Kernel,
            _ => FrameKind::Inlined,
        };
        profile.child(node, Frame::new(name, kind))
    }
}

/// The number of a thread's state of this name.
fn state(pools: &Pools<'_>, wanted: &[u8]) -> Option<u64> {
    pools.ids(Of::States).find(|&id| {
        let name = pools.get(Of::States, id);
        name.is_some_and(|[text, ..]| *pools.text(text).utf8() == *wanted)
    })
}

fn at(place: u64, error: Error) -> Error {
    match error {
        Error::Io(_) | Error::Jfr { .. } => error,
        other => damaged(place, format_args!("in the chunk: {other}")),
    }
}
