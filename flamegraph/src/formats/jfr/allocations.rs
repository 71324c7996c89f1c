//! What is wrong with the weights of the JDK's allocation samples. It weighs a sample by what its thread allocated since
//! its last one. So the first weighs all that the thread ever allocated, also before the recording. And after samples
//! that its throttle dropped, the next one weighs as much as all of them.

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use super::bytes::Cursor;
use super::chunk::Event;
use super::layout::{Layout, Slots};

/// No thread allocates more bytes in a nanosecond.
const MOST_PER_NANOSECOND: i64 = 10;
/// Most threads that are known. A recording may name any number.
const MOST_THREADS: usize = 1 << 20;

/// Throttled: the samples say no more than a third as many of the same weight would.
const THROTTLED: f64 = 3.0;

#[derive(Default)]
pub(super) struct Allocations {
    /// Threads that started during the recording or have had a sample.
    known: HashSet<u64, RandomState>,
    left_out: u64,
    bytes: i64,
    /// The number of weights, their sum, and that of their squares.
    weights: [f64; 3],
}

impl Allocations {
    /// Takes in an event `jdk.ThreadStart`.
    pub(super) fn start(&mut self, event: Event, layout: &Layout, bytes: &[u8]) {
        let mut slots = Slots::default();
        let mut cursor = Cursor::new(&bytes[..event.end], event.fields);
        if layout.read(&mut cursor, &mut slots).is_some() {
            self.is_first(slots[0]);
        }
    }

    /// Whether the weight of a sample may have been allocated before the recording, which began `since` nanoseconds
    /// ago. The next sample of the thread is right. A carrier, whose samples have the names of its virtual threads, is
    /// not known: there only what cannot be of the recording is such a weight.
    pub(super) fn is_of_before(
        &mut self,
        (thread, is_virtual): (u64, bool),
        weight: i64,
        since: i64,
    ) -> bool {
        match is_virtual {
            true => weight > since.saturating_mul(MOST_PER_NANOSECOND),
            false => self.is_first(thread),
        }
    }

    /// Counts a weight that is not left out.
    pub(super) fn weigh(&mut self, weight: i64) {
        let weight = weight as f64;
        for (sum, part) in self.weights.iter_mut().zip([1.0, weight, weight * weight]) {
            *sum += part;
        }
    }

    /// By how many percentage points a share may be off if the samples were throttled, else 0. These are three standard
    /// deviations of a share of a half, from as many samples of the same weight as say the same.
    pub(super) fn share_error(&self) -> u32 {
        let [count, sum, squares] = self.weights;
        let even = sum * sum / squares;
        match even * THROTTLED < count {
            true => (150.0 / even.sqrt()).ceil().min(100.0) as u32,
            false => 0,
        }
    }

    /// Counts a weight that is left out.
    pub(super) fn leave_out(&mut self, weight: i64) {
        self.left_out += 1;
        self.bytes = self.bytes.saturating_add(weight.max(0));
    }

    pub(super) fn warning(&self) -> Option<String> {
        let amount = match self.bytes {
            ..1_000_000 => format!("{:.1} kB", self.bytes as f64 / 1e3),
            _ => format!("{:.1} MB", self.bytes as f64 / 1e6),
        };
        let samples = match self.left_out {
            1 => "1 sample".to_string(),
            many => format!("{many} samples"),
        };
        (self.bytes > 0).then(|| {
            format!(
                "{amount} of {samples} jdk.ObjectAllocationSample are left out: the first sample of a thread \
                 also weighs what the thread allocated before the recording"
            )
        })
    }

    fn is_first(&mut self, thread: u64) -> bool {
        self.known.len() < MOST_THREADS && self.known.insert(thread)
    }
}
