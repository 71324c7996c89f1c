//! Counters of the processor and the kernel: events of each recorded process, and of the machine's memory.

mod fit;
mod plan;
mod sysfs;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use rustix::process::{getrlimit, Resource};

use super::process::Process;
use super::table::{Reading, Thing};
use crate::os::perf_event::{self, Counts, Encoding, Whose, SOFTWARE};
use crate::os::proc::read_text;
use crate::os::proc::target::Target;
use crate::wire::outcome::{Code, Failure};

use plan::{Counter, Group, Place, Plan};
use sysfs::Machine;

/// Descriptors of all threads' counters, if the agent may open twice as many. The kernel keeps a kilobyte for each.
const MOST_OPEN: u64 = 8_000;
const MACHINE: &str = "machine";

impl Place {
    fn first(&self) -> Option<Whose> {
        match self {
            Self::Threads => Some(Whose::ThisThread),
            Self::Cpus(cpus) => cpus.first().copied().map(Whose::Cpu),
        }
    }
}

/// What this machine counts of what was asked for, and why it does not count the rest. Nothing is counted yet.
pub struct Chosen {
    groups: Vec<Group>,
    user_only: bool,
    memory_traffic: Vec<PathBuf>,
    slots: Option<u64>,
    pub notes: Vec<Failure>,
}

impl Chosen {
    pub fn of_this_machine(asked: &[String]) -> Self {
        let Plan {
            mut groups,
            slots,
            memory_traffic,
            mut notes,
        } = plan::plan(&Machine::at(Path::new("/")), asked);
        let user_only = !may_count_the_kernel();
        if user_only {
            // The kernel switches and migrates threads: in user code there are none.
            for group in &mut groups {
                let of_kernel = |one: &Counter| {
                    ["context_switches", "cpu_migrations"].contains(&one.name.as_str())
                };
                group.counters.retain(|one| !of_kernel(one));
            }
        }
        let mut attempt = |group: &Group| fit::open_briefly(group, user_only);
        let (groups, left_out) = fit::fit(groups, &mut attempt);
        notes.extend(left_out);
        if user_only && !groups.is_empty() {
            let reason = "counters are of user code only: the kernel's own code, context switches and migrations are \
                          not counted";
            let remedy = "use --become sudo, or lower kernel.perf_event_paranoid to 1";
            notes.push(Failure::new(reason, remedy).coded(Code::CountersUserOnly));
        }
        Self {
            groups,
            user_only,
            memory_traffic,
            slots,
            notes,
        }
    }

    /// The counters of each group, for people.
    pub fn shown(&self) -> Vec<String> {
        let shown = |group: &Group| {
            let names = group.counters.iter().map(|one| one.name.as_str());
            format!("{} ({})", group.name, names.collect::<Vec<_>>().join(", "))
        };
        let files = (!self.memory_traffic.is_empty()).then(|| "memory (resctrl)".to_owned());
        let mut all: Vec<String> = self.groups.iter().map(shown).chain(files).collect();
        all.dedup(); // a group for each memory controller
        all
    }
}

fn may_count_the_kernel() -> bool {
    let task_clock = [Encoding::new(SOFTWARE, 1)];
    perf_event::Group::open(&task_clock, Whose::ThisThread, false).is_ok()
}

/// The counters of a recording.
pub struct Counters {
    groups: Vec<Group>,
    user_only: bool,
    memory_traffic: Vec<PathBuf>,
    /// By process.
    owners: HashMap<i32, Owner>,
    on_machine: Vec<(usize, perf_event::Group)>,
    /// Threads without counters, because there are too many.
    left_out: usize,
    /// Processes whose threads the kernel does not let the agent count.
    refused: HashSet<i32>,
    /// Numbers for formulas.
    pub facts: BTreeMap<&'static str, u64>,
}

/// The counters of a process: of its threads, and the sums of those that have ended, by group.
#[derive(Default)]
struct Owner {
    threads: HashMap<i32, Vec<Option<perf_event::Group>>>,
    ended: Vec<Counts>,
}

impl Counters {
    pub fn open(chosen: Chosen) -> Self {
        let slots = chosen.slots.map(|slots| ("slots_per_cycle", slots));
        let mut on_machine = Vec::new();
        for (number, group) in chosen.groups.iter().enumerate() {
            if let Place::Cpus(cpus) = &group.place {
                let open = |cpu: &i32| {
                    let events = group.encodings();
                    perf_event::Group::open(&events, Whose::Cpu(*cpu), false).ok()
                };
                on_machine.extend(cpus.iter().filter_map(open).map(|opened| (number, opened)));
            }
        }
        Self {
            groups: chosen.groups,
            user_only: chosen.user_only,
            memory_traffic: chosen.memory_traffic,
            owners: HashMap::new(),
            on_machine,
            left_out: 0,
            refused: HashSet::new(),
            facts: slots.into_iter().collect(),
        }
    }

    /// Read all counters of these processes, after those of new threads are opened.
    pub fn read(&mut self, processes: &[Process], to: &mut Vec<Reading>) {
        self.left_out = 0;
        let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
        let share = MOST_OPEN.min(allowed) as usize / processes.len().max(1);
        for process in processes {
            self.read_process(&process.target, share, to);
        }
        let mut sums: Vec<Counts> = vec![Counts::default(); self.groups.len()];
        for (number, opened) in &self.on_machine {
            add(&mut sums[*number], opened.read());
        }
        // Controllers have a group each, by one name.
        let mut of_machine: BTreeMap<&str, (&Group, Counts)> = BTreeMap::new();
        for (group, sum) in self.groups.iter().zip(sums) {
            if !sum.values.is_empty() {
                let of_name = of_machine
                    .entry(&group.name)
                    .or_insert_with(|| (group, Counts::default()));
                add(&mut of_name.1, Some(sum));
            }
        }
        for (group, sum) in of_machine.into_values() {
            put(MACHINE, group, &sum, to);
        }
        let traffic = self.memory_traffic.iter().map(|file| {
            let text = read_text(file, 64)?;
            text.trim().parse::<u64>().ok()
        });
        // A domain may be "Unavailable" for a moment; a sum without it would jump.
        if let Some(all) = traffic
            .collect::<Option<Vec<u64>>>()
            .filter(|all| !all.is_empty())
        {
            let bytes = all.into_iter().fold(0, u64::saturating_add);
            let id = format!("{MACHINE}:memory");
            Thing::new("counters", &id, to).counter("memory_bytes", "bytes", bytes);
        }
    }

    fn read_process(&mut self, target: &Target, share: usize, to: &mut Vec<Reading>) {
        let pid = target.pid;
        let owner = self.owners.entry(pid).or_default();
        owner.ended.resize(self.groups.len(), Counts::default());
        let alive: HashSet<i32> = target.threads().into_iter().collect();
        if alive.is_empty() && owner.threads.is_empty() {
            return;
        }
        let of_threads = |group: &Group| group.place == Place::Threads;
        let each: usize = self
            .groups
            .iter()
            .filter(|one| of_threads(one))
            .map(|one| one.counters.len())
            .sum();
        owner.threads.retain(|thread, groups| {
            let lives = alive.contains(thread);
            if !lives {
                for (sum, group) in owner.ended.iter_mut().zip(groups) {
                    add(sum, group.as_ref().and_then(perf_event::Group::read));
                }
            }
            lives
        });
        for thread in &alive {
            if owner.threads.contains_key(thread) {
                continue;
            }
            if (owner.threads.len() + 1) * each > share {
                self.left_out += 1;
                continue;
            }
            let open = |group: &Group| {
                if !of_threads(group) {
                    return None;
                }
                let whose = Whose::Thread(*thread);
                let opened = perf_event::Group::open(&group.encodings(), whose, self.user_only);
                let refusal = |(place, error)| fit::Refusal::of(place, error);
                if opened.as_ref().err().copied().map(refusal) == Some(fit::Refusal::Forbidden) {
                    self.refused.insert(pid);
                }
                opened.ok() // None also if the thread has ended
            };
            owner
                .threads
                .insert(*thread, self.groups.iter().map(open).collect());
        }
        let mut sums = owner.ended.clone();
        for groups in owner.threads.values() {
            for (sum, group) in sums.iter_mut().zip(groups) {
                add(sum, group.as_ref().and_then(perf_event::Group::read));
            }
        }
        for (group, sum) in self.groups.iter().zip(&sums) {
            if !sum.values.is_empty() {
                put(&pid.to_string(), group, sum, to);
            }
        }
    }

    /// What is not counted.
    pub fn notes(&self) -> Vec<Failure> {
        let capped = (self.left_out > 0).then(|| {
            let text = format!(
                "{} threads are not counted: there are too many",
                self.left_out
            );
            Failure::new(
                text,
                "choose fewer counters, or record fewer processes of the host",
            )
            .coded(Code::CountersCapped)
            .with("threads", self.left_out)
        });
        let refused = (!self.refused.is_empty()).then(|| {
            let number = self.refused.len();
            let text = format!("the kernel does not let the agent count {number} of the processes");
            Failure::new(text, "use --become sudo")
                .coded(Code::NotPermitted)
                .with("processes", number)
        });
        capped.into_iter().chain(refused).collect()
    }
}

fn add(sum: &mut Counts, more: Option<Counts>) {
    let Some(more) = more else {
        return;
    };
    sum.enabled += more.enabled;
    sum.running += more.running;
    let longest = sum.values.len().max(more.values.len());
    sum.values.resize(longest, 0);
    for (value, more) in sum.values.iter_mut().zip(more.values) {
        *value = value.saturating_add(more);
    }
}

/// The series of a group: `of` counters, `id` the process and the group.
fn put(owner: &str, group: &Group, sum: &Counts, to: &mut Vec<Reading>) {
    let id = format!("{owner}:{}", group.name);
    let mut counters = Thing::new("counters", &id, to);
    counters.counter("enabled_ns", "ns", sum.enabled);
    counters.counter("running_ns", "ns", sum.running);
    for (counter, value) in group.counters.iter().zip(&sum.values) {
        let value = (*value as f64 * counter.each) as u64;
        counters.counter(&counter.name, counter.unit, value);
    }
}

#[cfg(test)]
mod tests;
