//! How good a recording is, in the words of the ledger.

use flamegraph::perf_data::{Recorded, RecordedEvent};

use super::java_map::Java;
use crate::engine::Note;
use crate::outcome::Failure;

/// What share of stacks may be broken, of frames nameless or of records lost, before it is worth saying.
const WORTH_SAYING: f64 = 0.02;

/// What a user should know before he believes the picture.
pub fn notes(recorded: &Recorded, java: &Java) -> Vec<Note> {
    let mut notes = Vec::new();
    let named = recorded.events.len() > 1;
    for event in &recorded.events {
        let of = if named {
            format!(" ({})", event.event)
        } else {
            String::new()
        };
        notes.extend(broken(event, java, &of));
        notes.extend(unknown(event, &of));
    }
    let taken: u64 = recorded.events.iter().map(|event| event.taken).sum();
    if let Some(percent) = share(recorded.lost, taken + recorded.lost) {
        notes.push(Note::of(Failure::new(
            format!("{percent} of the samples were lost: perf had no time or room for them"),
            "ask for a lower frequency",
        )));
    }
    if recorded.left_out > 0 {
        notes.push(Note::of(Failure::new(
            format!(
                "{} samples were left out: there are more stacks than the agent holds",
                recorded.left_out
            ),
            "record for a shorter time",
        )));
    }
    if recorded.malformed > 0 {
        notes.push(Note::plain(format!(
            "{} records of perf's were damaged",
            recorded.malformed
        )));
    }
    notes
}

/// What of that is known before anything is recorded.
pub fn foreseen(java: &Java) -> Option<Note> {
    (java.is_hotspot && !java.frame_pointers)
        .then(|| no_frame_pointers("most of the stacks will be broken"))
}

fn no_frame_pointers(what: &str) -> Note {
    Note::of(Failure::new(
        format!("{what}: the JVM keeps no frame pointers"),
        "restart the JVM with -XX:+PreserveFramePointer, or use async-profiler",
    ))
}

fn broken(event: &RecordedEvent, java: &Java, of: &str) -> Option<Note> {
    let percent = share(event.broken, event.taken);
    if java.is_hotspot && !java.frame_pointers && event.taken > 0 {
        let percent = percent.unwrap_or_else(|| "few".to_owned());
        return Some(no_frame_pointers(&format!(
            "{percent} of the stacks{of} are broken"
        )));
    }
    percent.map(|percent| {
        Note::plain(format!(
            "{percent} of the stacks{of} are broken: they come from code without frame pointers"
        ))
    })
}

fn unknown(event: &RecordedEvent, of: &str) -> Option<Note> {
    let unknown = &event.unknown;
    let percent = share(unknown.unknown_frames, unknown.frames)?;
    let most = unknown.modules.iter().max_by_key(|(_, frames)| **frames);
    let most = most.map_or(String::new(), |(module, _)| {
        format!(", most of them in {module}")
    });
    Some(Note::plain(format!(
        "{percent} of the frames{of} have no name{most}"
    )))
}

/// In per cent, if it is worth saying.
fn share(part: u64, whole: u64) -> Option<String> {
    let share = part as f64 / whole.max(1) as f64;
    (share > WORTH_SAYING).then(|| format!("{:.0} %", share * 100.0))
}
