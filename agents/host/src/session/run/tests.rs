use std::io::Read;
use std::os::unix::net::UnixStream;

use signal_hook::consts::SIGTERM;

use super::*;
use crate::recording::process::Finished;
use crate::wire::outcome::{Outcome, Stage, Status};

fn session(recordings: Recordings, output: Output) -> Session {
    Session {
        inbox: Inbox::new(),
        output,
        store: Store::in_memory(),
        host: host::facts(),
        name: session_name(),
        lease: FIRST_LEASE,
        greeted: true,
        excluded: HashSet::new(),
        recordings: Some(recordings),
        token: None,
        listens: false,
        lost: None,
        control: None,
    }
}

/// An output with a connection, and the other end of that.
fn output() -> (Output, UnixStream) {
    let (to, from) = UnixStream::pair().unwrap();
    let mut output = Output::unheard();
    output.keep();
    output.switch_connection(to.into(), &Event::Resumed { found: true }, 0);
    (output, from)
}

#[test]
fn what_waits_to_be_heard_is_not_given_up() {
    let (output, mut from) = output();
    let mut session = session(Recordings::hanging(7, true), output);
    let good = Finished::without_profiles(Outcome {
        status: Status::Ok,
        ..Failure::plain("its result").at(7, Stage::Record)
    });
    let waits = [
        Message::AuditPending, // which may have taken long to tell
        Message::Report(7, Report::Over(Box::new(good))),
        Message::Signal(SIGTERM),
    ];
    for message in waits {
        session.inbox.sender.send(message).unwrap();
    }
    assert!(matches!(session.serve(), End::Signal(SIGTERM)));
    drop(session);
    let mut told = String::new();
    from.read_to_string(&mut told).unwrap();
    assert!(told.contains("its result"), "{told}");
    assert!(!told.contains(r#""status":"failed""#), "{told}");
}
