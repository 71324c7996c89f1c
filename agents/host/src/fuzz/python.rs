//! What is read of Python processes, and what the agent's child says that reads them.

use std::time::Duration;

use flamegraph::Limits;

use super::recorded::can_be_sent;
use crate::engine::pyspy::messages::{failure, read_message, read_profiles, Event, Message};
use crate::engine::pyspy::spark_task;

/// The messages of a child, and the profiles that the agent takes from it.
pub fn python_child(mut bytes: &[u8]) {
    let limits = Limits {
        pprof_bytes: 1 << 20,
        cells: 1 << 18,
        rows: 1 << 16,
        ..Limits::default()
    };
    let every = Duration::from_millis(10);
    let events = ["cpu", "wall"].map(|name| Event { name, every });
    while let Ok(message) = read_message(&mut bytes) {
        match message {
            Message::Failed {
                code,
                reason,
                remedy,
            } => {
                let said = failure(code, &reason, &remedy);
                for text in [said.reason, said.remedy] {
                    assert!(text.chars().count() <= 500 && !text.contains(char::is_control));
                }
            }
            Message::Over(totals) => {
                let notes = totals.stops.map(|stops| stops.notes());
                assert!(notes.is_none_or(|notes| notes.len() <= 2));
            }
            Message::Profiles { profiles } | Message::Part { profiles, .. } => {
                let events = &events[..profiles.len().min(events.len())];
                let Ok(profiles) = read_profiles(&mut bytes, &profiles, events, &limits) else {
                    continue;
                };
                for profile in &profiles {
                    assert_eq!(
                        Ok(profile.taken as i64),
                        profile.profile.total(0).map_err(drop)
                    );
                    can_be_sent(profile);
                }
            }
            Message::Ready | Message::Alive | Message::Dump { .. } => {}
        }
    }
}

/// The memory of a Spark worker, after the release of Python.
pub fn spark_task(bytes: &[u8]) {
    let Some((&release, memory)) = bytes.split_first() else {
        return;
    };
    let task = spark_task::in_memory(memory, 0, 8 + u64::from(release % 7));
    assert!(task.is_none_or(|task| task < 1 << 62));
}
