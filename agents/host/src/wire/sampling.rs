//! How to record, as the coordinator asks for it.

use serde::Deserialize;

use crate::wire::outcome::Failure;

const MAX_SECONDS: f64 = 86_400.0;
/// async-profiler finishes a chunk every five seconds.
const LEAST_PART: f64 = 5.0;
const MAX_FREQUENCY: u32 = 10_000;
const MAX_EVENTS: usize = 16;
const MAX_COUNTERS: usize = 32;
/// In nanoseconds or bytes: about 18 minutes, or 1 TiB.
const MAX_INTERVAL: u64 = 1 << 40;
/// With shorter intervals a process does little more than be sampled. In bytes and in nanoseconds.
const LEAST_ALLOC: u64 = 4 << 10;
const LEAST_WALL: u64 = 1_000_000;

/// `frequency` in Hz, `duration` in seconds, intervals in bytes (`alloc_interval`) and nanoseconds.
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
    /// Whether it is wanted when samples were taken, and when garbage was collected.
    #[serde(default = "wanted")]
    pub timeline: bool,
    /// Whether names of threads may be followed where the JVM prints a warning about that.
    #[serde(default)]
    pub thread_names: bool,
    /// Whether Python processes are stopped for each sample, to read their native frames.
    #[serde(default)]
    pub python_native: bool,
    /// Whether it is wanted what the host did meanwhile.
    #[serde(default)]
    pub metrics: bool,
    /// After how many seconds what was recorded so far is sent, where the engine can do that. None: all at the end.
    #[serde(default)]
    pub part: Option<f64>,
    /// What to count beside the metrics: presets and names of events.
    #[serde(default)]
    pub counters: Vec<String>,
}

fn wanted() -> bool {
    true
}

impl Sampling {
    /// Refuse what is out of range, or would be more than a name in an engine's arguments.
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
        if let Some(wrong) = self
            .part
            .filter(|part| !(LEAST_PART..=MAX_SECONDS).contains(part))
        {
            return Err(Failure::plain(format!(
                "a part of {wrong} s is not between {LEAST_PART} and {MAX_SECONDS} s long"
            )));
        }
        if self.counters.len() > MAX_COUNTERS {
            return Err(Failure::plain(format!(
                "{} counters are more than {MAX_COUNTERS}",
                self.counters.len()
            )));
        }
        if let Some(wrong) = self.counters.iter().find(|name| !is_counter_name(name)) {
            return Err(Failure::plain(format!("{wrong:?} is not a counter")));
        }
        self.check_intervals()
    }

    fn check_intervals(&self) -> Result<(), Failure> {
        for (interval, least, unit, remedy) in [
            (
                self.alloc_interval,
                LEAST_ALLOC,
                "bytes between sampled allocations",
                "use an --alloc-interval of 4k or more, or leave it out",
            ),
            (
                self.wall_interval,
                LEAST_WALL,
                "ns between wall-clock samples",
                "use a --wall-interval of 1ms or more, or leave it out",
            ),
            (
                self.lock_threshold,
                0,
                "ns as the shortest contention",
                "use a lower threshold",
            ),
        ] {
            match interval {
                Some(wrong) if !(least..=MAX_INTERVAL).contains(&wrong) => {
                    return Err(Failure::new(
                        format!("{wrong} {unit} are not between {least} and {MAX_INTERVAL}"),
                        remedy,
                    ))
                }
                _ => {}
            }
        }
        Ok(())
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
                    format!("{event:?} is not an event"),
                    "use events such as cpu, alloc or page-faults",
                ));
            }
            if self.events[..index].contains(event) {
                return Err(Failure::plain(format!("event {event} is given twice")));
            }
        }
        Ok(())
    }
}

/// A comma would begin another argument, such as the name of an output file, and a minus an option.
fn is_name(event: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:*$<>/-@".contains(c);
    !event.is_empty() && event.len() <= 200 && !event.starts_with('-') && event.chars().all(plain)
}

/// A preset, an event, or `DEVICE/EVENT`.
fn is_counter_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    name.len() <= 100
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(plain)
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
            timeline: true,
            thread_names: false,
            python_native: false,
            metrics: false,
            part: None,
            counters: Vec::new(),
        }
    }
}
