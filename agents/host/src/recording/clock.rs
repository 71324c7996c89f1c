use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::param::{clock_ticks_per_second, page_size};

use crate::engine::api::Engine;
use crate::jvm::pauses::PauseLog;
use crate::os::proc::stat::Stat;
use crate::os::proc::target::Target;
use crate::recording::process::Order;
use crate::wire::outcome::Failure;

/// How often a running recording checks its process, for its end and its CPU time.
const LOOK: Duration = Duration::from_secs(1);

/// Why a recording ends.
pub enum End {
    Over,
    /// It is read, but was cut short for this reason.
    TooMuch(Failure),
    Unwanted,
}

/// Starts with a recording. The CPU time of a process that has ended is that of the last check.
#[derive(Clone)]
pub struct Clock {
    begin: Instant,
    first: Option<Stat>,
    pub seconds: f64,
    /// User and system time of the process.
    pub cpu_seconds: f64,
    pub user_seconds: f64,
    /// The most memory that it had when it was looked at, once a second.
    pub resident_bytes: u64,
}

impl Clock {
    pub fn start(target: &Target, begin: Instant) -> Self {
        Self {
            first: target.stat(),
            begin,
            seconds: 0.0,
            cpu_seconds: 0.0,
            user_seconds: 0.0,
            resident_bytes: 0,
        }
    }

    /// The clock of a recording that stands for `times` as much CPU time.
    pub fn scaled(&self, times: f64) -> Self {
        let times = if times.is_finite() { times } else { 1.0 };
        Self {
            cpu_seconds: self.cpu_seconds * times,
            user_seconds: self.user_seconds * times,
            ..self.clone()
        }
    }

    /// Add the CPU time until the recording was stopped: a JVM may delay the stop and is sampled meanwhile.
    pub fn stopped(&mut self, target: &Target) {
        let seconds = self.seconds;
        self.look(target);
        self.seconds = seconds;
    }

    pub fn wait(
        &mut self,
        engine: &dyn Engine,
        duration: f64,
        pauses: &mut Option<PauseLog>,
        orders: &Receiver<Order>,
    ) -> End {
        let end = self.begin + Duration::from_secs_f64(duration);
        let mut next = end.min(Instant::now() + LOOK);
        loop {
            let left = next.saturating_duration_since(Instant::now());
            let every = pauses.as_ref().map_or(LOOK, |pauses| pauses.every);
            let order = orders.recv_timeout(left.min(every));
            if let Some(pauses) = pauses {
                pauses.look();
            }
            if order == Err(RecvTimeoutError::Timeout) && Instant::now() < next {
                continue;
            }
            next = end.min(Instant::now() + LOOK);
            let lives = self.look(engine.target());
            match order {
                Ok(Order::Abort) | Err(RecvTimeoutError::Disconnected) => return End::Unwanted,
                Ok(Order::Stop) => return End::Over,
                _ if !lives || Instant::now() >= end => return End::Over,
                Ok(Order::Start) | Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(why) = engine.too_much() {
                return End::TooMuch(why);
            }
        }
    }

    fn look(&mut self, target: &Target) -> bool {
        let stat = target.stat();
        self.seconds = self.begin.elapsed().as_secs_f64();
        if let (Some(first), Some(stat)) = (self.first, stat) {
            let seconds = |then: u64, now: u64| {
                now.saturating_sub(then) as f64 / clock_ticks_per_second() as f64
            };
            self.cpu_seconds = seconds(first.cpu_ticks, stat.cpu_ticks);
            self.user_seconds = seconds(first.user_ticks, stat.user_ticks);
            let resident = stat.resident_pages.saturating_mul(page_size() as u64);
            self.resident_bytes = self.resident_bytes.max(resident);
        }
        stat.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_until_the_stop_counts_and_its_time_does_not() {
        let target = Target::own();
        let mut clock = Clock::start(&target, Instant::now());
        clock.look(&target);
        let (seconds, before) = (clock.seconds, clock.cpu_seconds);
        while target.stat().unwrap().cpu_ticks < clock.first.unwrap().cpu_ticks + 20 {}
        clock.stopped(&target);
        assert!(clock.cpu_seconds >= 0.2 && clock.cpu_seconds > before);
        assert_eq!(clock.seconds, seconds);
    }
}
