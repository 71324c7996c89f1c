use super::*;
use crate::engine::api::Shared;
use crate::os::threads::broken;
use crate::wire::requests::Chosen;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;

static LEFT: AtomicBool = AtomicBool::new(false);

struct Broken(Target);

impl Engine for Broken {
    fn target(&self) -> &Target {
        &self.0
    }

    fn start(&mut self) -> Result<Started, Failure> {
        panic!("meant: what follows is tested");
    }

    fn stop(&mut self) -> Result<Stopped, Failure> {
        Err(broken())
    }

    fn fold(&mut self, _: Stopped) -> Result<Folded, Failure> {
        Err(broken())
    }

    fn raw(&mut self) -> Result<Raw, Failure> {
        Err(broken())
    }

    fn leave(self: Box<Self>) -> Vec<String> {
        LEFT.store(true, Ordering::SeqCst);
        vec!["left".to_owned()]
    }
}

fn of_this_process() -> Job {
    Job {
        end: None,
        chosen: Chosen::this_process(),
        shared: Arc::new(Shared::alone()),
    }
}

#[test]
fn an_engine_that_breaks_leaves_all_the_same() {
    let way = Way {
        engine: "broken",
        prepare: |_, target, _| Ok(Prepared::Ready(Box::new(Broken(target)))),
    };
    let (orders, mut to_follow) = channel();
    orders.send(Order::Start).unwrap();
    let over = attempt(
        &of_this_process(),
        &way,
        None,
        Vec::new(),
        &mut to_follow,
        &|_| {},
    )
    .unwrap();
    assert!(LEFT.load(Ordering::SeqCst));
    assert_eq!(
        (over.outcome.stage, over.left),
        (Stage::Record, vec!["left".to_owned()])
    );
    assert!(over.outcome.reason.contains("a bug in hprofiler"));
}
