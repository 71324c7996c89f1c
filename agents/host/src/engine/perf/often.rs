//! When events come too often for each of them to be a sample.

use super::events::Event;
use crate::os::host::processors;
use crate::wire::outcome::{Code, Failure};

/// So many at once are no matter, as when a process begins.
const BURST: f64 = 50_000.0;
/// Samples a second that a processor takes without harm, and all of a host together: one thread folds them.
const EACH: f64 = 10_000.0;
const ALL: f64 = 100_000.0;

/// How many samples a recording may have.
#[derive(Debug, Clone)]
pub struct Often {
    /// What each of is a sample; nobody sets how often that is.
    names: String,
    /// Samples a second.
    most: f64,
}

impl Often {
    /// Of these events: None where all are sampled at the frequency asked for.
    pub fn of(events: &[Event], frequency: u32) -> Option<Self> {
        Self::on(events, frequency, processors())
    }

    fn on(events: &[Event], frequency: u32, processors: u64) -> Option<Self> {
        let (each, timed): (Vec<&Event>, Vec<&Event>) =
            events.iter().partition(|event| event.is_each_one());
        let names: Vec<&str> = each.iter().map(|event| event.name.as_str()).collect();
        let timed = timed.len() as f64 * f64::from(frequency);
        (!names.is_empty()).then(|| Self {
            names: names.join(", "),
            most: (EACH * processors as f64).min(ALL) + timed * processors as f64,
        })
    }

    /// Why a recording of so many samples in so many seconds should end.
    pub fn too_many(&self, samples: u64, seconds: f64) -> Option<Failure> {
        let names = &self.names;
        (samples as f64 > BURST + self.most * seconds).then(|| {
            Failure::new(
                format!("{names}: too frequent to record each, {samples} in {seconds:.1} s"),
                format!("count {names} with `perf stat`, or record a less frequent event"),
            )
            .coded(Code::EventTooFrequent)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_too_often() {
        let of = |names: &str| {
            let events: Vec<_> = names
                .split(' ')
                .map(|name| Event::new(name).unwrap())
                .collect();
            Often::on(&events, 300, 4)
        };
        assert!(of("cpu cycles:u").is_none());
        for (names, samples, seconds, want) in [
            ("page-faults", 89_000, 1.0, false),
            ("page-faults", 91_000, 1.0, true),
            ("page-faults", 91_000, 2.0, false),
            ("sched:sched_switch cpu", 91_000, 1.0, false),
            ("offcpu cpu", 500_000, 10.0, true),
        ] {
            let why = of(names).unwrap().too_many(samples, seconds);
            assert_eq!(why.is_some(), want, "{names} {samples}");
        }
        let why = of("cpu page-faults cs")
            .unwrap()
            .too_many(u64::MAX, 1.0)
            .unwrap();
        assert!(
            why.reason.starts_with("page-faults, cs: too often"),
            "{why:?}"
        );
        let many = Often::on(&[Event::new("cs").unwrap()], 300, 1000);
        assert_eq!(many.unwrap().most, ALL);
    }
}
