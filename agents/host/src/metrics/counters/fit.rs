//! Try groups before they are used: what the machine lacks is left out, and a group with too many counters is split.

use super::plan::{Group, Place};
use crate::os::host::kernel_setting;
use crate::os::perf_event;
use crate::wire::outcome::{Code, Failure};

/// Why a group cannot be counted as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The machine lacks the counter in this place.
    Missing(usize),
    /// Too many counters for the processor, or others use them.
    NoRoom,
    Forbidden,
}

impl Refusal {
    /// Of the event in this place, by the kernel's error number.
    pub fn of(place: usize, error: i32) -> Self {
        match error {
            libc::EACCES | libc::EPERM | libc::ENOSYS => Self::Forbidden,
            libc::EINVAL if place > 0 => Self::NoRoom,
            _ => Self::Missing(place),
        }
    }
}

/// The groups that can be counted, and what is left out.
pub fn fit(
    groups: Vec<Group>,
    attempt: &mut dyn FnMut(&Group) -> Result<(), Refusal>,
) -> (Vec<Group>, Vec<Failure>) {
    let (mut fitting, mut left_out) = (Vec::new(), LeftOut::default());
    let mut waiting: Vec<Group> = groups.into_iter().rev().collect();
    while let Some(mut group) = waiting.pop() {
        let optional = group.counters.len() - group.base;
        match attempt(&group) {
            Ok(()) => fitting.push(group),
            Err(Refusal::Forbidden) => left_out.forbidden.extend(names(&group)),
            Err(Refusal::Missing(place)) if place < group.base || optional == 1 => {
                left_out.missing.extend(names(&group));
            }
            Err(Refusal::Missing(place)) => {
                left_out.missing.push(group.counters.remove(place).name);
                waiting.push(group);
            }
            Err(Refusal::NoRoom) if optional < 2 => left_out.busy.extend(names(&group)),
            Err(Refusal::NoRoom) => {
                let rest = group.counters.split_off(group.base + optional.div_ceil(2));
                let base = group.counters[..group.base].iter().cloned();
                let other = Group {
                    name: format!("{}b", group.name),
                    counters: base.chain(rest).collect(),
                    ..group.clone()
                };
                group.name.push('a');
                waiting.extend([other, group]);
            }
        }
    }
    (fitting, left_out.notes())
}

fn names(group: &Group) -> impl Iterator<Item = String> + '_ {
    group.counters.iter().map(|one| one.name.clone())
}

/// Names of counters, by reason.
#[derive(Default)]
struct LeftOut {
    missing: Vec<String>,
    busy: Vec<String>,
    forbidden: Vec<String>,
}

impl LeftOut {
    fn notes(self) -> Vec<Failure> {
        let note = |mut names: Vec<String>, code, text: &str, remedy: &str| {
            names.sort();
            names.dedup();
            let all = names.join(", ");
            (!names.is_empty()).then(|| {
                let note = Failure::new(format!("{text}: {all} cannot be counted"), remedy);
                note.coded(code).with("events", names.join(","))
            })
        };
        let level =
            kernel_setting("perf_event_paranoid").map_or("hidden".into(), |it| it.to_string());
        let forbidden = format!(
            "the kernel does not let the agent count (perf_event_paranoid is {level}, or seccomp forbids it)"
        );
        let notes = [
            note(
                self.forbidden,
                Code::NotPermitted,
                &forbidden,
                "use --become sudo; or lower kernel.perf_event_paranoid to 1 (0 for the whole machine); in a container \
                 allow perf_event_open",
            ),
            note(
                self.missing,
                Code::CounterMissing,
                "the processor or the virtual machine has no such counters",
                "leave these events out, or use a machine that has them",
            ),
            note(
                self.busy,
                Code::CountersTaken,
                "the processor has too few free counters",
                "end other programs that count (perf stat), or set kernel.nmi_watchdog to 0",
            ),
        ];
        notes.into_iter().flatten().collect()
    }
}

/// Open a group of the calling thread, or of the machine's processors, and look whether it counts.
pub fn open_briefly(group: &Group, user_only: bool) -> Result<(), Refusal> {
    if let Some(whose) = group.place.first() {
        // Devices of the machine refuse to leave the kernel out.
        let user_only = user_only && group.place == Place::Threads;
        let opened = perf_event::Group::open(&group.encodings(), whose, user_only);
        let opened = opened.map_err(|(place, error)| Refusal::of(place, error))?;
        let counts = opened.read().unwrap_or_default();
        if counts.enabled > 0 && counts.running == 0 {
            return Err(Refusal::NoRoom);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::counters::plan::Counter;
    use crate::os::perf_event::Encoding;

    fn group(name: &str, base: usize, counters: &str) -> Group {
        let counter = |(number, name): (usize, &str)| Counter {
            name: name.to_owned(),
            unit: "count",
            each: 1.0,
            encoding: Encoding::new(4, number as u64),
        };
        Group {
            name: name.to_owned(),
            place: Place::Threads,
            base,
            counters: counters.split(' ').enumerate().map(counter).collect(),
        }
    }

    fn shown(groups: &[Group]) -> Vec<String> {
        let show =
            |one: &Group| format!("{}: {}", one.name, names(one).collect::<Vec<_>>().join(" "));
        groups.iter().map(show).collect()
    }

    /// A machine with so many counters that lacks some.
    fn tried(
        groups: Vec<Group>,
        counters: usize,
        lacks: &str,
    ) -> (Vec<String>, Vec<(Code, String)>) {
        let mut attempt = |group: &Group| {
            if let Some(place) = names(group).position(|name| lacks.split(' ').any(|it| it == name))
            {
                return Err(Refusal::Missing(place));
            }
            (group.counters.len() <= counters)
                .then_some(())
                .ok_or(Refusal::NoRoom)
        };
        let (groups, notes) = fit(groups, &mut attempt);
        let events = |one: Failure| {
            (
                one.code,
                one.parameters["events"].as_str().unwrap().to_owned(),
            )
        };
        (shown(&groups), notes.into_iter().map(events).collect())
    }

    #[test]
    fn a_group_is_split_until_it_fits_and_each_part_has_the_base() {
        let cache = || vec![group("cache", 1, "instructions a b c")];
        assert_eq!(
            tried(cache(), 4, ""),
            (vec!["cache: instructions a b c".into()], vec![])
        );
        let parts = ["cachea: instructions a b", "cacheb: instructions c"].map(String::from);
        assert_eq!(tried(cache(), 3, "").0, parts);
        let parts = [
            "cacheaa: instructions a",
            "cacheab: instructions b",
            "cacheb: instructions c",
        ];
        assert_eq!(tried(cache(), 2, "").0, parts);
        let (none, notes) = tried(cache(), 1, "");
        assert!(none.is_empty());
        assert_eq!(notes, [(Code::CountersTaken, "a,b,c,instructions".into())]);
    }

    #[test]
    fn what_the_machine_lacks_is_left_out_and_named_once() {
        let groups = || {
            vec![
                group("ipc", 1, "cycles instructions stalls"),
                group("top", 3, "x y z"),
            ]
        };
        let (fitting, notes) = tried(groups(), 4, "stalls y");
        assert_eq!(fitting, ["ipc: cycles instructions"]);
        assert_eq!(notes, [(Code::CounterMissing, "stalls,x,y,z".into())]);
        let (fitting, notes) = tried(groups(), 4, "cycles z");
        assert!(fitting.is_empty());
        assert_eq!(notes[0].1, "cycles,instructions,stalls,x,y,z");
    }

    #[test]
    fn reasons_by_the_kernels_numbers() {
        assert_eq!(Refusal::of(0, libc::EACCES), Refusal::Forbidden);
        assert_eq!(Refusal::of(0, libc::ENOENT), Refusal::Missing(0));
        assert_eq!(Refusal::of(0, libc::EINVAL), Refusal::Missing(0));
        assert_eq!(Refusal::of(2, libc::EINVAL), Refusal::NoRoom);
        assert_eq!(Refusal::of(2, libc::EOPNOTSUPP), Refusal::Missing(2));
    }
}
