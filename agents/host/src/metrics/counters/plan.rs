//! Which events to count, in which groups: presets, and events by their names. Nothing is opened here.
//!
//! A ratio needs numbers of the same moments, so what is divided is counted in one group. Groups are small, because
//! the processor counts a group as a whole or not at all.

use std::path::PathBuf;

use super::sysfs::{Device, Machine, Vendor};
use crate::metrics::table::name_of;
use crate::os::perf_event::{Encoding, CACHE, HARDWARE, SOFTWARE};
use crate::wire::outcome::{Code, Failure};

/// Counters that most processors have, also where each core runs two threads.
const USUAL_COUNTERS: usize = 4;
const LINE: f64 = 64.0;
const TOPDOWN_INTEL: [&str; 5] = [
    "slots",
    "topdown-retiring",
    "topdown-bad-spec",
    "topdown-fe-bound",
    "topdown-be-bound",
];
const SOFTWARE_EVENTS: [(&str, &str, u64); 4] = [
    ("task-clock", "task_clock_ns", 1),
    ("context-switches", "context_switches", 3),
    ("cpu-migrations", "cpu_migrations", 4),
    ("page-faults", "page_faults", 2),
];

#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Of the series.
    pub name: String,
    pub unit: &'static str,
    /// What one event stands for, in the unit.
    pub each: f64,
    pub encoding: Encoding,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The threads of the recorded processes.
    Threads,
    /// The whole machine, by these processors.
    Cpus(Vec<i32>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub name: String,
    pub place: Place,
    /// How many of the first counters each part has if the group is split; all of them cannot be split.
    pub base: usize,
    pub counters: Vec<Counter>,
}

impl Group {
    pub fn encodings(&self) -> Vec<Encoding> {
        self.counters.iter().map(|one| one.encoding).collect()
    }
}

#[derive(Debug, Default)]
pub struct Plan {
    pub groups: Vec<Group>,
    /// Operations that a core can begin in a cycle, where formulas need it.
    pub slots: Option<u64>,
    /// Files with the bytes of memory traffic so far.
    pub memory_traffic: Vec<PathBuf>,
    /// What this machine cannot count.
    pub notes: Vec<Failure>,
}

/// Plan what was asked for, and the software events.
pub fn plan(machine: &Machine, asked: &[String]) -> Plan {
    let mut plan = Plan::default();
    plan.groups.push(software());
    let processor = machine.processor();
    let (mut own, mut lacking) = (Vec::new(), Vec::new());
    for name in asked {
        match (name.as_str(), &processor) {
            ("memory", _) => plan.memory(machine, processor.as_ref(), &mut lacking),
            ("energy", _) => plan.energy(machine),
            ("ipc" | "topdown" | "cache", None) => lacking.push(name.clone()),
            ("ipc", Some(processor)) => plan.ipc(machine.vendor(), processor),
            ("topdown", Some(processor)) => plan.topdown(machine, processor),
            ("cache", Some(processor)) => plan.cache(machine.vendor(), processor),
            (event, _) => plan.event(machine, event, &mut own, &mut lacking),
        }
    }
    for (number, counters) in own.chunks(USUAL_COUNTERS).enumerate() {
        plan.threads(format!("events-{}", number + 1), 0, counters.to_vec());
    }
    if !lacking.is_empty() {
        plan.notes.push(
            Failure::new(
                format!("this machine has no hardware counters: {} cannot be counted", lacking.join(", ")),
                "a virtual machine often hides them: choose a size that shows them (docs/metrics.md#counters); without them, CPU time, switches, migrations and page faults are counted",
            )
            .coded(Code::CounterMissing)
            .with("events", lacking.join(",")),
        );
    }
    plan
}

fn software() -> Group {
    let counter = |&(_, name, config): &(&str, &str, u64)| Counter {
        unit: if name.ends_with("_ns") { "ns" } else { "count" },
        ..counted(name, Encoding::new(SOFTWARE, config))
    };
    Group {
        name: "software".to_owned(),
        place: Place::Threads,
        base: 0,
        counters: SOFTWARE_EVENTS.iter().map(counter).collect(),
    }
}

fn counted(name: &str, encoding: Encoding) -> Counter {
    Counter {
        name: name.to_owned(),
        unit: "count",
        each: 1.0,
        encoding,
    }
}

fn hardware(name: &str, number: u64) -> Counter {
    counted(name, Encoding::new(HARDWARE, number))
}

/// Loads that missed a cache: 0 L1 data, 1 L1 instructions, 2 last level, 3 data TLB.
fn misses(name: &str, cache: u64) -> Counter {
    counted(name, Encoding::new(CACHE, 1 << 16 | cache))
}

/// An event that the processor lists, by the name of its series.
fn listed(processor: &Device, name: &str, event: &str) -> Option<Counter> {
    let encoding = processor.encode(&processor.event(event)?)?;
    Some(counted(name, encoding))
}

impl Plan {
    fn threads(&mut self, name: impl Into<String>, base: usize, counters: Vec<Counter>) {
        self.groups.push(Group {
            name: name.into(),
            place: Place::Threads,
            base,
            counters,
        });
    }

    fn lacks(&mut self, what: &str, reason: impl Into<String>, remedy: &str) {
        let note = Failure::new(reason, remedy).coded(Code::CounterMissing);
        self.notes.push(note.with("events", what));
    }

    fn ipc(&mut self, vendor: Vendor, processor: &Device) {
        let stalls = match vendor {
            Vendor::Arm => ["stall_frontend", "stall_backend"],
            _ => ["stalled-cycles-frontend", "stalled-cycles-backend"],
        };
        let names = ["stalls_frontend", "stalls_backend"]
            .into_iter()
            .zip(stalls);
        let mut counters = vec![hardware("cycles", 0), hardware("instructions", 1)];
        counters.extend(names.filter_map(|(name, event)| listed(processor, name, event)));
        self.threads("ipc", 1, counters);
    }

    fn cache(&mut self, vendor: Vendor, processor: &Device) {
        let mut all = vec![misses("l1d_misses", 0), misses("l1i_misses", 1)];
        match vendor {
            // The last level is counted for the whole machine only.
            Vendor::Amd => all.extend(
                processor
                    .encode("event=0x64,umask=0x09")
                    .map(|encoding| counted("l2_misses", encoding)),
            ),
            Vendor::Arm => {
                all.extend(listed(processor, "l2_misses", "l2d_cache_refill"));
                all.extend(listed(processor, "llc_misses", "ll_cache_miss_rd"));
            }
            Vendor::Intel | Vendor::Other => all.push(misses("llc_misses", 2)),
        }
        all.extend([misses("dtlb_misses", 3), hardware("branch_misses", 5)]);
        for (number, part) in all.chunks(USUAL_COUNTERS - 1).enumerate() {
            let mut counters = vec![hardware("instructions", 1)];
            counters.extend_from_slice(part);
            self.threads(format!("cache-{}", number + 1), 1, counters);
        }
    }

    fn topdown(&mut self, machine: &Machine, processor: &Device) {
        let (counters, slots) = match machine.vendor() {
            Vendor::Intel => {
                let listed =
                    TOPDOWN_INTEL.map(|name| listed(processor, &name_of("", name, ""), name));
                (listed.into_iter().collect(), None)
            }
            Vendor::Amd => (topdown_amd(machine, processor), slots_amd(machine)),
            Vendor::Arm => (topdown_arm(processor), processor.capability("slots")),
            Vendor::Other => (None, None),
        };
        let counters: Option<Vec<Counter>> = counters;
        match counters {
            Some(counters) if slots != Some(0) => {
                let base = counters.len();
                self.slots = slots;
                self.threads("topdown", base, counters);
            }
            _ => self.lacks(
                "topdown",
                "this processor has no events for a top-down analysis of a process, or hides them",
                "use --counters ipc,cache; top-down needs Ice Lake, Zen 4, Neoverse V1, or later",
            ),
        }
    }

    /// The traffic of the whole machine's memory, by the best that it has.
    fn memory(&mut self, machine: &Machine, processor: Option<&Device>, lacking: &mut Vec<String>) {
        let before = self.groups.len();
        for device in machine.devices("uncore_imc") {
            // Granite Rapids counts the two halves of a channel by themselves.
            let kinds = [("read", "cas_count_read"), ("written", "cas_count_write")];
            let all = kinds.into_iter().flat_map(|(what, event)| {
                ["", "_sch0", "_sch1"].map(|half| (what, half, format!("{event}{half}")))
            });
            let counters = all.filter_map(|(what, half, event)| {
                Some(Counter {
                    name: format!("memory_{what}{half}_bytes"),
                    unit: "bytes",
                    each: device.scale(&event, "bytes").unwrap_or(LINE),
                    encoding: device.encode(&device.event(&event)?)?,
                })
            });
            self.on_machine("memory", &device, counters.collect());
        }
        for device in machine.devices("amd_umc") {
            let counter = |(what, mask): (&str, u8)| {
                Some(Counter {
                    name: format!("memory_{what}_bytes"),
                    unit: "bytes",
                    each: LINE,
                    encoding: device.encode(&format!("event=0x0a,rdwrmask=0x{mask}"))?,
                })
            };
            let counters = [("read", 1), ("written", 2)]
                .into_iter()
                .filter_map(counter);
            self.on_machine("memory", &device, counters.collect());
        }
        if self.groups.len() > before {
            return;
        }
        self.memory_traffic = machine.memory_traffic();
        let estimate = match machine.vendor() {
            Vendor::Arm => processor.and_then(|it| listed(it, "llc_misses", "ll_cache_miss_rd")),
            Vendor::Amd => None,
            Vendor::Intel | Vendor::Other => processor.map(|_| misses("llc_misses", 2)),
        };
        match estimate {
            _ if !self.memory_traffic.is_empty() => {}
            None if processor.is_none() => lacking.push("memory".to_owned()),
            Some(estimate) => {
                self.threads("memory", 1, vec![hardware("instructions", 1), estimate]);
                self.lacks(
                    "memory",
                    "this machine does not count its memory traffic: it is estimated from the loads that missed the \
                     last cache, without writes and prefetches",
                    "use a machine whose memory controllers are visible, or mount resctrl",
                );
            }
            None => self.lacks(
                "memory",
                "this machine does not count its memory traffic",
                "use a machine whose memory controllers are visible, or mount resctrl",
            ),
        }
    }

    /// What the processors' sockets and their memory used, by RAPL.
    fn energy(&mut self, machine: &Machine) {
        let before = self.groups.len();
        for device in machine.devices("power") {
            let counter = |(name, event): (&str, &str)| {
                Some(Counter {
                    each: device.scale(event, "microjoules")?,
                    ..listed(&device, name, event)?
                })
            };
            let all = [
                ("energy_sockets_uj", "energy-pkg"),
                ("energy_memory_uj", "energy-ram"),
            ];
            self.on_machine(
                "energy",
                &device,
                all.into_iter().filter_map(counter).collect(),
            );
        }
        if self.groups.len() == before {
            self.lacks(
                "energy",
                "this machine does not count its energy (RAPL)",
                "leave energy out; virtual machines rarely have it",
            );
        }
    }

    fn on_machine(&mut self, name: &str, device: &Device, counters: Vec<Counter>) {
        if counters.is_empty() {
            return;
        }
        self.groups.push(Group {
            name: name.to_owned(),
            place: Place::Cpus(device.cpus().unwrap_or_else(|| vec![0])),
            base: 0,
            counters,
        });
    }

    /// One event by its name: of the kernel, of the processor, or `DEVICE/NAME`.
    fn event(
        &mut self,
        machine: &Machine,
        event: &str,
        own: &mut Vec<Counter>,
        lacking: &mut Vec<String>,
    ) {
        if SOFTWARE_EVENTS.iter().any(|(name, ..)| *name == event) {
            return; // always counted
        }
        if let Some(encoding) = Encoding::named(event) {
            match machine.processor() {
                Some(_) => own.push(counted(&name_of("", event, ""), encoding)),
                None => lacking.push(event.to_owned()),
            }
            return;
        }
        let (devices, name) = match event.trim_end_matches('/').split_once('/') {
            Some((device, name)) => (machine.devices(device), name),
            None => (machine.devices_with(event), event),
        };
        let series = name_of("", event, "");
        let mut found = false;
        for device in devices {
            let terms = device.event(name);
            let Some(encoding) = terms.and_then(|terms| device.encode(&terms)) else {
                continue;
            };
            found = true;
            let counter = match device.scale(name, "bytes") {
                Some(each) => Counter {
                    name: format!("{series}_bytes"),
                    unit: "bytes",
                    each,
                    encoding,
                },
                None => counted(&series, encoding),
            };
            match device.cpus() {
                Some(_) => self.on_machine(&series, &device, vec![counter]),
                None => own.push(counter),
            }
        }
        if !found {
            let note = Failure::new(
                format!("this machine has no event {event}"),
                "use ipc, topdown, cache, memory or energy, or an event that perf list shows on this host, such as cache-misses",
            );
            let note = note.coded(Code::EventUnknown).with("event", event);
            self.notes.push(note);
        }
    }
}

/// Zen 4 and later. Bad speculation is what remains: its own counter would be the sixth, and the kernel's watchdog may
/// hold one of six.
fn topdown_amd(machine: &Machine, processor: &Device) -> Option<Vec<Counter>> {
    if !machine
        .cpuinfo()
        .split_ascii_whitespace()
        .any(|word| word == "perfmon_v2")
    {
        return None;
    }
    let events = [
        ("cycles", "event=0x76"),
        ("idle_slots_frontend", "event=0x1a0,umask=0x01"),
        ("idle_slots_backend", "event=0x1a0,umask=0x1e"),
        ("idle_slots_smt", "event=0x1a0,umask=0x60"),
        ("retired_ops", "event=0xc1"),
    ];
    let counters = events.map(|(name, terms)| Some(counted(name, processor.encode(terms)?)));
    counters.into_iter().collect()
}

/// Zen 5 begins eight operations in a cycle, Zen 4 six.
fn slots_amd(machine: &Machine) -> Option<u64> {
    let text = machine.cpuinfo();
    let line = text.lines().find(|line| line.starts_with("cpu family"))?;
    let family: u32 = line.rsplit(':').next()?.trim().parse().ok()?;
    Some(if family >= 0x1a { 8 } else { 6 })
}

/// Neoverse V1 and later: those whose kernel says how many slots a cycle has.
fn topdown_arm(processor: &Device) -> Option<Vec<Counter>> {
    processor.capability("slots").filter(|slots| *slots > 0)?;
    let events = [
        ("cycles", "cpu_cycles"),
        ("idle_slots_frontend", "stall_slot_frontend"),
        ("idle_slots_backend", "stall_slot_backend"),
        ("retired_ops", "op_retired"),
        ("issued_ops", "op_spec"),
    ];
    let counters = events.map(|(name, event)| listed(processor, name, event));
    counters.into_iter().collect()
}
