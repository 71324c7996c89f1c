use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::param::{clock_ticks_per_second, page_size};

use crate::engine::api::Engine;
use crate::jvm::pauses::PauseLog;
use crate::jvm::young::age;
use crate::os::lease::since_1970;
use crate::os::proc::stat::Stat;
use crate::os::proc::target::Target;
use crate::recording::process::Order;
use crate::wire::events::Past;
use crate::wire::outcome::Failure;

/// How often a running recording checks its process, for its end and its CPU time.
const LOOK: Duration = Duration::from_secs(1);
/// The most looks that are kept. A part that ends before them has what was spent evenly until then.
const LOOKS: usize = 120;

/// Why a recording is not waited for any more.
pub enum End {
    Over,
    /// It goes on, and a part of it is due.
    Part,
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
    /// What was spent by when, of the last looks.
    looks: VecDeque<Spent>,
    /// What the parts so far have.
    given: Spent,
}

/// In seconds since the begin.
#[derive(Clone, Copy, Default)]
struct Spent {
    seconds: f64,
    cpu: f64,
    user: f64,
}

impl Spent {
    fn since(self, before: Self) -> Self {
        Self {
            seconds: (self.seconds - before.seconds).max(0.0),
            cpu: (self.cpu - before.cpu).max(0.0),
            user: (self.user - before.user).max(0.0),
        }
    }

    /// In between, evenly spent.
    fn between(self, after: Self, seconds: f64) -> Self {
        let whole = after.seconds - self.seconds;
        let part = match whole > 0.0 {
            true => ((seconds - self.seconds) / whole).clamp(0.0, 1.0),
            false => 1.0,
        };
        Self {
            seconds,
            cpu: self.cpu + part * (after.cpu - self.cpu),
            user: self.user + part * (after.user - self.user),
        }
    }
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
            looks: VecDeque::new(),
            given: Spent::default(),
        }
    }

    /// What the process did before.
    pub fn past(&self) -> Past {
        let ticks = clock_ticks_per_second() as f64;
        Past {
            age: self
                .first
                .as_ref()
                .map(|first| age(first.start_time).as_secs_f64()),
            cpu_before: self
                .first
                .as_ref()
                .map(|first| first.cpu_ticks as f64 / ticks),
        }
    }

    /// Of what was recorded since the last part, until this time in microseconds since 1970.
    pub fn part(&mut self, until: i64) -> Self {
        let ago = since_1970().as_micros() as i64 - until;
        let now = self.begin.elapsed().as_secs_f64();
        let until = (now - ago as f64 / 1e6).clamp(self.given.seconds, now);
        let after = self.looks.partition_point(|look| look.seconds < until);
        let before = match after.checked_sub(1) {
            Some(before) => self.looks[before],
            None => self.given,
        };
        let after = self.looks.get(after).copied().unwrap_or(self.spent());
        let then = before.between(after, until);
        let part = then.since(self.given);
        self.looks.retain(|look| look.seconds > until);
        self.given = then;
        self.of(part)
    }

    /// Of what the parts do not have.
    pub fn rest(&self) -> Self {
        self.of(self.spent().since(self.given))
    }

    fn of(&self, spent: Spent) -> Self {
        Self {
            seconds: spent.seconds,
            cpu_seconds: spent.cpu,
            user_seconds: spent.user,
            ..self.clone()
        }
    }

    fn spent(&self) -> Spent {
        Spent {
            seconds: self.seconds,
            cpu: self.cpu_seconds,
            user: self.user_seconds,
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

    /// Until the end of a recording of `duration` seconds, or until a part of it is due.
    pub fn wait(
        &mut self,
        engine: &dyn Engine,
        duration: f64,
        part: Option<Instant>,
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
            if part.is_some_and(|part| part <= Instant::now()) {
                return End::Part;
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
            if self.looks.len() == LOOKS {
                self.looks.pop_front();
            }
            self.looks.push_back(self.spent());
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
        let past = clock.past();
        assert!(
            past.cpu_before.unwrap() <= past.age.unwrap() * 1024.0,
            "{past:?}"
        );
        assert_eq!(clock.seconds, seconds);
    }

    #[test]
    fn parts_have_what_was_spent_until_they_end() {
        let target = Target::own();
        let begin = Instant::now() - Duration::from_secs(30);
        let mut clock = Clock::start(&target, begin);
        let look = |seconds, cpu| Spent {
            seconds,
            cpu,
            user: cpu / 2.0,
        };
        clock.looks = [look(10.0, 4.0), look(11.0, 6.0), look(20.0, 6.0)].into();
        (clock.seconds, clock.cpu_seconds, clock.user_seconds) = (29.0, 12.0, 6.0);
        let now = since_1970().as_micros() as i64;
        let mut part = |at: i64| {
            let part = clock.part(now - (30 - at) * 1_000_000);
            [part.seconds, part.cpu_seconds, part.user_seconds].map(|it| (it * 10.0).round() / 10.0)
        };
        assert_eq!(part(5), [5.0, 2.0, 1.0]);
        assert_eq!(part(11), [6.0, 4.0, 2.0]);
        assert_eq!(part(3), [0.0, 0.0, 0.0]); // a clock that was set back
        assert_eq!(part(20), [9.0, 0.0, 0.0]);
        let rest = clock.rest();
        assert_eq!((rest.seconds.round(), rest.cpu_seconds.round()), (9.0, 6.0));
    }
}
