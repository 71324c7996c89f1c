//! From chunks to samples to the tree.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Read;

use hashbrown::HashMap;

use super::allocations::Allocations;
use super::chunk::{damaged, Chunk, Chunks, Events, Header, Survey};
use super::clock::{AllTaken, Clock};
use super::columns::Columns;
use super::events::Kinds;
use super::grow::{decode, grow, Grower};
use super::layout::Layout;
use super::metadata::Types;
use super::moments::Moments;
use super::names::Namer;
use super::places::Places;
use super::pools::{Of, Pools};
use super::samples::{Counted, Samples};
use super::settings::Settings;
use super::stacks::{Budget, FileCalls, Finder, Stacks};
use super::weights::Weights;
use crate::formats::ReadOptions;
use crate::profile::{Error, Profile, Result, Times};
use crate::source::Input;

/// Reads a recording's profile.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let mut recording = read(input, options, Settings::default())?;
    if options.times {
        let [sampled] = &mut recording.sampled[..] else {
            let values = recording.profile.value_list();
            return Err(Error::Usage(format!(
                "times: a profile has those of one event, and there are several: {values}"
            )));
        };
        recording.profile.set_times(sampled.times.take());
    }
    if recording.live_cut {
        recording.profile.add_incomplete([format!(
            "live objects are near or at the {MOST_LIVE} that async-profiler keeps: record with a larger allocation interval"
        )]);
    }
    Ok(recording.profile)
}

/// Reads a recording.
pub(super) fn read(
    input: Input<'_>,
    options: &ReadOptions,
    settings: Settings,
) -> Result<Recording> {
    let mut reader = Reader::new(options, settings);
    let mut chunks = Chunks::of(input, options.limits.chunk_bytes);
    let mut spent = Vec::new();
    loop {
        match chunks.next(std::mem::take(&mut spent)) {
            Ok(Some(chunk)) => {
                reader.take(&chunk)?;
                spent = chunk.bytes;
            }
            Ok(None) => break,
            // What was read before is kept.
            Err(error @ (Error::Jfr { .. } | Error::Limit { .. }))
                if reader.read > 0 || matches!(error, Error::Jfr { .. }) =>
            {
                reader.profile.add_incomplete([error.to_string()]);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    reader.finish()
}

/// The most live objects that async-profiler keeps.
pub const MOST_LIVE: u64 = 1024;
/// From so many on, its table may have been full: a collection just before the end empties a part of it.
const NEARLY_ALL_LIVE: u64 = MOST_LIVE * 9 / 10;
/// Kinds of events that are not read and are named.
const MOST_NAMED: usize = 5;
/// Smaller chunks are read by one thread.
const LARGE: usize = 1 << 20;

struct Reader<'o> {
    options: &'o ReadOptions,
    profile: Profile,
    columns: Columns,
    settings: Settings,
    counted: Counted,
    budget: Budget,
    lost: u64,
    /// The header of the first chunk.
    first: Option<Header>,
    /// That of async-profiler's first chunk, which may follow one of the JDK, whose ticks are others.
    first_of_profiler: Option<Header>,
    /// How many events with stacks are not read, by their names.
    unread: BTreeMap<String, u64>,
    /// Chunks of which something could be read.
    read: u64,
    live_cut: bool,
}

impl<'o> Reader<'o> {
    fn new(options: &'o ReadOptions, settings: Settings) -> Reader<'o> {
        let limit = options.limits.text_bytes;
        let budget = Budget { left: limit, limit };
        Reader {
            options,
            profile: Profile::bounded(Vec::new(), options.limits.cells),
            columns: Columns::default(),
            settings,
            counted: Counted {
                weights: Weights::new(options.estimate),
                taken: AllTaken::default(),
                moments: Moments::wanted(options),
                file_calls_budget: budget.clone(),
                wall: HashMap::default(),
                allocations: Allocations::default(),
            },
            budget,
            lost: 0,
            first: None,
            first_of_profiler: None,
            unread: BTreeMap::new(),
            read: 0,
            live_cut: false,
        }
    }

    fn take(&mut self, chunk: &Chunk) -> Result<()> {
        let first = self.first.get_or_insert(chunk.header);
        if let Some(moments) = &mut self.counted.moments {
            moments.begin_chunk(first.start);
        }
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
        self.profile.add_incomplete([warning]);
    }

    /// Adds the samples of a chunk. Returns how many had a missing stack.
    fn take_events(
        &mut self,
        chunk: &Chunk,
        types: &Types<'_>,
        pools: &Pools<'_>,
        complete: bool,
    ) -> Result<u64> {
        let mut kinds = Kinds::of(types);
        if kinds.of_jdk {
            self.settings.declare(&kinds);
        }
        for event in Events::of(&chunk.bytes) {
            let is = |kind: &Option<(u64, Layout)>| {
                kind.as_ref()
                    .is_some_and(|(number, _)| *number == event.kind)
            };
            if is(&kinds.setting) {
                self.settings.take(event, &kinds, pools, &chunk.bytes);
            } else if is(&kinds.jvm) {
                self.settings.take_jvm(event, &kinds, pools, &chunk.bytes);
            } else if let Some((_, layout)) = kinds
                .thread_start
                .as_ref()
                .filter(|_| is(&kinds.thread_start))
            {
                self.counted.allocations.start(event, layout, &chunk.bytes);
            }
        }
        let limits = &self.options.limits;
        let finder = || Finder::new(pools, Namer::new(pools, limits), complete);
        let mut stacks = Stacks::new(finder(), self.options.threads);
        let clock = self.clock(&chunk.header, kinds.of_jdk);
        let ticks = self.ticks(&clock);
        let mut samples = Samples {
            settings: &self.settings,
            counted: &mut self.counted,
            threads: self.options.threads,
            off_cpu: self.options.off_cpu,
            unfreed: self.options.unfreed.as_deref(),
            file_calls: FileCalls::new(finder()),
            pools,
            places: Places::default(),
            ticks,
            clock,
            default_state: state(pools, b"STATE_DEFAULT"),
            of_jdk: kinds.of_jdk,
            sleeping_state: state(pools, b"STATE_SLEEPING"),
            lost: 0,
            live: 0,
        };
        let large = chunk.bytes.len() >= LARGE;
        let mut events = Events::of(&chunk.bytes);
        let mut more = true;
        while more {
            let (names, tree, most_nodes) = self.profile.parts(limits.cells);
            stacks.begin();
            let (left, nodes) = grow(
                Grower::new(tree, most_nodes),
                large,
                |places, give| decode(places, &mut stacks, (names, &mut self.budget), give),
                |take| samples.take_round(&chunk.bytes, (&mut events, &mut kinds), take),
            )?;
            more = left;
            self.profile.grown();
            if let Some(moments) = &mut samples.counted.moments {
                moments.end_round(&nodes);
            }
            for (tally, node) in samples.places.take().into_iter().zip(nodes) {
                if !tally.lost {
                    self.columns
                        .add(&mut self.profile, node, &tally, limits.cells)?;
                }
            }
        }
        self.profile.modules.add(stacks.modules());
        let (lost, live) = (samples.lost, samples.live);
        self.live_cut |= live >= NEARLY_ALL_LIVE && self.settings.engine().is_some();
        for unread in kinds
            .unread
            .into_values()
            .filter(|unread| unread.events > 0)
        {
            *self.unread.entry(unread.name).or_default() += unread.events;
        }
        Ok(lost)
    }

    /// The first and the last tick of the time that is wanted.
    fn ticks(&self, clock: &Clock) -> (i64, i64) {
        let Some((from, to)) = self.options.time else {
            return (i64::MIN, i64::MAX);
        };
        let earlier = clock.chunk as f64 / 1e9;
        let tick = |seconds: f64| {
            let since_chunk = (seconds - earlier) * clock.ticks_per_second as f64;
            clock.ticks.saturating_add(since_chunk as i64)
        };
        (tick(from), tick(to))
    }

    fn clock(&mut self, header: &Header, of_jdk: bool) -> Clock {
        Clock {
            chunk: self.since_begin(header, of_jdk),
            ticks: header.start_ticks,
            ticks_per_second: header.ticks_per_second,
        }
    }

    /// Nanoseconds from the begin of the recording to that of a chunk. async-profiler's ticks are the machine's own:
    /// they do not jump when the clock is set.
    fn since_begin(&mut self, header: &Header, of_jdk: bool) -> i64 {
        let first = self.first.unwrap_or(*header);
        let since_first = |header: &Header| header.start.saturating_sub(first.start);
        if of_jdk || self.settings.engine().is_none() {
            return since_first(header);
        }
        let begin = *self.first_of_profiler.get_or_insert(*header);
        let by_ticks = header.ticks_since(&begin);
        by_ticks.map_or(since_first(header), |ticks| {
            since_first(&begin).saturating_add(ticks)
        })
    }

    /// What has stacks and is not read. The JDK has many such events, which matter if they are most.
    fn warn_of_unread(&mut self) {
        let taken = self.counted.taken.samples();
        let matters =
            |&(name, events): &(&String, &u64)| !name.starts_with("jdk.") || *events > taken;
        let mut unread: Vec<_> = self.unread.iter().filter(matters).collect();
        unread.sort_by_key(|&(_, events)| Reverse(*events));
        if unread.is_empty() {
            return;
        }
        let named = unread.iter().take(MOST_NAMED).map(|(name, events)| {
            let noun = if **events == 1 { "event" } else { "events" };
            format!("{} {noun} {name}", grouped(**events))
        });
        let named = named.collect::<Vec<_>>().join(", ");
        self.profile.add_warnings([format!("{named} are not read")]);
    }

    fn finish(mut self) -> Result<Recording> {
        if let (0, Some(reason)) = (self.read, self.profile.warnings().first()) {
            return Err(Error::Empty(reason.clone()));
        }
        self.warn_of_unread();
        let allocations = &self.counted.allocations;
        let share_error = allocations.share_error();
        self.profile.add_warnings(allocations.warning());
        let made = (self.options.off_cpu, self.options.limits.cells);
        let pairs = self
            .columns
            .finish(&mut self.profile, &self.settings, made, share_error)?;
        let taken = self.counted.taken;
        let moments = &mut self.counted.moments;
        let slices = moments.as_ref().map_or_else(Vec::new, Moments::slices);
        let sampled = pairs.into_iter().map(|(pair, (count, amount))| Sampled {
            count,
            amount,
            taken: taken.of(pair).samples,
            last: taken.of(pair).last,
            times: moments.as_mut().map(|moments| moments.times(pair, &slices)),
        });
        Ok(Recording {
            sampled: sampled.collect(),
            profile: self.profile,
            lost: self.lost,
            wall_busiest: self.counted.wall.values().copied().max().unwrap_or(0),
            start: self.first.map_or(0, |first| first.start),
            engine: self.settings.engine().map(str::to_string),
            live_cut: self.live_cut,
            settings: self.settings,
        })
    }
}

/// The number of a thread's state of this name.
fn state(pools: &Pools<'_>, wanted: &[u8]) -> Option<u64> {
    pools.ids(Of::States).find(|&id| {
        let name = pools.get(Of::States, id);
        name.is_some_and(|[text, ..]| *pools.text(text).utf8() == *wanted)
    })
}

/// `37,103`
fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

fn at(place: u64, error: Error) -> Error {
    match error {
        Error::Io(_) | Error::Jfr { .. } | Error::Limit { .. } => error,
        other => damaged(place, format_args!("in the chunk: {other}")),
    }
}

/// What a recording holds.
pub struct Recording {
    /// All values that were sampled; what could not be read is among its warnings.
    pub profile: Profile,
    /// For each thing that was sampled its values, and when.
    pub sampled: Vec<Sampled>,
    /// Samples that were left out: their stack is not in the recording, or they are damaged.
    pub lost: u64,
    /// The most wall-clock samples of one thread: a sampler that keeps up takes one each interval of a thread that
    /// lives throughout.
    pub wall_busiest: u64,
    /// When it began, in nanoseconds since 1970.
    pub start: i64,
    /// What async-profiler says it sampled CPU time by: `perf_events`, `ctimer`, `itimer`, `wall` ...
    pub engine: Option<String>,
    /// Whether there may be more live objects than async-profiler keeps.
    pub live_cut: bool,
    /// As they were at its end.
    pub settings: Settings,
}

/// One thing that was sampled.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// The profile's value that counts it.
    pub count: usize,
    /// The profile's value that says what it amounts to: time, bytes.
    pub amount: Option<usize>,
    /// How many samples were taken. Where values are estimates this is not.
    pub taken: u64,
    /// When the last was taken, in nanoseconds since the recording began.
    pub last: u64,
    /// When each stack had them, if that was asked for; nodes are the recording's profile's. See
    /// [`Profile::select_timed`].
    pub times: Option<Times>,
}

/// Reads a recording of the JDK Flight Recorder's format chunk by chunk: no more than one of them is in
/// memory. An unfinished recording is read as far as it goes. It is an error if nothing can be read.
pub fn read_jfr(input: impl Read + Send, options: &ReadOptions) -> Result<Recording> {
    read_jfr_part(input, options, Settings::default())
}

/// The same for chunks of a recording that follow others, with the settings that those had.
pub fn read_jfr_part(
    input: impl Read + Send,
    options: &ReadOptions,
    settings: Settings,
) -> Result<Recording> {
    let input = Input::stream(Box::new(std::io::BufReader::new(input)))?;
    read(input, options, settings)
}
