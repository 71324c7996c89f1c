//! When samples were taken, in buckets.

use std::sync::Arc;

use super::clock::Clock;
use super::columns::{Pair, PAIRS};
use super::numbered::Numbered;
use super::pools::{Of, Pools};
use crate::formats::ReadOptions;
use crate::profile::{Node, Row, Slice, SliceOf, ThreadId, Times, TimesBuilder};

/// Rows of a place have this bit until its node is known. A tree has fewer nodes.
const PLACE: Node = 1 << 31;
/// Most moments to which one event is spread; async-profiler writes an event for a thousand samples.
const MOST_MOMENTS: i64 = 1 << 10;
/// Most moments to which all events are spread. A few bytes can stand for any number of samples.
const MOST_SPREAD: i64 = 1 << 26;

/// Samples that are one event.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    pub(super) pair: Pair,
    pub(super) place: usize,
    pub(super) thread: u64,
    /// When the first was taken.
    pub(super) ticks: i64,
    pub(super) samples: i64,
    /// Nanoseconds from the first to the last.
    pub(super) span: i64,
    pub(super) band: u8,
    pub(super) amount: u64,
}

/// The samples of a recording by time.
pub(super) struct Moments {
    builder: TimesBuilder,
    slices: Option<Arc<dyn SliceOf>>,
    /// Threads of the chunk, if there are slices.
    threads: Numbered<ThreadId>,
    /// When the recording began, in microseconds since 1970.
    start: i64,
    left: i64,
}

impl Moments {
    /// None if nobody asks for them.
    pub(super) fn wanted(options: &ReadOptions) -> Option<Moments> {
        options.times.then(|| Moments {
            builder: TimesBuilder::new(options.limits.rows, PAIRS),
            slices: options.slices.clone(),
            threads: Numbered::default(),
            start: 0,
            left: MOST_SPREAD,
        })
    }

    /// Starts a chunk of a recording that began at this time, in nanoseconds since 1970.
    pub(super) fn begin_chunk(&mut self, start: i64) {
        self.start = start.div_euclid(1000);
        self.threads = Numbered::default();
    }

    /// Adds samples at equal steps of their span.
    #[inline]
    pub(super) fn add(&mut self, batch: &Batch, clock: &Clock, pools: &Pools<'_>) {
        let first = clock.nanoseconds(batch.ticks);
        if batch.samples == 1 {
            return self.put(batch, first, 1, pools);
        }
        let most = MOST_MOMENTS.min(self.left.max(1));
        let moments = batch.samples.clamp(0, most);
        self.left = self.left.saturating_sub(moments);
        let part = |whole: i64, step: i64, steps: i64| {
            (i128::from(whole) * i128::from(step) / i128::from(steps)) as i64
        };
        let mut before = 0;
        for moment in 0..moments {
            let samples = part(batch.samples, moment + 1, moments);
            let later = part(batch.span, before, batch.samples - 1);
            self.put(batch, first.saturating_add(later), samples - before, pools);
            before = samples;
        }
    }

    #[inline]
    fn put(&mut self, batch: &Batch, nanoseconds: i64, samples: i64, pools: &Pools<'_>) {
        let microseconds = nanoseconds / 1000;
        let row = Row {
            node: batch.place as Node | PLACE,
            bucket: 0,
            slice: self.slice(batch.thread, microseconds, pools),
            band: batch.band,
            samples: u32::try_from(samples).unwrap_or(u32::MAX),
            amount: batch.amount,
        };
        self.builder.add(batch.pair as usize, microseconds, row);
    }

    #[inline]
    fn slice(&mut self, thread: u64, microseconds: i64, pools: &Pools<'_>) -> u16 {
        let Some(slices) = &self.slices else {
            return 0;
        };
        let id = self.threads.get(thread).unwrap_or_else(|| {
            let [_, native, _, java, ..] = pools.get(Of::Threads, thread).unwrap_or_default();
            let id = ThreadId { native, java };
            self.threads.keep(thread, id);
            id
        });
        slices.slice(id, self.start.saturating_add(microseconds))
    }

    /// Ends a round: the nodes of its places are known.
    pub(super) fn end_round(&mut self, nodes: &[Node]) {
        self.builder.renumber(|node| match node & PLACE {
            0 => node,
            _ => nodes[(node ^ PLACE) as usize],
        });
    }

    /// The slices of all times.
    pub(super) fn slices(&self) -> Vec<Slice> {
        self.slices
            .as_ref()
            .map_or_else(Vec::new, |slices| slices.slices())
    }

    /// The times of a pair. Without CPU samples, the JDK's samples of Java code took their place.
    pub(super) fn times(&mut self, pair: Pair, slices: &[Slice]) -> Times {
        let pair = match pair {
            Pair::Cpu if self.builder.is_empty(pair as usize) => Pair::Execution,
            pair => pair,
        };
        let slices = slices.to_vec();
        self.builder.times(pair as usize, self.start, slices, Some)
    }
}
