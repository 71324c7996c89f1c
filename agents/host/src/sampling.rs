//! How to record, as the coordinator asks for it.

use serde::Deserialize;

use crate::outcome::Failure;

const MAX_SECONDS: f64 = 86_400.0;
const MAX_FREQUENCY: u32 = 10_000;
const MAX_EVENTS: usize = 16;
/// No interval is longer, in nanoseconds or bytes: about 18 minutes, or 1 TiB.
const MAX_INTERVAL: u64 = 1 << 40;

/// `frequency` in Hz, `duration` in seconds, intervals in bytes (`alloc_interval`) and nanoseconds, where they are given.
#[derive(Debug, Clone, Deserialize)]
pub struct Sampling {
    pub engine: String,
    pub events: Vec<String>,
    pub frequency: u32,
    pub duration: f64,
    pub alloc_interval: Option<u64>,
    pub lock_threshold: Option<u64>,
    pub wall_interval: Option<u64>,
    /// Whether the recording itself is wanted besides its profiles.
    pub keep_raw: bool,
}

impl Sampling {
    /// Refuse what makes no sense, or would be more than a name in an engine's arguments.
    pub fn check(&self) -> Result<(), Failure> {
        self.check_events()?;
        if !(1..=MAX_FREQUENCY).contains(&self.frequency) {
            return Err(Failure::plain(format!(
                "{} Hz is not between 1 and {MAX_FREQUENCY}",
                self.frequency
            )));
        }
        if !(self.duration > 0.0 && self.duration <= MAX_SECONDS) {
            return Err(Failure::plain(format!(
                "{} s is not between 0 and {MAX_SECONDS}",
                self.duration
            )));
        }
        let intervals = [self.alloc_interval, self.lock_threshold, self.wall_interval];
        match intervals
            .into_iter()
            .flatten()
            .find(|n| !(1..=MAX_INTERVAL).contains(n))
        {
            Some(wrong) => Err(Failure::plain(format!(
                "an interval of {wrong} is not between 1 and {MAX_INTERVAL}"
            ))),
            None => Ok(()),
        }
    }

    fn check_events(&self) -> Result<(), Failure> {
        if !(1..=MAX_EVENTS).contains(&self.events.len()) {
            return Err(Failure::plain(format!(
                "{} events are not between 1 and {MAX_EVENTS}",
                self.events.len()
            )));
        }
        for (index, event) in self.events.iter().enumerate() {
            if !is_name(event) {
                return Err(Failure::new(
                    format!("{event:?} is no event"),
                    "name events such as cpu, alloc or page-faults",
                ));
            }
            if self.events[..index].contains(event) {
                return Err(Failure::plain(format!("event {event} is asked for twice")));
            }
        }
        Ok(())
    }
}

/// A comma would begin another argument, such as the name of a file to write; a minus at the beginning an option.
fn is_name(event: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:*$<>/-@".contains(c);
    !event.is_empty() && event.len() <= 200 && !event.starts_with('-') && event.chars().all(plain)
}

#[cfg(test)]
impl Sampling {
    /// These events (separated by spaces) at 300 Hz for 4.2 s.
    pub fn of(events: &str) -> Self {
        Self {
            engine: "auto".to_owned(),
            events: events.split(' ').map(str::to_owned).collect(),
            frequency: 300,
            duration: 4.2,
            alloc_interval: None,
            lock_threshold: None,
            wall_interval: None,
            keep_raw: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let cpu = || Sampling::of("cpu");
        assert!(Sampling::of("cpu alloc page-faults java.util.HashMap.get")
            .check()
            .is_ok());
        for wrong in [
            Sampling::of("cpu,file=/etc/x"),
            Sampling::of("-o"),
            Sampling::of(""),
            Sampling::of("cpu alloc cpu"),
            Sampling {
                events: Vec::new(),
                ..cpu()
            },
            Sampling {
                frequency: 0,
                ..cpu()
            },
            Sampling {
                duration: f64::NAN,
                ..cpu()
            },
            Sampling {
                alloc_interval: Some(0),
                ..cpu()
            },
            Sampling {
                wall_interval: Some(u64::MAX),
                ..cpu()
            },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
