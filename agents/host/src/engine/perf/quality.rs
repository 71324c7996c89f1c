//! How good a recording is, in the words of the ledger.

use flamegraph::perf_data::{Recorded, RecordedEvent};

use super::java_map::Java;
use crate::engine::api::{share, Note};
use crate::wire::outcome::{Code, Failure};

/// What a user should know before he believes the picture. `better`: async-profiler would do in perf's place.
pub fn notes(recorded: &Recorded, java: &Java, better: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    let named = recorded.events.len() > 1;
    for event in &recorded.events {
        let of = if named {
            format!(" ({})", event.event)
        } else {
            String::new()
        };
        notes.extend(broken(event, java, &of, better));
        notes.extend(unknown(event, &of));
    }
    let taken: u64 = recorded.events.iter().map(|event| event.taken).sum();
    if let Some(percent) = share(recorded.lost, taken + recorded.lost) {
        notes.push(Note::of(
            Failure::new(
                format!("{percent} of the samples were lost: perf had too little time or memory"),
                "use a lower frequency",
            )
            .coded(Code::SamplesLost),
        ));
    }
    if recorded.left_out > 0 {
        notes.push(Note::of(
            Failure::new(
                format!(
                    "{} samples were left out: there are more stacks than the agent can hold",
                    recorded.left_out
                ),
                "record for a shorter time",
            )
            .coded(Code::SamplesLost),
        ));
    }
    if recorded.malformed > 0 {
        notes.push(
            Note::plain(format!(
                "{} records of perf were damaged",
                recorded.malformed
            ))
            .coded(Code::DamagedRecording),
        );
    }
    notes
}

/// What of that is known before anything is recorded: how many there will be is not.
pub fn foreseen(java: &Java, better: bool) -> Option<Note> {
    (java.is_hotspot && !java.frame_pointers)
        .then(|| no_frame_pointers("stacks may be broken", better))
}

fn no_frame_pointers(what: &str, better: bool) -> Note {
    let remedy = match better {
        true => "restart the JVM with -XX:+PreserveFramePointer, or use async-profiler",
        false => "restart the JVM with -XX:+PreserveFramePointer",
    };
    Note::of(Failure::new(
        format!("{what}: the JVM keeps no frame pointers"),
        remedy,
    ))
    .coded(Code::NoFramePointers)
}

fn broken(event: &RecordedEvent, java: &Java, of: &str, better: bool) -> Option<Note> {
    let percent = share(event.broken, event.taken);
    if java.is_hotspot && !java.frame_pointers && event.taken > 0 {
        let percent = percent.unwrap_or_else(|| "few".to_owned());
        let what = format!("{percent} of the stacks{of} are broken");
        let note = no_frame_pointers(&what, better);
        return Some(
            note.with("event", event.event.clone())
                .with("share", share_of(event)),
        );
    }
    percent.map(|percent| {
        Note::plain(format!(
            "{percent} of the stacks{of} are broken: they come from code without frame pointers"
        ))
        .coded(Code::BrokenStacks)
        .with("event", event.event.clone())
        .with("share", share_of(event))
    })
}

/// The share of broken stacks, 0 to 1.
fn share_of(event: &RecordedEvent) -> f64 {
    event.broken as f64 / event.taken.max(1) as f64
}

fn unknown(event: &RecordedEvent, of: &str) -> Option<Note> {
    let unknown = &event.unknown;
    let percent = share(unknown.unknown_frames, unknown.frames)?;
    let most = unknown.modules.iter().max_by_key(|(_, frames)| **frames);
    let most = most.map_or(String::new(), |(module, _)| {
        format!(", most of them in {module}")
    });
    Some(
        Note::plain(format!("{percent} of the frames{of} have no name{most}"))
            .coded(Code::UnknownFrames),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn async_profiler_is_advised_only_where_it_would_do() {
        let java = Java {
            is_hotspot: true,
            no_attach: None,
            no_agents: None,
            frame_pointers: false,
            debug_non_safepoints: false,
        };
        for better in [true, false] {
            let note = foreseen(&java, better).unwrap();
            assert!(note.remedy.contains("PreserveFramePointer"), "{note:?}");
            assert_eq!(note.remedy.contains("async-profiler"), better, "{note:?}");
        }
        let java = Java {
            frame_pointers: true,
            ..java
        };
        assert_eq!(foreseen(&java, true), None);
    }
}
