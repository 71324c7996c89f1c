//! Which processes of this host a `find` matches.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;

use regex::Regex;
use rustix::process::geteuid;

use crate::discovery::containers::{helper, is_wrapper, Containers, Evidence, Membership};
use crate::discovery::rivals::{self, TrustedFacts};
use crate::discovery::scan::{self, environments, Overlooked, Scanned, Seen, MOST_PARENTS};
use crate::discovery::selector::{compile, Selector};
use crate::wire::events::{split_off_excess, Ignored, Process};
use crate::wire::outcome::{Code, Failure};
use crate::wire::requests::Find;
use crate::wire::requests::Query;

const COMMAND: usize = 4096;
/// The environments that are read at a time: all may be long.
const AT_A_TIME: usize = 32;
/// The most processes that the coordinator accepts.
const MOST: usize = 10_000;
/// The most bytes of JSON that processes take in a line of the protocol.
const LONGEST: usize = 12 << 20;
/// The most processes that nearly matched, or could not be read, in an answer.
const FEW: usize = 100;
/// The label of a child: the pid of the JVM that it descends from.
pub const PARENT: &str = "parent";
/// The label of a process that has started a JVM: the JVM's pid.
const STARTED: &str = "started";

/// What was found among the processes of this host.
pub struct Matches {
    pub searched: usize,
    pub processes: Vec<Process>,
    pub ignored: Vec<Ignored>,
}

pub struct Finding {
    selector: Option<Selector>,
    /// Processes that were requested by pid.
    asked: Vec<i32>,
    native: bool,
    containers: Option<Containers>,
    children: Vec<Selector>,
    /// With what the arguments of the JVM match that they have started.
    starters: Vec<(Selector, Regex)>,
    own: Option<String>,
    trusted: TrustedFacts,
}

impl Finding {
    pub fn new(request: Find) -> Result<Self, Failure> {
        if request.selector.is_none() && request.containers.is_none() {
            return Err(
                Failure::plain("find names neither a selector nor containers")
                    .coded(Code::BadRequest),
            );
        }
        let named = request.containers.as_deref().unwrap_or_default();
        if request.own.as_ref().is_some_and(|own| !named.contains(own)) {
            return Err(
                Failure::plain("find does not name the agent's own container")
                    .coded(Code::BadRequest),
            );
        }
        let asked = match &request.selector {
            Some(Query::Pids { pids }) => pids.clone(),
            _ => Vec::new(),
        };
        Ok(Self {
            selector: request.selector.map(Selector::new).transpose()?,
            asked,
            native: request.native,
            containers: request.containers.map(Containers::new).transpose()?,
            children: request
                .children
                .into_iter()
                .map(Selector::new)
                .collect::<Result<_, _>>()?,
            starters: request
                .starters
                .into_iter()
                .map(|one| Ok((Selector::new(one.rule)?, compile(&one.arguments)?)))
                .collect::<Result<_, Failure>>()?,
            own: request.own,
            trusted: TrustedFacts {
                owners: request.owners,
                manager_port: request.manager_port,
            },
        })
    }

    /// `excluded` are this session's own processes.
    pub fn among(&self, scanned: Scanned, excluded: &HashSet<i32>) -> Matches {
        let Scanned {
            seen,
            own,
            overlooked,
        } = scanned;
        let searched = seen.len();
        let mut ignored = self.missing(&seen, &overlooked, excluded);
        ignored.extend(match self.asked.is_empty() {
            true => may_be_meant(overlooked),
            false => self.not_looked_at(overlooked),
        });
        let mut near_misses = Vec::new();
        let mut processes = Vec::new();
        let mut in_other_case = Vec::new();
        let memberships = self.memberships(&seen);
        let judged = seen.iter().zip(memberships);
        let judged: Vec<_> = judged
            .map(|(process, membership)| self.judge(process, membership))
            .collect();
        let mut relatives = self.relatives(&seen, &own, &judged);
        // Those in other containers are not meant.
        if self.containers.is_none() && judged.iter().all(Result::is_err) {
            in_other_case = self.in_other_case(&seen);
        }
        for (process, judged) in seen.into_iter().zip(judged) {
            match (relatives.remove(&process.pid), judged) {
                (Some(relative), _) => processes.push(relative.message(process)),
                (None, Ok(container)) => {
                    processes.push(message(process, self.selector.as_ref(), container, None));
                }
                (None, Err(ignored)) => near_misses.extend(ignored),
            }
        }
        let own = own.into_iter();
        processes.extend(own.filter_map(|it| Some(relatives.remove(&it.pid)?.message(it))));
        ignored.splice(0..0, in_other_case);
        near_misses.truncate(FEW);
        ignored.extend(near_misses);
        let (processes, left_out) = fit_into_line(processes, MOST);
        Matches {
            searched,
            processes,
            ignored: left_out.into_iter().chain(ignored).collect(),
        }
    }

    /// Whether this process alone may be found, before the claims of others are known.
    pub fn may_find(&self, process: &Seen) -> bool {
        let mut children = self.children.iter();
        process.jvm.is_none() && children.any(|rule| rule.matches(process, false))
            || self.is_wanted(process) && self.is_in_container(process)
    }

    /// Whether what is found of others may depend on this process: as their ancestor, or by its claim of a container.
    pub fn matters(&self, process: &Seen) -> bool {
        let claims = self.containers.is_some() && self.is_in_container(process);
        process.jvm.is_some() || claims || self.may_find(process)
    }

    fn is_in_container(&self, process: &Seen) -> bool {
        let alone = std::slice::from_ref(process);
        self.containers.is_none() || self.memberships(alone).iter().any(Option::is_some)
    }

    /// The container of each process. Err: its claim is not believed.
    fn memberships(&self, seen: &[Seen]) -> Vec<Option<Result<String, String>>> {
        let Some(containers) = &self.containers else {
            return seen.iter().map(|_| None).collect();
        };
        // Each container has mounts of its own, even if several share their processes.
        let mounts = mount_namespace("self");
        let is_own = |process: &Seen| {
            mounts.is_none() || mount_namespace(&process.pid.to_string()) == mounts
        };
        let membership = |(process, environment): (&Seen, _)| match &self.own {
            Some(own) if is_own(process) => Some(Membership {
                id: own.clone(),
                evidence: Evidence::Kernel,
            }),
            _ => containers.of(process, &environment),
        };
        let with_environments = seen
            .chunks(AT_A_TIME)
            .flat_map(|some| some.iter().zip(environments(some)));
        let memberships = with_environments.map(membership).collect();
        rivals::settle(seen, memberships, &self.trusted)
    }

    fn not_looked_at(&self, overlooked: Vec<Overlooked>) -> Vec<Ignored> {
        let asked = |process: &Overlooked| self.asked.contains(&process.pid);
        let asked = overlooked.into_iter().filter(asked);
        asked
            .map(|process| Ignored::new(process.pid, process.why.to_string(), true))
            .collect()
    }

    /// Processes that would match if upper and lower case were the same.
    fn in_other_case(&self, seen: &[Seen]) -> Vec<Ignored> {
        let ignoring_case = self.selector.as_ref().and_then(Selector::ignoring_case);
        let Some(ignoring_case) = ignoring_case else {
            return Vec::new();
        };
        let near = seen.iter().filter(|process| {
            let wanted = process.jvm.is_some() || self.native;
            ignoring_case.matches(process, wanted)
        });
        near.take(FEW)
            .map(|process| {
                let reason = format!("{} differs in case", process.plain_label());
                Ignored::new(process.pid, reason, false)
            })
            .collect()
    }

    fn missing(
        &self,
        seen: &[Seen],
        overlooked: &[Overlooked],
        excluded: &HashSet<i32>,
    ) -> Vec<Ignored> {
        let pids = seen.iter().map(|process| process.pid);
        let pids = pids.chain(overlooked.iter().map(|process| process.pid));
        let there: HashSet<i32> = pids.collect();
        let reason = |pid: i32| match excluded.contains(&pid) {
            true => "it is a part of hprofiler, or started it, and is not a JVM".to_owned(),
            false => scan::why_unseen(pid),
        };
        let missing = self.asked.iter().filter(|pid| !there.contains(pid));
        missing
            .map(|pid| Ignored::new(*pid, reason(*pid), false))
            .collect()
    }

    /// The container of a selected process, if containers were requested. Err: the process is not selected. It is
    /// reported if it nearly matched.
    fn judge(
        &self,
        process: &Seen,
        membership: Option<Result<String, String>>,
    ) -> Result<Option<String>, Option<Ignored>> {
        let certain = |reason: String| Ignored::new(process.pid, reason, false);
        let container = match membership {
            None if self.containers.is_some() => return Err(None),
            None => None,
            Some(Ok(id)) => Some(id),
            Some(Err(_)) if !self.is_wanted(process) => return Err(None),
            Some(Err(id)) => {
                let reason =
                    "it claims to be in this container, which has processes of another user";
                return Err(Some(certain(reason.to_owned()).in_container(id)));
            }
        };
        let is_jvm = process.jvm.is_some();
        if !is_jvm && !self.native && self.asked.contains(&process.pid) {
            let reason = format!("not a JVM ({})", process.plain_label());
            return Err(Some(certain(reason)));
        }
        match container {
            container if self.is_wanted(process) => Ok(container),
            Some(id) if !is_jvm => {
                Err(helper(process).map(|reason| certain(reason).in_container(id)))
            }
            _ if is_jvm || self.native => {
                // If the agent cannot become its user, it could not be recorded anyway.
                let missing = process.launch.missing;
                let missing = missing.filter(|_| is_within_reach(process.uid));
                Err(missing
                    .map(|why| Ignored::new(process.pid, format!("{why}: it may match"), true)))
            }
            _ => Err(None),
        }
    }

    /// The processes that are found with a JVM, by pid: those that descend from it, and the one that has started it.
    /// What the kernel says of a parent is true, so a child is in its parent's container whatever it claims. Of the
    /// excluded ones only a parent or a child is found: the program of a notebook that hprofiler runs in.
    fn relatives(
        &self,
        seen: &[Seen],
        own: &[Seen],
        judged: &[Result<Option<String>, Option<Ignored>>],
    ) -> HashMap<i32, Relative<'_>> {
        if self.children.is_empty() && self.starters.is_empty() {
            return HashMap::new();
        }
        let found = seen
            .iter()
            .zip(judged)
            .filter(|(process, _)| process.jvm.is_some());
        let found: HashMap<i32, (&Seen, &Option<String>)> = found
            .filter_map(|(process, judged)| Some((process.pid, (process, judged.as_ref().ok()?))))
            .collect();
        let all = || seen.iter().chain(own);
        let ppids: HashMap<i32, i32> = all().map(|it| (it.pid, it.ppid)).collect();
        let child = |process: &Seen, most: usize| {
            let mut ancestors =
                std::iter::successors(Some(process.ppid), |pid| ppids.get(pid).copied());
            let jvm = ancestors
                .by_ref()
                .take(most)
                .find(|pid| found.contains_key(pid))?;
            let mut rules = self.children.iter();
            let rule = rules.find(|rule| rule.matches(process, false))?;
            let container = found[&jvm].1.clone();
            let relation = (PARENT, jvm);
            Some((
                process.pid,
                Relative {
                    relation,
                    container,
                    rule,
                },
            ))
        };
        let others = seen.iter().filter(|process| process.jvm.is_none());
        let mut relatives: HashMap<i32, Relative> = others
            .filter_map(|process| child(process, MOST_PARENTS))
            .chain(own.iter().filter_map(|process| child(process, 1)))
            .collect();
        for (jvm, container) in found.values() {
            let starter = all().find(|it| it.pid == jvm.ppid && it.jvm.is_none());
            let arguments = || jvm.launch.masked().arguments.join(" ");
            let rule = starter.and_then(|process| {
                let mut rules = self.starters.iter();
                rules.find(|(rule, of)| rule.matches(process, false) && of.is_match(&arguments()))
            });
            if let Some((rule, _)) = rule {
                let container = (*container).clone();
                let relation = (STARTED, jvm.pid);
                relatives.entry(jvm.ppid).or_insert(Relative {
                    relation,
                    container,
                    rule,
                });
            }
        }
        relatives
    }

    fn is_wanted(&self, process: &Seen) -> bool {
        let wanted = process.jvm.is_some() || self.native;
        match &self.selector {
            Some(selector) => selector.matches(process, wanted),
            None => process.jvm.is_some() || self.native && !is_wrapper(process),
        }
    }
}

/// A process that is found with a JVM.
struct Relative<'a> {
    /// The label with the JVM's pid.
    relation: (&'static str, i32),
    container: Option<String>,
    /// The rule that the process matches.
    rule: &'a Selector,
}

impl Relative<'_> {
    fn message(self, process: Seen) -> Process {
        message(
            process,
            Some(self.rule),
            self.container,
            Some(self.relation),
        )
    }
}

/// `rule` is what the process matches.
fn message(
    process: Seen,
    rule: Option<&Selector>,
    container: Option<String>,
    relation: Option<(&str, i32)>,
) -> Process {
    let (label, mut labels) = match rule {
        Some(rule) => rule.label(&process),
        None => (process.plain_label(), process.plain_labels()),
    };
    labels.extend(container.map(|id| ("container".to_owned(), id)));
    labels.extend(relation.map(|(name, pid)| (name.to_owned(), pid.to_string())));
    process.into_message(label, labels, COMMAND)
}

/// The device and number of a process's mount namespace. None: the agent may not see it.
fn mount_namespace(process: &str) -> Option<(u64, u64)> {
    let there = std::fs::metadata(format!("/proc/{process}/ns/mnt")).ok()?;
    Some((there.dev(), there.ino()))
}

/// The first processes, `most` at most and as many as fit into a line, and a note about the others.
pub fn fit_into_line(mut processes: Vec<Process>, most: usize) -> (Vec<Process>, Option<Ignored>) {
    let others = split_off_excess(&mut processes, most, LONGEST);
    let reason = format!("the first of {} that are too many to list", others.len());
    let left_out = others.first();
    let left_out = left_out.map(|first| Ignored::new(first.pid, reason, true));
    (processes, left_out)
}

pub fn may_be_meant(overlooked: Vec<Overlooked>) -> Vec<Ignored> {
    let within_reach = overlooked.iter().filter(|it| is_within_reach(it.uid));
    within_reach
        .take(FEW)
        .map(|it| Ignored::new(it.pid, format!("{}: it may match", it.why), true))
        .collect()
}

fn is_within_reach(uid: u32) -> bool {
    let own = geteuid().as_raw();
    own == 0 || own == uid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::events::JvmFacts;

    #[test]
    fn what_has_started_a_jvm_and_what_it_has_started_is_found() {
        let request = r#"{"selector":{"kind":"text","text":"SparkSubmit"},
            "children":[{"kind":"rule","any":[{"program":["python*"]}]}],
            "starters":[{"rule":{"kind":"rule","any":[{"program":["python*"]}]},"arguments":"pyspark-shell$"}]}"#;
        let finding = Finding::new(serde_json::from_str(request).unwrap()).unwrap();
        let process = |pid, ppid, line: &str| Seen {
            ppid,
            jvm: line.starts_with("java").then(|| JvmFacts {
                version: String::new(),
            }),
            ..Seen::of(pid, line)
        };
        let scanned = Scanned {
            seen: vec![
                process(11, 10, "java SparkSubmit pyspark-shell"),
                process(12, 11, "python3 -m pyspark.daemon"),
                process(13, 12, "python3 -m pyspark.daemon"),
                process(20, 1, "python3 airflow"),
                process(21, 20, "java SparkSubmit job.py"),
            ],
            // The notebook that hprofiler runs in, what it has started, and the program of the other driver.
            own: vec![
                process(10, 1, "python3 -m ipykernel_launcher"),
                process(14, 13, "python3 hprofiler"),
                process(22, 21, "python3 job.py"),
            ],
            overlooked: Vec::new(),
        };
        let processes = finding
            .among(scanned, &HashSet::from([10, 14, 22]))
            .processes;
        let relation = |it: &Process| {
            it.labels
                .iter()
                .next()
                .map(|(name, of)| format!("{name} {of}"))
        };
        let mut found: Vec<_> = processes
            .iter()
            .map(|it| (it.pid, relation(it).unwrap_or_default()))
            .collect();
        found.sort();
        let found: Vec<_> = found.iter().map(|(pid, of)| (*pid, &**of)).collect();
        assert_eq!(
            found,
            [
                (10, "started 11"),
                (11, ""),
                (12, "parent 11"),
                (13, "parent 11"),
                (21, ""),
                (22, "parent 21")
            ]
        );
    }

    #[test]
    fn no_more_processes_than_fit_into_a_line() {
        let process = |pid, command: &str| Process {
            pid,
            namespace_pid: pid,
            start_time: 1,
            uid: 7,
            user: "7".to_owned(),
            ppid: 1,
            main_class: String::new(),
            command: command.to_owned(),
            label: String::new(),
            labels: Default::default(),
            jvm: None,
        };
        let short = || (1..=9).map(|pid| process(pid, "")).collect();
        let (listed, left_out) = fit_into_line(short(), 9);
        assert!(listed.len() == 9 && left_out.is_none());
        let (listed, left_out) = fit_into_line(short(), 6);
        assert_eq!((listed.len(), left_out.unwrap().pid), (6, 7));
        let long = "\u{1}".repeat(4096);
        let long = (1..=2000).map(|pid| process(pid, &long)).collect();
        let (listed, left_out) = fit_into_line(long, 10_000);
        assert!(serde_json::to_string(&listed).unwrap().len() < 16 << 20);
        let words = format!(
            "the first of {} that are too many to list",
            2000 - listed.len()
        );
        let left_out = left_out.unwrap();
        assert_eq!((left_out.reason, left_out.doubtful), (words, true));
    }
}
