//! Keeps the agent's use of processors, averaged over a few seconds, below its limit.

use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

use super::children;

/// What may be used before a rest, in seconds of one processor.
const AT_ONCE: f64 = 0.2;
/// The longest rest: a longer one would look like a hung thread.
const LONGEST: Duration = Duration::from_secs(2);

/// Processor time of all threads of the agent, and of its children.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32) + children::processor_time()
}

pub struct Pace {
    cores: f64,
    ahead: Mutex<Ahead>,
}

/// The processor seconds that were used beyond the limit, and when.
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

    /// Several threads that rest do so together.
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
    /// How long to rest. Unused time is not saved.
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
        // After a long pause no more may be used at once than before.
        assert!(ahead.look(0.5, at(1.6), used(1.0)) < Duration::from_micros(1));
        assert_eq!(ahead.look(0.5, at(60.0), used(1.0)), Duration::ZERO);
        let rest = ahead.look(0.5, at(61.0), used(2.0));
        assert!((rest.as_secs_f64() - 0.6).abs() < 1e-6, "{rest:?}");
    }
}
