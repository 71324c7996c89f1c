//! Whether the profiler still ends the pieces of its recording.
//!
//! Its timer sleeps until a time of day, at most a second from now. Once the host's clock is set back it sleeps until that
//! has caught up: no piece is ended, and one that outgrows what is held in memory cannot be read. The recording goes
//! on as long as it can be read; its end does not depend on that timer, but for its own time limit.

use std::cell::Cell;
use std::time::SystemTime;

use crate::wire::outcome::{Code, Failure};

/// How much may be recorded while no piece is ended, in bytes: half of the largest piece that is read.
const MOST: u64 = super::results::MAX_CHUNK / 2;

pub struct Pieces {
    /// The latest time of day that was seen, and the size of the recording then: until then its pieces were ended.
    latest: Cell<(SystemTime, u64)>,
}

impl Pieces {
    pub fn begin(now: SystemTime) -> Self {
        Self {
            latest: Cell::new((now, 0)),
        }
    }

    /// Why a recording of this size is ended at this time of day. To be asked now and then.
    pub fn too_large(&self, now: SystemTime, size: u64) -> Option<Failure> {
        let (latest, then) = self.latest.get();
        if now >= latest {
            self.latest.set((now, size));
            return None;
        }
        (size.saturating_sub(then) > MOST).then(|| {
            let reason = format!(
                "the host's clock was set back, and {} MiB were recorded since: a larger recording could not be read",
                MOST >> 20
            );
            Failure::new(reason, "record again").coded(Code::DamagedRecording)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const M: u64 = 1 << 20;

    /// Whether a recording is ended at the last of these looks, (second of the day, MiB), and at none before.
    fn is_ended(looks: &[(u64, u64)]) -> bool {
        let at = |second| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        let pieces = Pieces::begin(at(looks[0].0));
        let looks = looks.iter();
        let ended = looks.map(|&(now, size)| pieces.too_large(at(now), size * M).is_some());
        let mut ended: Vec<bool> = ended.collect();
        let last = ended.pop().unwrap();
        assert!(!ended.contains(&true), "{ended:?}");
        last
    }

    #[test]
    fn a_piece_that_is_not_ended_may_not_outgrow_what_is_read() {
        for (why, looks, want) in [
            ("it runs", vec![(5000, 1), (5001, 200), (5002, 400)], false),
            (
                "set forward",
                vec![(5000, 1), (9000, 200), (9001, 400)],
                false,
            ),
            (
                "set back",
                vec![(5000, 100), (1400, 120), (1401, 133)],
                true,
            ),
            ("not much since", vec![(5000, 100), (1400, 132)], false),
            (
                "caught up",
                vec![(5000, 1), (4997, 20), (5001, 90), (5002, 200)],
                false,
            ),
            (
                "set right again",
                vec![(5000, 1), (1400, 20), (5010, 90)],
                false,
            ),
            (
                "and back again",
                vec![(5000, 1), (5001, 90), (1400, 91), (1401, 123)],
                true,
            ),
        ] {
            assert_eq!(is_ended(&looks), want, "{why}");
        }
    }
}
