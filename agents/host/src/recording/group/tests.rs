use super::*;
use crate::os::proc::stat;
use crate::resources::folding::Folding;
use crate::wire::outcome::Code;
use crate::wire::outcome::Ended;
use crate::wire::requests::Chosen;
use crate::wire::requests::MAX_PROCESSES;

/// Whose limits are over.
fn recordings(step: Step, phases: &[Phase]) -> Recordings {
    let now = Instant::now();
    let member = |(pid, &phase): (i32, &Phase)| {
        let waits = matches!(phase, Phase::Ready | Phase::Over) && step != Step::Record
            || phase == Phase::Over
            || phase == Phase::Running && step != Step::Record;
        Member::of(pid, phase, (!waits).then_some(now))
    };
    let mut span = Span::new(1.0);
    if step == Step::Record {
        span.begin();
    }
    Recordings {
        members: (1..).zip(phases).map(member).collect(),
        step,
        span,
        started: matches!(step, Step::Start | Step::Record),
        shared: Arc::new(Shared::alone()),
        send: Arc::new(|_, _| {}),
        early: Vec::new(),
        early_parts: Vec::new(),
        left: Vec::new(),
        metrics: None,
        metrics_due: None,
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
    let all = recordings.members.iter();
    all.map(|member| member.phase).collect()
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

    fn send_part(&mut self, _: PartMessages) {}

    fn send_result(&mut self, _: Finished) {}
}

struct Ends(Vec<Option<Ended>>);

impl EventSink for Ends {
    fn send_event(&mut self, _: &Event) {}

    fn send_part(&mut self, _: PartMessages) {}

    fn send_result(&mut self, over: Finished) {
        self.0.push(over.outcome.ended);
    }
}

#[test]
fn of_one_that_hangs_and_is_gone_its_end_is_told() {
    let mut recordings = recordings(Step::Record, &[Phase::Running; 2]);
    recordings.members[0].pid = std::process::id() as i32;
    recordings.members[0].start_time = stat::own().unwrap().start_time;
    recordings.members[1].pid = i32::MAX;
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
    assert!(recordings.limit() > Some(Instant::now() + END_TIME / 2));
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
    recordings.members[0].limit = Some(now);
    recordings.give_up(&mut Nobody);
    assert_eq!(phases(&recordings), [Phase::Running]);
    assert!(recordings.limit() <= Some(now + END_TIME));
}

fn started(pid: i32) -> (i32, Report) {
    let sources = Default::default();
    let started = Report::Started {
        engine: "perf",
        sources,
        past: Default::default(),
    };
    (pid, started)
}

fn over(pid: i32) -> (i32, Report) {
    let outcome = Failure::plain("ended").at(pid, Stage::Record);
    let over = Finished::without_profiles(outcome);
    (pid, Report::Over(Box::new(over)))
}

fn chosen(pids: impl IntoIterator<Item = i32>) -> Vec<Chosen> {
    let this = Chosen::this_process();
    let of = |pid| Chosen {
        pid,
        ..this.clone()
    };
    pids.into_iter().map(of).collect()
}

/// What was sent, by type and pid.
#[derive(Default)]
struct Sent(Vec<(&'static str, i32)>);

impl EventSink for Sent {
    fn send_event(&mut self, event: &Event) {
        self.0.push(match event {
            Event::Started { pid, .. } => ("started", *pid),
            Event::Recording { processes } => ("recording", *processes as i32),
            Event::Outcome(outcome) if outcome.code == Code::RecordingOver => {
                ("late", outcome.pid.unwrap())
            }
            Event::Outcome(outcome) if outcome.code == Code::TooManyProcesses => {
                ("beyond", outcome.pid.unwrap())
            }
            event => panic!("{event:?}"),
        });
    }

    fn send_part(&mut self, _: PartMessages) {}

    fn send_result(&mut self, over: Finished) {
        self.0.push(("over", over.outcome.pid.unwrap()));
    }
}

#[test]
fn who_joins_starts_at_once_and_has_a_limit_of_its_own() {
    let (mut recordings, mut sent) = (recordings(Step::Start, &[Phase::Starting]), Sent::default());
    recordings.follow();
    assert!(
        recordings.join(chosen([8]), &mut sent).is_err(),
        "too early"
    );
    let mut report = |recordings: &mut Recordings, (pid, report)| {
        recordings.handle_report(pid, report, &mut sent);
        recordings.advance(&mut sent)
    };
    assert!(!report(&mut recordings, started(1)));
    let planned = recordings.members[0].limit;
    // One that the group knows already is left out.
    recordings.join(chosen([1, 8]), &mut Nobody).unwrap();
    assert_eq!(phases(&recordings), [Phase::Running, Phase::Preparing]);
    assert!(recordings.members[1].limit < planned);
    let published = None;
    assert!(!report(
        &mut recordings,
        (8, Report::Prepared { published })
    ));
    assert_eq!(phases(&recordings), [Phase::Running, Phase::Starting]);
    assert!(!report(&mut recordings, over(1)));
    assert!(!report(&mut recordings, started(8)));
    assert!(!report(&mut recordings, over(8)), "others may still join");
    assert_eq!(sent.0[..2], [("started", 1), ("recording", 1)]);
    assert_eq!(sent.0[2..], [("over", 1), ("started", 8), ("over", 8)]);
}

#[test]
fn nobody_joins_who_is_late_or_one_too_many() {
    let many = vec![Phase::Over; MAX_PROCESSES - 1];
    let (mut recordings, mut sent) = (recordings(Step::Record, &many), Sent::default());
    recordings.follow();
    recordings.join(chosen(1001..=1003), &mut sent).unwrap();
    assert_eq!(recordings.members.len(), MAX_PROCESSES);
    recordings.stop();
    recordings.join(chosen([1004]), &mut sent).unwrap();
    assert_eq!(sent.0, [("beyond", 1002), ("beyond", 1003), ("late", 1004)]);
}

#[test]
fn a_followed_recording_lasts_until_its_end_or_a_stop() {
    let mut recordings = recordings(Step::Record, &[]);
    recordings.follow();
    assert!(!recordings.advance(&mut Nobody));
    assert_eq!(recordings.limit(), recordings.span.end());
    recordings.stop();
    assert!(recordings.advance(&mut Nobody));
}
