//! Processes that join a recording, and why they may not.

use super::{EventSink, Recordings};
use crate::wire::events::Event;
use crate::wire::outcome::{Code, Failure, Stage};
use crate::wire::requests::{Chosen, MAX_PROCESSES};

impl Recordings {
    /// Record them for what is left of the time. Err: the coordinator requests it at the wrong time.
    pub fn join(
        &mut self,
        mut chosen: Vec<Chosen>,
        sink: &mut impl EventSink,
    ) -> Result<(), Failure> {
        chosen.retain(|one| self.members.iter().all(|member| member.pid != one.pid));
        match self.span.end() {
            None if !self.span.is_stopped() => {
                let early = Failure::plain("join came before recording");
                return Err(early.coded(Code::BadRequest));
            }
            Some(end) if self.span.is_open() => {
                let room = MAX_PROCESSES.saturating_sub(self.members.len());
                let beyond = chosen.split_off(room.min(chosen.len()));
                self.launch(chosen, Some(end));
                refuse(&beyond, &too_many(), sink);
            }
            _ => refuse_late(&chosen, sink),
        }
        Ok(())
    }
}

/// The answer to a `join` that comes when the recording is over.
pub fn refuse_late(chosen: &[Chosen], sink: &mut impl EventSink) {
    let late = Failure::new("the recording was over", "record for a longer time");
    refuse(chosen, &late.coded(Code::RecordingOver), sink);
}

fn too_many() -> Failure {
    let reason = format!("more than {MAX_PROCESSES} processes, the limit per session");
    Failure::new(reason, "use a narrower selector")
        .coded(Code::TooManyProcesses)
        .with("most", MAX_PROCESSES)
}

fn refuse(chosen: &[Chosen], failure: &Failure, sink: &mut impl EventSink) {
    for one in chosen {
        let outcome = failure.clone().at(one.pid, Stage::Start);
        sink.send_event(&Event::Outcome(outcome));
    }
}
