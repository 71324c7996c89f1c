//! Which values the events of a file count to.

use super::event::Event;
use crate::formats::options::{no_event, ReadOptions};
use crate::profile::{Result, ValueType};

/// The values of a profile: for each event that is asked for its samples, and behind them their periods.
#[derive(Default)]
pub(crate) struct EventValues {
    pub(crate) values: Vec<ValueType>,
    /// Of each event the value its samples count to.
    samples: Vec<Option<usize>>,
}

impl EventValues {
    /// Values of these events; events of one name share theirs. Where there is only one, it is simply of samples.
    pub(crate) fn of(events: &[Event], wanted: Option<&str>) -> EventValues {
        let mut named: Vec<(&str, &Event)> = Vec::new();
        let mut all = EventValues::default();
        for event in events {
            let asked = wanted.is_none_or(|wanted| event.is_called(wanted));
            if event.is_dummy() || !asked {
                all.samples.push(None);
                continue;
            }
            let name = wanted.unwrap_or(&event.name);
            let known = named.iter().position(|(known, _)| *known == name);
            all.samples.push(Some(2 * known.unwrap_or(named.len())));
            if known.is_none() {
                named.push((name, event));
            }
        }
        all.values = match named[..] {
            [] => vec![ValueType::samples()],
            [(_, event)] => vec![
                ValueType::samples(),
                ValueType::new("period", event.period_unit()),
            ],
            _ => named
                .iter()
                .flat_map(|(name, event)| {
                    let period = format!("{name}_period");
                    [
                        ValueType::new(*name, "count"),
                        ValueType::new(period, event.period_unit()),
                    ]
                })
                .collect(),
        };
        all
    }

    /// Refuses an event that none is; the error says which there are.
    pub(crate) fn check(&self, events: &[Event], options: &ReadOptions) -> Result<()> {
        let Some(wanted) = &options.perf.event_filter else {
            return Ok(());
        };
        let mut there_are = events.iter().filter(|event| !event.is_dummy()).peekable();
        if there_are.peek().is_none() || there_are.clone().any(|event| event.is_called(wanted)) {
            return Ok(());
        }
        Err(no_event(wanted, there_are.map(|event| &*event.name)))
    }

    /// How many events there are values for, or that none are wanted of.
    pub(crate) fn event_count(&self) -> usize {
        self.samples.len()
    }

    /// Takes note of events that came too late to have a value.
    pub(crate) fn ignore_up_to(&mut self, events: usize) {
        self.samples.resize(events, None);
    }

    /// The value that counts an event's samples; the one behind it is of their periods.
    pub(crate) fn samples(&self, event: usize) -> Option<usize> {
        self.samples.get(event).copied().flatten()
    }

    /// The values that count samples.
    pub(crate) fn of_samples(&self) -> impl Iterator<Item = usize> {
        (0..self.values.len()).step_by(2)
    }
}
