//! What the coordinator asks.

use crate::discovery::containers::Containers;
use crate::discovery::scan::{environment, Seen};
use crate::discovery::selector::Selector;
use crate::engine::perf::events::{arguments, Event};
use crate::session::inbox::{read_input, Input};
use crate::wire::events::JvmFacts;
use crate::wire::requests::{Find, Request};
use crate::wire::sampling::Sampling;

/// Requests one after the other, as on stdin.
pub fn request(mut bytes: &[u8]) {
    while let Input::Request(request, payload) = read_input(&mut bytes) {
        match request {
            Request::Put { size, .. } => assert_eq!(size, payload.len() as u64),
            Request::Find(find) => found(find),
            Request::Prepare(asked) | Request::Check(asked) => {
                recorded(&asked.sampling);
            }
            _ => {}
        }
    }
}

/// The process is gone: its files in `/proc` cannot be read.
fn found(find: Find) {
    let line = "/usr/bin/java -Xmx1g -Dspark.driver=7 org.example.Main --name a attempt_1_2_m_3_4";
    let mut process = Seen::of(-1, line);
    process.jvm = Some(JvmFacts {
        version: "17.0.9".to_owned(),
    });
    let containers = find.containers.map(Containers::new);
    if let Some(Ok(containers)) = containers {
        containers.of(&process, &environment(&process));
    }
    if let Some(Ok(selector)) = find.selector.map(Selector::new) {
        selector.matches(&process, find.native);
        let (label, labels) = selector.label(&process);
        for text in labels.values().chain([&label]) {
            assert!(text.chars().count() <= 200);
        }
    }
}

/// Whatever passes the checks is only a name to perf.
fn recorded(sampling: &Sampling) {
    if sampling.check().is_err() {
        return;
    }
    let events = sampling.events.iter().map(|event| Event::new(event));
    let events: Vec<Event> = events.filter_map(Result::ok).collect();
    for argument in arguments(&events, sampling.frequency, false).1 {
        let plain = |c: char| c.is_ascii_graphic() && !"\\'\"`;&|(){}".contains(c);
        assert!(argument.chars().all(plain), "{argument:?}");
    }
}
