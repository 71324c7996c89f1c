//! From the events of a chunk to samples, counted by place.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::allocations::Allocations;
use super::bytes::Cursor;
use super::chunk::{Event, Events};
use super::clock::{AllTaken, Clock};
use super::columns::{nanoseconds, pair_of, Pair};
use super::events::{self, Kind, Kinds, Source};
use super::grow::{Batches, Take};
use super::layout::Slots;
use super::moments::{Batch, Moments};
use super::places::{Place, Places};
use super::pools::{Of, Pools};
use super::settings::Settings;
use super::stacks::{Budget, FileCalls};
use super::weights::Weights;
use crate::ops::Threads;
use crate::profile::{band_of, Result};

/// Most threads whose wall-clock samples are counted. A recording may name any number.
const MOST_THREADS: usize = 1 << 16;

/// What is counted over all chunks.
pub(super) struct Counted {
    pub(super) weights: Weights,
    pub(super) taken: AllTaken,
    /// When samples were taken, if that is asked for.
    pub(super) moments: Option<Moments>,
    /// Limits the stacks that are searched for file calls.
    pub(super) file_calls_budget: Budget,
    /// Wall-clock samples by thread.
    pub(super) wall: HashMap<u64, u64, RandomState>,
    pub(super) allocations: Allocations,
}

/// The samples of a chunk.
pub(super) struct Samples<'a, 'r> {
    pub(super) settings: &'r Settings,
    pub(super) counted: &'r mut Counted,
    pub(super) threads: Threads,
    pub(super) off_cpu: bool,
    pub(super) unfreed: Option<&'r HashSet<(i64, u64)>>,
    pub(super) file_calls: FileCalls<'a>,
    pub(super) pools: &'a Pools<'a>,
    pub(super) places: Places,
    /// The first and the last tick of the time that is wanted.
    pub(super) ticks: (i64, i64),
    pub(super) clock: Clock,
    /// The numbers of async-profiler's states for CPU samples, and for threads that do not run.
    pub(super) default_state: Option<u64>,
    /// Whether the JDK wrote the chunk.
    pub(super) of_jdk: bool,
    pub(super) sleeping_state: Option<u64>,
    /// Samples whose stack is not in the recording.
    pub(super) lost: u64,
    /// Samples of live objects.
    pub(super) live: u64,
}

impl Samples<'_, '_> {
    /// Takes events until there are too many places. Returns whether there are more events.
    pub(super) fn take_round(
        &mut self,
        bytes: &[u8],
        (events, kinds): (&mut Events<'_>, &mut Kinds),
        take: Take<'_>,
    ) -> Result<bool> {
        let mut out = Batches::new(take);
        while !self.places.is_full() {
            let Some(event) = events.next() else {
                out.hand_over()?;
                return Ok(false);
            };
            if let Some(kind) = kinds.get(event.kind) {
                self.take(bytes, event, kind, &mut out)?;
            } else if let Some(unread) = kinds.unread.get_mut(&event.kind) {
                unread.count(event, bytes);
            }
        }
        out.hand_over()?;
        Ok(true)
    }

    #[inline]
    fn take(
        &mut self,
        bytes: &[u8],
        event: Event,
        kind: &Kind,
        out: &mut Batches<'_>,
    ) -> Result<()> {
        let mut slots = Slots::default();
        let mut cursor = Cursor::new(&bytes[..event.end], event.fields);
        if kind.layout.read(&mut cursor, &mut slots).is_none() {
            self.lost += 1;
            return Ok(());
        }
        let time = slots[events::TIME] as i64;
        let is_of_before = kind.source == Source::Allocation && self.is_of_before(&slots);
        if time < self.ticks.0 || time > self.ticks.1 {
            return Ok(());
        }
        if is_of_before {
            let allocations = &mut self.counted.allocations;
            allocations.leave_out(slots[events::AMOUNT] as i64);
            slots[events::AMOUNT] = 0;
        } else if kind.source == Source::Allocation {
            let allocations = &mut self.counted.allocations;
            allocations.weigh(slots[events::AMOUNT] as i64);
        }
        let state = slots[events::STATE];
        let default_state = self.default_state.map(|default| default == state);
        let pair = pair_of(kind.source, (default_state, self.of_jdk), self.settings);
        if !self.add(kind, pair, &slots, out)? {
            self.lost += 1;
        } else if let Some(bytes) = pair.bytes() {
            self.add(kind, bytes, &slots, out)?;
        } else if self.off_cpu && pair == Pair::Wall && self.waits(&slots)? {
            self.add(kind, Pair::OffCpu, &slots, out)?;
        } else if pair == Pair::Malloc && self.is_unfreed(&slots) {
            self.add(kind, Pair::Unfreed, &slots, out)?;
        }
        self.live += u64::from(pair == Pair::Live);
        Ok(())
    }

    /// Whether what a sample of allocations weighs may have been allocated before the recording.
    fn is_of_before(&mut self, slots: &Slots) -> bool {
        let thread = slots[events::THREAD];
        // A virtual thread has no number of the system's.
        let known = self.pools.get(Of::Threads, thread);
        let is_virtual = known.is_some_and(|[_, native, _, java, ..]| native == 0 && java != 0);
        let since = self.clock.nanoseconds(slots[events::TIME] as i64);
        let weight = slots[events::AMOUNT] as i64;
        let allocations = &mut self.counted.allocations;
        allocations.is_of_before((thread, is_virtual), weight, since)
    }

    fn is_unfreed(&self, slots: &Slots) -> bool {
        let (ticks, address) = (slots[events::TIME] as i64, slots[events::ADDRESS]);
        self.unfreed
            .is_some_and(|all| all.contains(&(ticks, address)))
    }

    /// Whether the thread of a wall-clock sample does not run.
    fn waits(&mut self, slots: &Slots) -> Result<bool> {
        if self.sleeping_state == Some(slots[events::STATE]) {
            return Ok(true);
        }
        let budget = &mut self.counted.file_calls_budget;
        self.file_calls.has(slots[events::STACK], budget)
    }

    /// Adds a sample to the values of a pair. Returns false if its stack is missing.
    #[inline]
    fn add(
        &mut self,
        kind: &Kind,
        pair: Pair,
        slots: &Slots,
        out: &mut Batches<'_>,
    ) -> Result<bool> {
        let thread = slots[events::THREAD];
        let place = self.place(
            Place {
                stack: slots[events::STACK],
                thread: if self.threads == Threads::Off {
                    0
                } else {
                    thread
                },
                class: slots[events::CLASS],
                pair,
                outside: matches!(kind.source, Source::OutsideTlab | Source::Allocation),
            },
            out,
        )?;
        if self.places.is_lost(place) {
            return Ok(false);
        }
        let of_wall = if pair == Pair::OffCpu {
            Pair::Wall
        } else {
            pair
        };
        let (settings, counted) = (self.settings, &mut *self.counted);
        let per_second = self.clock.ticks_per_second;
        let weight = counted
            .weights
            .of(kind, of_wall, slots, settings, per_second)?;
        let taken = match of_wall {
            Pair::Wall => (weight.0, settings.wall_interval().unwrap_or(0)),
            _ => (1, 0),
        };
        if pair == Pair::Wall {
            counted.count_wall(thread, weight.0);
        }
        let ticks = slots[events::TIME] as i64;
        counted.taken.add(pair, &self.clock, ticks, taken);
        self.places.add(place, weight)?;
        if let Some(moments) = &mut counted.moments {
            let mut batch = Batch {
                pair,
                place,
                thread,
                ticks,
                samples: taken.0,
                span: 0,
                band: 0,
                amount: 0,
            };
            match kind.source {
                Source::Wall => {
                    let known = nanoseconds(slots[events::SPAN] as i64, per_second)?;
                    let steps = taken.0.saturating_sub(1);
                    batch.span = match known {
                        1.. => known,
                        _ => steps.saturating_mul(taken.1),
                    };
                }
                Source::Lock => {
                    let lasted = nanoseconds(slots[events::AMOUNT] as i64, per_second)?;
                    batch.band = band_of(lasted.max(0) as u64);
                }
                _ => {}
            }
            if pair.has_amounts() {
                batch.amount = weight.1.unwrap_or(0) as u64;
            }
            moments.add(&batch, &self.clock, self.pools);
        }
        Ok(true)
    }

    /// The number of a place. A new place is handed over to be added to the tree.
    #[inline]
    fn place(&mut self, place: Place, out: &mut Batches<'_>) -> Result<usize> {
        if let Some(known) = self.places.find(&place) {
            return Ok(known);
        }
        out.push(place)?;
        let lost = self.file_calls.is_lost(place.stack);
        Ok(self.places.push(place, lost))
    }
}

impl Counted {
    fn count_wall(&mut self, thread: u64, count: i64) {
        let count = count.max(0) as u64;
        if let Some(samples) = self.wall.get_mut(&thread) {
            *samples = samples.saturating_add(count);
        } else if self.wall.len() < MOST_THREADS {
            self.wall.insert(thread, count);
        }
    }
}
