//! Stacks that are kept, dropped or cut by expressions on their frames.

use crate::support::{samples, text};
use flamegraph::Pattern;

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts
        .iter()
        .map(|text| Pattern::new(text).unwrap())
        .collect()
}

const JOB: &str = "main;parse;match_[j] 5\nmain;read 3\nmain 1\nidle;wait 7\n";

#[test]
fn stacks_are_kept_or_dropped_by_any_of_their_frames() {
    let profile = samples(JOB);
    let including = |texts: &[&str]| text(&profile.including(&patterns(texts)).unwrap());
    assert_eq!(including(&["^match$"]), "main;parse;match_[j] 5\n");
    assert_eq!(
        including(&["match", "wait"]),
        "idle;wait 7\nmain;parse;match_[j] 5\n"
    );
    assert_eq!(
        including(&["_\\[j\\]"]),
        "",
        "an annotation is no part of a name"
    );
    let rest = profile.excluding(&patterns(&["parse", "idle"])).unwrap();
    assert_eq!(text(&rest), "main 1\nmain;read 3\n");
    assert_eq!(rest.node_count(), 2, "nothing is left of what was dropped");
}

#[test]
fn focus_keeps_callers_or_starts_at_the_frame() {
    let profile = samples("a;f;b;f;c 2\nx;f 3\ny 4\n");
    let f = Pattern::new("^f$").unwrap();
    assert_eq!(
        text(&profile.focused(&f, true).unwrap()),
        "a;f;b;f;c 2\nx;f 3\n"
    );
    assert_eq!(
        text(&profile.focused(&f, false).unwrap()),
        "f 3\nf;b;f;c 2\n"
    );
}

#[test]
fn trimming_drops_callers_and_no_stack() {
    let profile = samples("run;loop;work;io 2\nrun;work 3\nrun 1\nother;x 4\n");
    let trimmed = profile.trimmed(&Pattern::new("^work$").unwrap()).unwrap();
    assert_eq!(text(&trimmed), "other;x 4\nrun 1\nwork 3\nwork;io 2\n");
    assert_eq!(
        trimmed.node_count(),
        5,
        "loop is gone, as nothing ends in it"
    );
}

#[test]
fn below_roots_thread_and_wait_stay_on_top() {
    let profile = samples(
        "[pool-N];[park];run;work;io;run 2\n[pool-N];[lock];start 3\nmain;work 4\nmain;work;run 8\n\
         [unknown];run;io 16\n[pool-N] 32\nrun_[j] 64\n",
    );
    let below = |texts: &[&str]| text(&profile.below(&patterns(texts)).unwrap());
    assert_eq!(
        below(&["^run$"]),
        "[pool-N];[park];run;work;io;run 2\nrun 8\nrun;io 16\nrun_[j] 64\n"
    );
    assert_eq!(
        below(&["^work$", "^start$"]),
        "[pool-N];[lock];start 3\n[pool-N];[park];work;io;run 2\nwork 4\nwork;run 8\n"
    );
    assert_eq!(below(&["^pool"]), "");
    assert_eq!(
        below(&["pool"]),
        "[pool-N] 32\n[pool-N];[lock];start 3\n[pool-N];[park];run;work;io;run 2\n"
    );
}

#[test]
fn costs_of_inner_frames_go_to_callers() {
    let profile = samples(
        "[park];run;take;park;schedule_[k] 2\n[park];park 3\nrun;park;work 4\nrun;take 8\n\
         schedule_[k] 16\npark;schedule_[k] 32\nrun;io_[k] 64\n",
    );
    let callers = |kernel| {
        text(
            &profile
                .into_callers(&patterns(&["^park$"]), kernel)
                .unwrap(),
        )
    };
    assert_eq!(
        callers(true),
        "[park];park 3\n[park];run;take 2\npark 32\nrun 64\nrun;park;work 4\nrun;take 8\nschedule_[k] 16\n"
    );
    assert_eq!(
        callers(false),
        "[park];park 3\n[park];run;take;park;schedule_[k] 2\npark;schedule_[k] 32\nrun;io_[k] 64\n\
         run;park;work 4\nrun;take 8\nschedule_[k] 16\n"
    );
}
