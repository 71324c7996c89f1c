//! Plans on the files of machines that are not here, and counters of this one.

use std::fs;
use std::path::PathBuf;

use super::fit::{fit, Refusal};
use super::plan::{plan, Group, Place, Plan};
use super::sysfs::Machine;
use super::*;
use crate::metrics::host::tests::told;
use crate::os::files::tests::Folder;
use crate::os::perf_event::{CACHE, HARDWARE};

/// A folder with files as a machine's kernel shows them.
struct Files(Folder);

impl Files {
    /// Each line is a path, and its content after a space. `DEVICE:` begins the paths of a device.
    fn new(lines: &str) -> Self {
        let root = Folder::new();
        let mut folder = PathBuf::new();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(device) = line.strip_suffix(':') {
                folder = PathBuf::from("sys/bus/event_source/devices").join(device);
                fs::create_dir_all(root.join(&folder)).unwrap();
                continue;
            }
            let (path, content) = line.split_once(' ').unwrap();
            let content = format!("{}\n", content.replace("\\n", "\n"));
            root.put(folder.join(path), content);
        }
        Self(root)
    }

    fn plan(&self, asked: &str) -> Plan {
        let asked: Vec<String> = asked.split(',').map(str::to_owned).collect();
        plan(&Machine::at(&self.0), &asked)
    }
}

const SAPPHIRE_RAPIDS: &str = "
    proc/cpuinfo vendor_id\\t: GenuineIntel\\nflags\\t: fpu arch_perfmon
    cpu:
    type 4
    format/event config:0-7
    format/umask config:8-15
    events/cpu-cycles event=0x3c
    events/instructions event=0xc0
    events/slots event=0x00,umask=0x4
    events/topdown-retiring event=0x00,umask=0x80
    events/topdown-bad-spec event=0x00,umask=0x81
    events/topdown-fe-bound event=0x00,umask=0x82
    events/topdown-be-bound event=0x00,umask=0x83
    events/mem-loads event=0xcd,umask=0x1,ldlat=3
    format/ldlat config1:0-15
    uncore_imc_0:
    type 30
    cpumask 0,56
    format/event config:0-7
    format/umask config:8-15
    events/cas_count_read event=0x05,umask=0xcf
    events/cas_count_read.scale 6.103515625e-5
    events/cas_count_read.unit MiB
    events/cas_count_write event=0x05,umask=0xf0
    events/cas_count_write.scale 6.103515625e-5
    events/cas_count_write.unit MiB
    uncore_imc_10:
    type 40
    cpumask 0,56
    format/event config:0-7
    format/umask config:8-15
    events/cas_count_read event=0x05,umask=0xcf
    uncore_imc_free_running_0:
    type 99
    events/read event=0xff
    power:
    type 50
    cpumask 0,56
    format/event config:0-7
    events/energy-pkg event=0x02
    events/energy-pkg.scale 2.3283064365386962890625e-10
    events/energy-pkg.unit Joules
    software:
    type 1
";
const ZEN_4: &str = "
    proc/cpuinfo vendor_id\\t: AuthenticAMD\\ncpu family\\t: 25\\nflags\\t: fpu perfmon_v2 ibs
    cpu:
    type 4
    format/event config:0-7,32-35
    format/umask config:8-15
    events/cpu-cycles event=0x76
    events/stalled-cycles-frontend event=0xa9
    amd_umc_0:
    type 20
    cpumask 0
    format/event config:0-7
    format/rdwrmask config:8-9
";
const GRAVITON_3: &str = "
    proc/cpuinfo processor\\t: 0\\nCPU implementer\\t: 0x41
    armv8_pmuv3_0:
    type 8
    caps/slots 0x00000008
    format/event config:0-15
    events/cpu_cycles event=0x0011
    events/inst_retired event=0x0008
    events/stall_frontend event=0x0023
    events/stall_backend event=0x0024
    events/stall_slot_frontend event=0x003e
    events/stall_slot_backend event=0x003d
    events/op_retired event=0x003a
    events/op_spec event=0x003b
    events/l2d_cache_refill event=0x0017
    events/ll_cache_miss_rd event=0x0037
";
/// Of a small size: two counters, and no slots.
const GRAVITON_CLOUD: &str = "
    proc/cpuinfo processor\\t: 0\\nCPU implementer\\t: 0x41
    armv8_pmuv3_0:
    type 8
    format/event config:0-15
    events/cpu_cycles event=0x0011
    events/inst_retired event=0x0008
    events/ll_cache_miss_rd event=0x0037
";
const WITHOUT: &str = "
    proc/cpuinfo vendor_id\\t: GenuineIntel
    software:
    type 1
    msr:
    type 9
";

/// The groups beside the software events: name, place, and counters with their numbers.
fn shown(groups: &[Group]) -> Vec<String> {
    let show = |group: &Group| {
        let counters = group.counters.iter().map(|one| {
            let Encoding { kind, config } = one.encoding;
            format!(" {}={kind}/{:x}", one.name, config[0])
        });
        let place = match &group.place {
            Place::Threads => String::new(),
            Place::Cpus(cpus) => format!("@{cpus:?}"),
        };
        format!("{}{place}:{}", group.name, counters.collect::<String>())
    };
    groups.iter().skip(1).map(show).collect()
}

fn lacking(plan: &Plan) -> Vec<(Code, &str)> {
    let what = |note: &'_ Failure| {
        let (_, value) = note.parameters.iter().next().unwrap();
        (note.code, value.as_str().unwrap().to_owned())
    };
    let all = plan.notes.iter().map(what);
    all.map(|(code, value)| (code, &*value.leak())).collect()
}

#[test]
fn sapphire_rapids() {
    let files = Files::new(SAPPHIRE_RAPIDS);
    let found = files.plan("ipc,topdown,cache,memory");
    assert_eq!(found.groups[0].counters.len(), 4, "software events");
    let want = [
        "ipc: cycles=0/0 instructions=0/1",
        "topdown: slots=4/400 topdown_retiring=4/8000 topdown_bad_spec=4/8100 topdown_fe_bound=4/8200 topdown_be_bound=4/8300",
        "cache-1: instructions=0/1 l1d_misses=3/10000 l1i_misses=3/10001 llc_misses=3/10002",
        "cache-2: instructions=0/1 dtlb_misses=3/10003 branch_misses=0/5",
        "memory@[0, 56]: memory_read_bytes=30/cf05 memory_written_bytes=30/f005",
        "memory@[0, 56]: memory_read_bytes=40/cf05",
    ];
    assert_eq!(shown(&found.groups), want);
    assert_eq!((HARDWARE, CACHE), (0, 3));
    let topdown = &found.groups[2];
    assert_eq!(topdown.base, topdown.counters.len(), "it is not split");
    assert!(found.groups[5].counters.iter().all(|one| one.each == 64.0));
    assert!(found.notes.is_empty() && found.slots.is_none());
}

#[test]
fn zen_4() {
    let found = Files::new(ZEN_4).plan("ipc,topdown,cache,memory");
    let want = [
        "ipc: cycles=0/0 instructions=0/1 stalls_frontend=4/a9",
        "topdown: cycles=4/76 idle_slots_frontend=4/1000001a0 idle_slots_backend=4/100001ea0 idle_slots_smt=4/1000060a0 retired_ops=4/c1",
        "cache-1: instructions=0/1 l1d_misses=3/10000 l1i_misses=3/10001 l2_misses=4/964",
        "cache-2: instructions=0/1 dtlb_misses=3/10003 branch_misses=0/5",
        "memory@[0]: memory_read_bytes=20/10a memory_written_bytes=20/20a",
    ];
    assert_eq!(shown(&found.groups), want);
    assert_eq!(found.slots, Some(6));
    let zen_5 = ZEN_4.replace("family\\t: 25", "family\\t: 26");
    assert_eq!(Files::new(&zen_5).plan("topdown").slots, Some(8));
    let zen_3 = Files::new(&ZEN_4.replace("perfmon_v2 ", ""));
    let found = zen_3.plan("topdown");
    assert_eq!(lacking(&found), [(Code::CounterMissing, "topdown")]);
}

#[test]
fn graviton_3() {
    let found = Files::new(GRAVITON_3).plan("ipc,topdown,cache,memory");
    let want = [
        "ipc: cycles=0/0 instructions=0/1 stalls_frontend=8/23 stalls_backend=8/24",
        "topdown: cycles=8/11 idle_slots_frontend=8/3e idle_slots_backend=8/3d retired_ops=8/3a issued_ops=8/3b",
        "cache-1: instructions=0/1 l1d_misses=3/10000 l1i_misses=3/10001 l2_misses=8/17",
        "cache-2: instructions=0/1 llc_misses=8/37 dtlb_misses=3/10003 branch_misses=0/5",
        "memory: instructions=0/1 llc_misses=8/37",
    ];
    assert_eq!(shown(&found.groups), want);
    assert_eq!(found.slots, Some(8));
    assert_eq!(lacking(&found), [(Code::CounterMissing, "memory")]);
    assert!(found.notes[0].reason.contains("estimated"));
}

#[test]
fn a_virtual_machine_with_two_counters() {
    let found = Files::new(GRAVITON_CLOUD).plan("ipc,topdown,cache");
    assert_eq!(lacking(&found), [(Code::CounterMissing, "topdown")]);
    let hardware = found.groups.into_iter().skip(1).collect();
    let mut two = |group: &Group| match group.counters.len() {
        0..=2 => Ok(()),
        _ => Err(Refusal::NoRoom),
    };
    let (fitting, notes) = fit(hardware, &mut two);
    assert!(notes.is_empty());
    let names: Vec<String> = fitting
        .iter()
        .map(|group| {
            group
                .counters
                .iter()
                .map(|one| &*one.name)
                .collect::<Vec<_>>()
                .join("+")
        })
        .collect();
    let each = [
        "l1d_misses",
        "l1i_misses",
        "llc_misses",
        "dtlb_misses",
        "branch_misses",
    ];
    let want: Vec<String> = std::iter::once("cycles+instructions".to_owned())
        .chain(each.map(|one| format!("instructions+{one}")))
        .collect();
    assert_eq!(names, want);
}

#[test]
fn a_machine_without_hardware_counters() {
    let found = Files::new(WITHOUT).plan("ipc,cache,cycles,task-clock,memory");
    assert!(shown(&found.groups).is_empty());
    let want = [(Code::CounterMissing, "ipc,cache,cycles,memory")];
    assert_eq!(lacking(&found), want);
}

#[test]
fn energy_of_the_sockets() {
    let found = Files::new(SAPPHIRE_RAPIDS).plan("energy");
    let want = ["energy@[0, 56]: energy_sockets_uj=50/2"];
    assert_eq!(shown(&found.groups), want);
    let joule = found.groups[1].counters[0].each * f64::from(2).powi(32);
    assert!((joule - 1e6).abs() < 1e-3, "{joule}");
    let none = Files::new(ZEN_4).plan("energy");
    assert_eq!(lacking(&none), [(Code::CounterMissing, "energy")]);
}

#[test]
fn events_by_name() {
    let found = Files::new(SAPPHIRE_RAPIDS)
        .plan("cycles,cpu/mem-loads/,slots,uncore_imc/cas_count_read,no-such,cpu/../type");
    let want = [
        "uncore_imc_cas_count_read@[0, 56]: uncore_imc_cas_count_read_bytes=30/cf05",
        "uncore_imc_cas_count_read@[0, 56]: uncore_imc_cas_count_read=40/cf05",
        "events-1: cycles=0/0 cpu_mem_loads=4/1cd slots=4/400",
    ];
    assert_eq!(shown(&found.groups), want);
    assert_eq!(found.groups[3].counters[1].encoding.config, [0x1cd, 3, 0]);
    let want = [
        (Code::EventUnknown, "no-such"),
        (Code::EventUnknown, "cpu/../type"),
    ];
    assert_eq!(lacking(&found), want);
}

#[test]
fn traffic_of_memory_by_resctrl() {
    let files = Files::new(&format!(
        "sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes 4096\n
         sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes 96\n{GRAVITON_3}"
    ));
    let found = files.plan("memory");
    assert!(found.notes.is_empty() && found.groups.len() == 1);
    let mut counters = Counters::open(Chosen {
        groups: Vec::new(),
        user_only: true,
        memory_traffic: found.memory_traffic,
        slots: None,
        notes: Vec::new(),
    });
    let mut to = Vec::new();
    counters.read(&[], &mut to);
    assert_eq!(told(&to), ["counters machine:memory memory_bytes 4192"]);
}

#[test]
fn threads_that_end_keep_what_they_counted() {
    let chosen = Chosen::of_this_machine(&["task-clock".to_owned()]);
    if chosen.groups.is_empty() {
        return; // not permitted here
    }
    let mut counters = Counters::open(chosen);
    let own = [Process::open(crate::metrics::tests::own()).unwrap()];
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let _ = ended.recv();
        let mut sum = 0_u64;
        (0..20_000_000_u64).for_each(|one| sum = std::hint::black_box(sum ^ one));
    });
    let mut read = || {
        let mut to = Vec::new();
        counters.read(&own, &mut to);
        let id = format!("{}:software", std::process::id());
        let find = |name: &str| {
            let mut all = to.iter().filter(|one| one.metric.id == id);
            all.find(|one| one.metric.name == name).unwrap().value
        };
        (
            find("task_clock_ns"),
            find("enabled_ns"),
            find("running_ns"),
        )
    };
    let before = read();
    drop(end);
    thread.join().unwrap();
    let after = read();
    assert!(after.0 > before.0 + 1_000_000, "{before:?} {after:?}");
    assert_eq!(after.1, after.2, "software events are always counted");
    assert!(read() >= after);
}
