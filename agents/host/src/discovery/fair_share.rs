//! Fair shares between users where there is more than fits into a message, a recording or a scan.

use std::collections::HashMap;
use std::hash::Hash;

use crate::wire::events::{Ignored, Process};
use crate::wire::requests::MAX_PROCESSES;

/// A line may have 16 MiB. In bytes of JSON, in which a character may take six.
const LONGEST: usize = 12 << 20;

/// The processes that fit into a line, `most` at most, and a note of the others. If one session cannot record all, users
/// take turns, oldest process first: a user with thousands of processes keeps only his own out.
pub fn fit_into_line(mut processes: Vec<Process>, most: usize) -> (Vec<Process>, Option<Ignored>) {
    let all: usize = processes.iter().map(size).sum();
    if processes.len() <= MAX_PROCESSES && all <= LONGEST {
        return (processes, None);
    }
    processes.sort_by_key(|process| (process.start_time, process.pid));
    let mut processes = by_turns(processes, |process| process.uid);
    let mut room = LONGEST;
    let fit = processes.iter().take(most).take_while(|process| {
        let left = room.checked_sub(size(process));
        room = left.unwrap_or(0);
        left.is_some()
    });
    let others = processes.split_off(fit.count());
    let left_out = others.first().map(|first| Ignored {
        pid: first.pid,
        reason: format!("{} processes are more than can be told", others.len()),
        doubtful: false,
    });
    (processes, left_out)
}

/// Orders items by turns: the first of each user, then the second of each.
pub fn by_turns<T, U: Eq + Hash>(items: Vec<T>, user: impl Fn(&T) -> U) -> Vec<T> {
    let mut turns: HashMap<U, usize> = HashMap::new();
    let mut turn = |item: &T| {
        let turn = turns.entry(user(item)).or_default();
        *turn += 1;
        *turn
    };
    let mut placed: Vec<(usize, T)> = items.into_iter().map(|item| (turn(&item), item)).collect();
    placed.sort_by_key(|(turn, _)| *turn);
    placed.into_iter().map(|(_, item)| item).collect()
}

/// Its size in a line.
fn size(process: &Process) -> usize {
    serde_json::to_string(process).map_or(0, |text| text.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 10_000;

    fn process(pid: i32, uid: u32, start_time: u64, command: &str) -> Process {
        Process {
            pid,
            namespace_pid: pid,
            start_time,
            uid,
            user: uid.to_string(),
            ppid: 1,
            main_class: String::new(),
            command: command.to_owned(),
            label: String::new(),
            labels: Default::default(),
            jvm: None,
        }
    }

    #[test]
    fn who_has_many_keeps_out_only_his_own() {
        let many = (0..600).map(|n| process(n + 1, 7, 50, ""));
        let few = (0..20).map(|n| process(n + 1000, 8, 100 + n as u64, ""));
        let (told, left_out) = fit_into_line(many.chain(few).collect(), MANY);
        assert!(told.len() == 620 && left_out.is_none());
        let first = |uid| told[..MAX_PROCESSES].iter().filter(move |it| it.uid == uid);
        assert_eq!(first(8).count(), 20);
        assert!(first(7)
            .map(|it| it.pid)
            .eq(1..=(MAX_PROCESSES as i32 - 20)));
    }

    #[test]
    fn those_that_can_all_be_recorded_stay_in_order() {
        let given: Vec<_> = (0..MAX_PROCESSES as i32)
            .map(|n| process(n + 1, n as u32 % 3, 1000 - n as u64, ""))
            .collect();
        let (told, _) = fit_into_line(given, MANY);
        assert!(told.iter().map(|it| it.pid).eq(1..=MAX_PROCESSES as i32));
    }

    #[test]
    fn no_more_than_are_read() {
        let given = (0..900).map(|n| process(n + 1, 7, 1, "")).collect();
        let (told, left_out) = fit_into_line(given, 600);
        assert_eq!((told.len(), left_out.unwrap().pid), (600, 601));
    }

    #[test]
    fn a_line_is_long_enough_for_them() {
        let long = "\u{1}".repeat(4096);
        let mut given: Vec<_> = (0..2000).map(|n| process(n + 1, 7, 1, &long)).collect();
        given.push(process(9999, 8, 9, "theirs"));
        let (told, left_out) = fit_into_line(given, MANY);
        assert!(serde_json::to_string(&told).unwrap().len() < 16 << 20);
        assert!(told.iter().any(|it| it.pid == 9999));
        let words = format!("{} processes are more than can be told", 2001 - told.len());
        assert_eq!(left_out.unwrap().reason, words);
    }
}
