//! When samples were taken, in buckets.

use std::sync::Arc;

use super::stacks::StackId;
use crate::profile::{Node, Row, Slice, SliceOf, ThreadId, Times, TimesBuilder};

/// The samples of a stream by time.
pub(super) struct Moments {
    builder: TimesBuilder,
    /// One moment in nanoseconds of the stream's clock, and in microseconds since 1970.
    clock: (u64, i64),
    slices: Option<Arc<dyn SliceOf>>,
}

/// A sample of a profile.
pub(super) struct Sample {
    pub(super) profile: usize,
    pub(super) stack: StackId,
    pub(super) tid: u32,
    /// Of the stream's clock, as is the begin of the recording.
    pub(super) time: u64,
    pub(super) begin: u64,
    pub(super) band: u8,
    pub(super) amount: u64,
}

impl Moments {
    /// Keeps at most so many rows of so many profiles.
    pub(super) fn new(
        rows: usize,
        profiles: usize,
        clock: (u64, i64),
        slices: Option<Arc<dyn SliceOf>>,
    ) -> Moments {
        Moments {
            builder: TimesBuilder::new(rows, profiles),
            clock,
            slices,
        }
    }

    pub(super) fn add(&mut self, sample: &Sample) {
        let thread = ThreadId {
            native: u64::from(sample.tid),
            java: 0,
        };
        let slices = self.slices.as_ref();
        let slice = slices.map_or(0, |slices| {
            slices.slice(thread, self.since_1970(sample.time))
        });
        let row = Row {
            node: sample.stack,
            bucket: 0,
            slice,
            band: sample.band,
            samples: 1,
            amount: sample.amount,
        };
        let since = sample.time.saturating_sub(sample.begin) / 1000;
        self.builder.add(sample.profile, since as i64, row);
    }

    /// The times of a profile of a recording that began at this time; `node` finds a stack's node.
    pub(super) fn times(
        &mut self,
        profile: usize,
        begin: u64,
        node: impl Fn(StackId) -> Option<Node>,
    ) -> Times {
        let slices = self.slices.as_ref();
        let slices: Vec<Slice> = slices.map_or_else(Vec::new, |slices| slices.slices());
        let start = self.since_1970(begin);
        let times = self.builder.times(profile, start, slices, node);
        // Samples that all stand for the same need not say it.
        let of_first = |rows: &[Row]| Some(rows.first()?.amount / u64::from(rows[0].samples));
        match of_first(times.rows()) {
            Some(each) if times.rows().iter().all(|row| row.is_worth(each)) => {
                times.without_amounts()
            }
            _ => times,
        }
    }

    /// A time of the stream's clock in microseconds since 1970.
    fn since_1970(&self, time: u64) -> i64 {
        let later = (i128::from(time) - i128::from(self.clock.0)).div_euclid(1000);
        let later = later.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
        self.clock.1.saturating_add(later as i64)
    }
}
