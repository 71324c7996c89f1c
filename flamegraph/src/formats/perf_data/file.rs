//! Reading a file to its end: the values of its events, its profile.

use std::io::{Read, Seek};

use super::event::Event;
use super::finish::finish_file;
use super::live::Live;
use super::records::Records;
use crate::formats::options::{no_event, ReadOptions};
use crate::profile::{Profile, Result, ValueType};

/// The profile of a file.
pub(super) fn read(input: impl Read + Seek, options: &ReadOptions) -> Result<Profile> {
    let mut live = Live::of_file(options.clone());
    live.read_records(Records::new(input)?)?;
    finish_file(&mut live, options)
}

/// The values of a profile: for each event that is asked for its samples, and behind them their periods.
#[derive(Default)]
pub(crate) struct EventValues {
    pub(crate) values: Vec<ValueType>,
    /// For each event the number of its pair of values; none for one that is not asked for.
    pub(crate) by_event: Vec<Vec<usize>>,
}

impl EventValues {
    /// Values of these events; events of one name share theirs. Where there is only one, it is simply of samples.
    pub(crate) fn of(events: &[Event], wanted: Option<&str>) -> EventValues {
        let mut named: Vec<(&str, &Event)> = Vec::new();
        let mut all = EventValues::default();
        for event in events {
            let asked = wanted.is_none_or(|wanted| event.is_called(wanted));
            if event.is_dummy() || !asked {
                all.by_event.push(Vec::new());
                continue;
            }
            let name = wanted.unwrap_or(&event.name);
            let known = named.iter().position(|(known, _)| *known == name);
            all.by_event.push(vec![known.unwrap_or(named.len())]);
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

    /// Refuses an unknown event. The error lists the known ones.
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
}
