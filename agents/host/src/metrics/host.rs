//! The host: its processors, memory, disks and network.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::param::clock_ticks_per_second;

use super::nodes;
use super::table::{id_of, Reading, Thing};
use crate::os::host;
use crate::wire::events::Kind;

const MOST_CPUS: usize = 256;
const MOST_DISKS: usize = 64;
const MOST_INTERFACES: usize = 32;
/// `/proc/stat` of a host with many interrupts is the longest.
const LONGEST: usize = 4 << 20;
const SECTOR: u64 = 512;

/// Numbers for formulas.
pub fn facts() -> BTreeMap<&'static str, u64> {
    let mut facts = BTreeMap::from([
        ("ticks_per_second", clock_ticks_per_second()),
        ("cpus", host::processors()),
        ("memory_total", host::memory_bytes()),
    ]);
    facts.extend(nodes::peak_bandwidth().map(|peak| ("memory_bandwidth", peak)));
    facts
}

/// A file of the kernel's that is opened once and read again.
pub struct Reread {
    file: Option<File>,
    buffer: Vec<u8>,
}

impl Reread {
    /// A file that cannot be opened has no text.
    pub fn open(path: impl AsRef<Path>) -> Self {
        Self::of(File::open(path).ok())
    }

    pub fn of(file: Option<File>) -> Self {
        Self {
            file,
            buffer: Vec::new(),
        }
    }

    pub fn bytes(&mut self) -> Option<&[u8]> {
        let file = self.file.as_ref()?;
        let mut length = 0;
        loop {
            if self.buffer.len() < length + 4096 {
                self.buffer.resize((length + 4096).next_power_of_two(), 0);
            }
            match file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => return Some(&self.buffer[..length]),
                Ok(more) if length + more <= LONGEST => length += more,
                _ => return None,
            }
        }
    }

    pub fn text(&mut self) -> Option<&str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub fn number(&mut self) -> Option<u64> {
        self.text()?.trim().parse().ok()
    }
}

pub struct Host {
    stat: Reread,
    memory: Reread,
    events: Reread,
    pressure: [(&'static str, Reread); 3],
    tcp: Reread,
    disks: Reread,
    network: Reread,
}

impl Host {
    pub fn open() -> Self {
        Self {
            stat: Reread::open("/proc/stat"),
            memory: Reread::open("/proc/meminfo"),
            events: Reread::open("/proc/vmstat"),
            pressure: ["cpu", "io", "memory"]
                .map(|what| (what, Reread::open(format!("/proc/pressure/{what}")))),
            tcp: Reread::open("/proc/net/snmp"),
            disks: Reread::open("/proc/diskstats"),
            network: Reread::open("/proc/net/dev"),
        }
    }

    pub fn read(&mut self, to: &mut Vec<Reading>) {
        if let Some(text) = self.stat.text() {
            processors(text, to);
        }
        let mut host = Thing::new("host", "", to);
        if let Some(text) = self.memory.text() {
            memory(text, &mut host);
        }
        if let Some(text) = self.events.text() {
            events(text, &mut host);
        }
        for (what, file) in &mut self.pressure {
            if let Some(text) = file.text() {
                pressure(what, text, &mut host);
            }
        }
        if let Some(text) = self.tcp.text() {
            segments(text, &mut host);
        }
        if let Some(text) = self.disks.text() {
            disks(text, |name| is_disk(Path::new("/sys/block"), name), to);
        }
        if let Some(text) = self.network.text() {
            interfaces(
                text,
                |names| hardware(Path::new("/sys/class/net"), names),
                to,
            );
        }
    }
}

/// `/proc/stat`. Time of guests is in user and nice time.
fn processors(text: &str, to: &mut Vec<Reading>) {
    const MODES: [&str; 8] = [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ];
    let mut cpus = 0;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let mut numbers = words.map_while(|word| word.parse::<u64>().ok());
        let mut host = Thing::new("host", "", to);
        let mut one = |name, kind| {
            if let Some(value) = numbers.next() {
                host.add(name, kind, "count", value);
            }
        };
        match first {
            "ctxt" => one("context_switches", Kind::Counter),
            "procs_running" => one("runnable", Kind::Gauge),
            "procs_blocked" => one("blocked", Kind::Gauge),
            "cpu" => {
                for (mode, value) in MODES.iter().zip(numbers) {
                    host.counter(format!("{mode}_ticks"), "ticks", value);
                }
            }
            _ => {
                let Some(number) = first.strip_prefix("cpu") else {
                    continue;
                };
                let ticks: Vec<u64> = numbers.take(MODES.len()).collect();
                cpus += 1;
                if cpus > MOST_CPUS || ticks.len() < 5 {
                    continue;
                }
                let idle = ticks[3].saturating_add(ticks[4]);
                let all = ticks.iter().fold(0u64, |sum, one| sum.saturating_add(*one));
                let mut cpu = Thing::new("cpu", number, to);
                cpu.counter("busy_ticks", "ticks", all - idle);
                cpu.counter("idle_ticks", "ticks", idle);
            }
        }
    }
}

/// `/proc/meminfo`, which counts in units of 1024 bytes.
fn memory(text: &str, host: &mut Thing) {
    const LEVELS: [(&str, &str); 5] = [
        ("MemAvailable", "memory_available"),
        ("Cached", "memory_cached"),
        ("Dirty", "memory_dirty"),
        ("SwapTotal", "swap_total"),
        ("SwapFree", "swap_free"),
    ];
    for (word, value) in pairs(text) {
        let mut levels = LEVELS.iter();
        if let Some((_, name)) = levels.find(|(key, _)| word.strip_suffix(':') == Some(key)) {
            host.gauge(*name, "bytes", value.saturating_mul(1024));
        }
    }
}

/// `/proc/vmstat`.
fn events(text: &str, host: &mut Thing) {
    let page = rustix::param::page_size() as u64;
    for (word, value) in pairs(text) {
        let (name, unit, times) = match word {
            "pgmajfault" => ("major_faults", "count", 1),
            "oom_kill" => ("oom_kills", "count", 1),
            "pswpin" => ("swap_in", "bytes", page),
            "pswpout" => ("swap_out", "bytes", page),
            _ => continue,
        };
        host.counter(name, unit, value.saturating_mul(times));
    }
}

/// The first two words of each line, where the second is a number.
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        Some((words.next()?, words.next()?.parse().ok()?))
    })
}

/// `/proc/pressure/…`: some or all tasks waited for so many microseconds. All tasks of a host cannot wait for a CPU.
fn pressure(what: &str, text: &str, host: &mut Thing) {
    for line in text.lines() {
        let total = line
            .rsplit_once("total=")
            .and_then(|(_, total)| total.trim().parse().ok());
        let name = match line.split_ascii_whitespace().next() {
            Some("some") => format!("{what}_pressure"),
            Some("full") if what != "cpu" => format!("{what}_full_pressure"),
            _ => continue,
        };
        if let Some(total) = total {
            host.counter(name, "us", total);
        }
    }
}

/// `/proc/net/snmp`: a line of names, then one of numbers.
fn segments(text: &str, host: &mut Thing) {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else {
        return;
    };
    let names = names.split_ascii_whitespace();
    for (name, number) in names.zip(numbers.split_ascii_whitespace()) {
        let name = match name {
            "OutSegs" => "tcp_segments_sent",
            "RetransSegs" => "tcp_retransmits",
            _ => continue,
        };
        if let Ok(number) = number.parse() {
            host.counter(name, "count", number);
        }
    }
}

/// Whether it is a whole disk: no partition, no layer above other disks (device mapper, RAID), no single path to one.
fn is_disk(block: &Path, name: &str) -> bool {
    let folder = block.join(name);
    let layers = fs::read_dir(folder.join("slaves"));
    let is_hidden =
        || fs::read_to_string(folder.join("hidden")).is_ok_and(|text| text.trim() == "1");
    folder.exists() && layers.map_or(true, |mut below| below.next().is_none()) && !is_hidden()
}

/// `/proc/diskstats`.
fn disks(text: &str, is_disk: impl Fn(&str) -> bool, to: &mut Vec<Reading>) {
    const NO_DISKS: [&str; 6] = ["loop", "ram", "zram", "sr", "fd", "drbd"];
    /// Name, unit, place after the device's name, factor.
    const FIELDS: [(&str, &str, usize, u64); 10] = [
        ("reads", "count", 0, 1),
        ("read_bytes", "bytes", 2, SECTOR),
        ("read_ms", "ms", 3, 1),
        ("writes", "count", 4, 1),
        ("written_bytes", "bytes", 6, SECTOR),
        ("write_ms", "ms", 7, 1),
        ("busy_ms", "ms", 9, 1),
        ("queue_ms", "ms", 10, 1),
        ("discards", "count", 11, 1),
        ("discard_ms", "ms", 14, 1),
    ];
    let mut found = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, name, numbers @ ..] = words.as_slice() else {
            continue;
        };
        if NO_DISKS.iter().any(|one| name.starts_with(one)) || !is_disk(name) {
            continue;
        }
        found += 1;
        if found > MOST_DISKS {
            return;
        }
        let id = id_of(name);
        let mut disk = Thing::new("disk", &id, to);
        for (metric, unit, place, times) in FIELDS {
            if let Some(value) = numbers.get(place).and_then(|word| word.parse::<u64>().ok()) {
                disk.counter(metric, unit, value.saturating_mul(times));
            }
        }
    }
}

/// The interfaces of network cards: bonds, VLANs, bridges and containers' ends would count the same bytes again.
/// Where there are no cards, as in a container, all others.
fn hardware<'a>(folder: &Path, names: Vec<&'a str>) -> Vec<&'a str> {
    let is_above = |name: &str| {
        let entries = fs::read_dir(folder.join(name))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .map(|one| one.file_name())
            .any(|one| one.as_encoded_bytes().starts_with(b"lower_"))
    };
    let is_card = |name: &&str| folder.join(name).join("device").exists();
    let cards: Vec<&str> = names.iter().copied().filter(is_card).collect();
    let others = || {
        names
            .into_iter()
            .filter(|name| *name != "lo" && !name.starts_with("veth"))
    };
    let found = if cards.is_empty() {
        others().collect()
    } else {
        cards
    };
    found.into_iter().filter(|name| !is_above(name)).collect()
}

/// `/proc/net/dev`.
fn interfaces(text: &str, hardware: impl Fn(Vec<&str>) -> Vec<&str>, to: &mut Vec<Reading>) {
    const FIELDS: [(&str, &str, usize); 4] = [
        ("received_bytes", "bytes", 0),
        ("received_packets", "count", 1),
        ("sent_bytes", "bytes", 8),
        ("sent_packets", "count", 9),
    ];
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let lines: Vec<(&str, &str)> = lines.map(|(name, rest)| (name.trim(), rest)).collect();
    let chosen = hardware(lines.iter().map(|(name, _)| *name).collect());
    let real = lines.into_iter().filter(|(name, _)| chosen.contains(name));
    for (name, numbers) in real.take(MOST_INTERFACES) {
        let numbers = numbers.split_ascii_whitespace();
        let numbers: Vec<u64> = numbers.map_while(|word| word.parse().ok()).collect();
        let both =
            |place: usize| Some(numbers.get(place)?.saturating_add(*numbers.get(place + 8)?));
        let plain = FIELDS.map(|(metric, unit, place)| (metric, unit, numbers.get(place).copied()));
        let sums = [("errors", "count", both(2)), ("drops", "count", both(3))];
        let id = id_of(name);
        let mut interface = Thing::new("network", &id, to);
        for (metric, unit, value) in plain.into_iter().chain(sums) {
            if let Some(value) = value {
                interface.counter(metric, unit, value);
            }
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::os::files::tests::Folder;

    /// "of id name value" of each reading.
    pub fn told(readings: &[Reading]) -> Vec<String> {
        let told = readings.iter();
        told.map(|one| {
            let metric = &one.metric;
            format!("{} {} {} {}", metric.of, metric.id, metric.name, one.value).replace("  ", " ")
        })
        .collect()
    }

    fn read(parse: impl Fn(&mut Vec<Reading>)) -> Vec<String> {
        let mut to = Vec::new();
        parse(&mut to);
        told(&to)
    }

    fn read_host(parse: impl Fn(&mut Thing)) -> Vec<String> {
        read(|to| parse(&mut Thing::new("host", "", to)))
    }

    #[test]
    fn processors_by_mode_and_by_core() {
        let text = "cpu  10 2 30 400 5 6 7 8 9 1\ncpu0 1 2 3 40 5 6 7 8 9 1\ncpux\nintr 5 6\nctxt 77\nprocs_running 3\n";
        let told = read(|to| processors(text, to));
        assert_eq!(told[0], "host user_ticks 10");
        assert_eq!(told[7], "host steal_ticks 8");
        assert_eq!(
            told[8..],
            [
                "cpu 0 busy_ticks 27",
                "cpu 0 idle_ticks 45",
                "host context_switches 77",
                "host runnable 3"
            ]
        );
    }

    #[test]
    fn memory_faults_pressure_and_segments() {
        let text = "MemTotal: 9 kB\nMemAvailable:  7 kB\nSwapFree: 1 kB\nCached: x kB\n";
        assert_eq!(
            read_host(|host| memory(text, host)),
            ["host memory_available 7168", "host swap_free 1024"]
        );
        let page = rustix::param::page_size() as u64;
        assert_eq!(
            read_host(|host| events("nr_free 5\npgmajfault 9\npswpin 2\n", host)),
            [
                "host major_faults 9".to_owned(),
                format!("host swap_in {}", 2 * page)
            ]
        );
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0 total=7\n";
        assert_eq!(
            read_host(|host| pressure("io", text, host)),
            ["host io_pressure 12", "host io_full_pressure 7"]
        );
        assert_eq!(
            read_host(|host| pressure("cpu", text, host)),
            ["host cpu_pressure 12"]
        );
        let text = "Ip: A B\nIp: 1 2\nTcp: InSegs OutSegs RetransSegs\nTcp: 5 6 7\n";
        assert_eq!(
            read_host(|host| segments(text, host)),
            ["host tcp_segments_sent 6", "host tcp_retransmits 7"]
        );
    }

    #[test]
    fn whole_disks_of_old_and_new_kernels() {
        let text =
            " 8 0 sda 1 2 3 4 5 6 7 8 0 9 10\n 8 1 sda1 1 1 1 1 1 1 1 1 1 1 1\n 7 0 loop0 1 1\n\
                    259 0 nvme0n1 1 2 3 4 5 6 7 8 0 9 10 11 12 13 14 15 16\n";
        let told = read(|to| disks(text, |name| name != "sda1", to));
        let of_old = [
            "reads 1",
            "read_bytes 1536",
            "read_ms 4",
            "writes 5",
            "written_bytes 3584",
            "write_ms 8",
            "busy_ms 9",
            "queue_ms 10",
        ];
        assert_eq!(told[..8], of_old.map(|one| format!("disk sda {one}")));
        assert_eq!(
            told[16..],
            ["disk nvme0n1 discards 11", "disk nvme0n1 discard_ms 14"]
        );
    }

    #[test]
    fn disks_and_cards_without_the_layers_above_them() {
        let root = Folder::new();
        for folder in [
            "sda/slaves",
            "dm-0/slaves/sda",
            "nvme0c0n1/slaves",
            "eth0/device",
            "eth1/device",
            "bond0/lower_eth0",
            "docker0",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        root.put("nvme0c0n1/hidden", "1\n");
        let is = |name| is_disk(&root, name);
        let disks = ["sda", "sda1", "dm-0", "nvme0c0n1"].map(is);
        let cards = hardware(&root, vec!["lo", "eth0", "eth1", "bond0", "docker0"]);
        let of_a_container = hardware(&root, vec!["lo", "eth5", "veth1"]);
        assert_eq!(disks, [true, false, false, false]);
        assert_eq!(
            (cards, of_a_container),
            (vec!["eth0", "eth1"], vec!["eth5"])
        );
    }

    #[test]
    fn numbers_of_interfaces() {
        let text = "Inter-| Receive\n face |bytes\n  lo: 1 1 1 1\n eth0:10 11 12 13 0 0 0 0 20 21 22 23 0 0 0 0\n";
        assert_eq!(
            read(|to| interfaces(text, |names| names.into_iter().skip(1).collect(), to)),
            [
                "received_bytes 10",
                "received_packets 11",
                "sent_bytes 20",
                "sent_packets 21",
                "errors 34",
                "drops 36"
            ]
            .map(|one| format!("network eth0 {one}"))
        );
    }

    #[test]
    fn a_file_is_read_again_from_its_beginning() {
        let mut file = Reread::open("/proc/self/stat");
        let first = file.text().unwrap().len();
        assert!(first > 20 && file.text().unwrap().len().abs_diff(first) < 20);
        assert!(Reread::open("/no such file").text().is_none());
    }
}
