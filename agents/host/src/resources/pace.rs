//! Resting: what is used of the processors stays, on average of a few seconds, below what the agent may have.

use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

/// What may be used at once, before anybody rests, in seconds of one processor.
const AT_ONCE: f64 = 0.2;
/// Nobody rests for longer at a time: who waits for him must not take him for one that hangs.
const LONGEST: Duration = Duration::from_secs(2);

/// Processor time that the agent has used, all its threads together.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Keeps to a number of processors.
pub struct Pace {
    cores: f64,
    ahead: Mutex<Ahead>,
}

/// How far more was used than there was, in processor seconds, and when that was known.
struct Ahead {
    seconds: f64,
    at: Instant,
    used: Duration,
}

impl Pace {
    pub fn new(cores: f64) -> Self {
        let ahead = Ahead {
            seconds: 0.0,
            at: Instant::now(),
            used: used(),
        };
        Self {
            cores,
            ahead: Mutex::new(ahead),
        }
    }

    /// Rest until the agent is no further ahead than it may be. Several that rest do so together.
    pub fn rest(&self) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = ahead.look(self.cores, Instant::now(), used());
        drop(ahead);
        if !rest.is_zero() {
            sleep(rest.min(LONGEST));
        }
    }
}

impl Ahead {
    /// How long to rest. What is not used is not saved for later.
    fn look(&mut self, cores: f64, now: Instant, used: Duration) -> Duration {
        let spent = used.saturating_sub(self.used).as_secs_f64();
        let had = now.saturating_duration_since(self.at).as_secs_f64() * cores;
        self.seconds = (self.seconds + spent - had).max(0.0);
        (self.at, self.used) = (now, used);
        let over = (self.seconds - AT_ONCE).max(0.0);
        Duration::from_secs_f64(over / cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> (Ahead, Instant) {
        let at = Instant::now();
        let used = Duration::ZERO;
        let seconds = 0.0;
        (Ahead { seconds, at, used }, at)
    }

    #[test]
    fn who_uses_more_rests() {
        let (mut ahead, begin) = pace();
        let at = |seconds| begin + Duration::from_secs_f64(seconds);
        let used = Duration::from_secs_f64;
        assert_eq!(ahead.look(0.5, at(0.2), used(0.2)), Duration::ZERO);
        let rest = ahead.look(0.5, at(1.0), used(1.0));
        assert!((rest.as_secs_f64() - 0.6).abs() < 1e-6, "{rest:?}");
        // After that it may go on, and after a long pause use no more at once than ever.
        assert!(ahead.look(0.5, at(1.6), used(1.0)) < Duration::from_micros(1));
        assert_eq!(ahead.look(0.5, at(60.0), used(1.0)), Duration::ZERO);
        let rest = ahead.look(0.5, at(61.0), used(2.0));
        assert!((rest.as_secs_f64() - 0.6).abs() < 1e-6, "{rest:?}");
    }
}
