use super::*;
use crate::os::proc::stat;
use crate::resources::folding::Folding;
use crate::wire::outcome::Ended;

fn recordings(step: Step, phases: &[Phase]) -> Recordings {
    let recording = |(pid, &phase)| Recording {
        pid,
        start_time: 0,
        phase,
        orders: channel().0,
        ended: phase == Phase::Over,
        published: None,
    };
    Recordings {
        all: (1..).zip(phases).map(recording).collect(),
        step,
        duration: Duration::from_secs(1),
        limit: Instant::now(),
        started: matches!(step, Step::Start | Step::Record),
        stopped: false,
        begun: None,
        shared: Arc::new(Shared::alone()),
        early: Vec::new(),
        left: Vec::new(),
        metrics: None,
    }
}

impl Recordings {
    pub fn without_room(&mut self) -> Arc<Folding> {
        let folding = Arc::new(Folding::new(Duration::from_secs(600), 0));
        Arc::get_mut(&mut self.shared).unwrap().folding = folding.clone();
        folding
    }
}

fn phases(recordings: &Recordings) -> Vec<Phase> {
    let all = recordings.all.iter();
    all.map(|recording| recording.phase).collect()
}

#[test]
fn what_hangs_does_not_hold_up_the_others() {
    use Phase::{Over, Preparing, Ready, Running, Starting};
    for (step, before, after, next) in [
        (
            Step::Prepare,
            [Preparing, Ready, Over],
            [Over, Ready, Over],
            Step::Wait,
        ),
        (
            Step::Start,
            [Starting, Running, Over],
            [Over, Running, Over],
            Step::Record,
        ),
        (
            Step::Record,
            [Running, Preparing, Over],
            [Over, Over, Over],
            Step::Record,
        ),
    ] {
        let mut recordings = recordings(step, &before);
        recordings.give_up(&mut Nobody);
        assert_eq!(phases(&recordings), after);
        assert_eq!(recordings.advance(&mut Nobody), step == Step::Record);
        assert_eq!(recordings.step, next);
    }
}

struct Nobody;

impl EventSink for Nobody {
    fn send_event(&mut self, _: &Event) {}

    fn send_result(&mut self, _: Finished) {}
}

struct Ends(Vec<Option<Ended>>);

impl EventSink for Ends {
    fn send_event(&mut self, _: &Event) {}

    fn send_result(&mut self, over: Finished) {
        self.0.push(over.outcome.ended);
    }
}

#[test]
fn of_one_that_hangs_and_is_gone_its_end_is_told() {
    let mut recordings = recordings(Step::Record, &[Phase::Running; 2]);
    recordings.all[0].pid = std::process::id() as i32;
    recordings.all[0].start_time = stat::own().unwrap().start_time;
    recordings.all[1].pid = i32::MAX;
    let mut ends = Ends(Vec::new());
    recordings.give_up(&mut ends);
    assert_eq!(ends.0, [None, Some(Ended::Process)]);
}

#[test]
fn each_that_is_folded_gives_time_to_the_next() {
    let mut recordings = recordings(Step::Record, &[Phase::Running; 2]);
    let outcome = Failure::plain("ended").at(1, Stage::Record);
    let over = Report::Over(Box::new(Finished::without_profiles(outcome)));
    recordings.handle_report(1, over, &mut Nobody);
    recordings.give_up(&mut Nobody);
    assert_eq!(phases(&recordings), [Phase::Over, Phase::Running]);
    assert!(recordings.limit > Instant::now() + END_TIME / 2);
}

#[test]
fn who_waits_for_others_to_be_received_is_not_given_up() {
    let mut recordings = recordings(Step::Record, &[Phase::Running]);
    let others = recordings.without_room().wait(vec![0]);
    recordings.give_up(&mut Nobody);
    assert_eq!(phases(&recordings), [Phase::Running]);
    drop(others);
    // From now on it could have been folded.
    let now = Instant::now();
    recordings.limit = now;
    recordings.give_up(&mut Nobody);
    assert_eq!(phases(&recordings), [Phase::Running]);
    assert!(recordings.limit <= now + END_TIME);
}
