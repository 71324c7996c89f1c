//! The machine's counters as the kernel lists them below `/sys/bus/event_source/devices` and `/proc/cpuinfo`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::os::host::range;
use crate::os::perf_event::Encoding;
use crate::os::proc::read_text;

const MOST_DEVICES: usize = 1000;
const LONGEST: u64 = 64 << 10;
/// One line of `/proc/cpuinfo` has all flags of a processor.
const ONE_PROCESSOR: u64 = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Intel,
    Amd,
    Arm,
    Other,
}

/// A machine below a root: `/`, or a folder with files like those of another machine.
pub struct Machine {
    root: PathBuf,
    devices: Vec<String>,
}

impl Machine {
    pub fn at(root: &Path) -> Self {
        let listed = fs::read_dir(root.join("sys/bus/event_source/devices"));
        let names = listed.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut devices: Vec<String> = names.take(MOST_DEVICES).collect();
        devices.sort_by_key(|name| {
            let number = name.rsplit('_').next().and_then(|word| word.parse().ok());
            (number.unwrap_or(0_u32), name.clone())
        });
        Self {
            root: root.to_owned(),
            devices,
        }
    }

    /// The device of the processor's cores. None: there are no hardware counters.
    pub fn processor(&self) -> Option<Device> {
        let found = self.devices.iter().find(|name| {
            matches!(name.as_str(), "cpu" | "cpu_core")
                || name.starts_with("armv") && name.contains("_pmu")
                || name.starts_with("armv8_")
        });
        found.map(|name| self.device(name))
    }

    /// The device of that name, or the devices `NAME_0`, `NAME_1` …
    pub fn devices(&self, name: &str) -> Vec<Device> {
        let numbered = |other: &str| {
            let rest = other.strip_prefix(name).and_then(|it| it.strip_prefix('_'));
            rest.is_some_and(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit()))
        };
        let all = self.devices.iter();
        let found = all.filter(|other| *other == name || numbered(other));
        found.map(|one| self.device(one)).collect()
    }

    /// The devices that list an event, the processor's cores first.
    pub fn devices_with(&self, event: &str) -> Vec<Device> {
        if let Some(processor) = self.processor().filter(|one| one.event(event).is_some()) {
            return vec![processor];
        }
        let all = self.devices.iter().map(|name| self.device(name));
        all.filter(|one| one.event(event).is_some()).collect()
    }

    fn device(&self, name: &str) -> Device {
        let folder = self.root.join("sys/bus/event_source/devices").join(name);
        Device {
            name: name.to_owned(),
            folder,
        }
    }

    pub fn vendor(&self) -> Vendor {
        let text = self.cpuinfo();
        match () {
            () if text.contains("GenuineIntel") => Vendor::Intel,
            () if text.contains("AuthenticAMD") || text.contains("HygonGenuine") => Vendor::Amd,
            () if self
                .processor()
                .is_some_and(|one| one.name.starts_with("armv")) =>
            {
                Vendor::Arm
            }
            () => Vendor::Other,
        }
    }

    /// The first processor's block.
    pub fn cpuinfo(&self) -> String {
        read_text(self.root.join("proc/cpuinfo"), ONE_PROCESSOR).unwrap_or_default()
    }

    /// Files in which resctrl counts the bytes between the last caches and the memory.
    pub fn memory_traffic(&self) -> Vec<PathBuf> {
        let listed = fs::read_dir(self.root.join("sys/fs/resctrl/mon_data"));
        let folders = listed.into_iter().flatten().flatten();
        let files = folders.map(|entry| entry.path().join("mbm_total_bytes"));
        files.filter(|file| file.is_file()).collect()
    }
}

pub struct Device {
    pub name: String,
    folder: PathBuf,
}

impl Device {
    fn text(&self, name: &str) -> Option<String> {
        let text = read_text(self.folder.join(name), LONGEST)?;
        Some(text.trim().to_owned())
    }

    /// The terms of an event that the kernel lists. The name must be one plain word.
    pub fn event(&self, name: &str) -> Option<String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let is_word = !name.is_empty() && !name.starts_with('.') && name.chars().all(plain);
        is_word.then(|| self.text(&format!("events/{name}")))?
    }

    /// How many of a unit one event stands for: bytes, or microjoules. None: it stands for something else.
    pub fn scale(&self, event: &str, unit: &str) -> Option<f64> {
        let known = self.text(&format!("events/{event}.unit"))?;
        let factor = match (known.as_str(), unit) {
            ("Bytes", "bytes") => 1.0,
            ("MiB", "bytes") => f64::from(1 << 20),
            ("Joules", "microjoules") => 1e6,
            _ => return None,
        };
        let scale: f64 = self.text(&format!("events/{event}.scale"))?.parse().ok()?;
        Some(scale * factor)
    }

    /// A number that the kernel says of the device, such as the slots of a cycle. arm64 writes it in base 16.
    pub fn capability(&self, name: &str) -> Option<u64> {
        let text = self.text(&format!("caps/{name}"))?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// The processors to count on where a device counts for all of its socket. None: it counts for threads.
    pub fn cpus(&self) -> Option<Vec<i32>> {
        let text = self.text("cpumask")?;
        Some(text.split(',').filter_map(range).flatten().collect())
    }

    /// The numbers of terms such as `event=0x3c,umask=0x01`. None: the device has no such terms.
    pub fn encode(&self, terms: &str) -> Option<Encoding> {
        let mut config = [0; 3];
        for term in terms.split(',') {
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            let value = number(value)?;
            let format = self.text(&format!("format/{}", name.trim()))?;
            let (place, fields) = format.split_once(':')?;
            let place = match place {
                "config" => 0,
                "config1" => 1,
                "config2" => 2,
                _ => return None,
            };
            config[place] |= deposit(value, fields)?;
        }
        let kind = self.text("type")?.parse().ok()?;
        Some(Encoding { kind, config })
    }
}

fn number(text: &str) -> Option<u64> {
    match text.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}

/// Put a value into bits such as `0-7,32-35`, its lowest bits first. None: it does not fit.
fn deposit(mut value: u64, fields: &str) -> Option<u64> {
    let mut found = 0;
    for field in fields.split(',') {
        let bits = range(field)?;
        for bit in bits {
            found |= (value & 1) << u32::try_from(bit).ok().filter(|bit| *bit < 64)?;
            value >>= 1;
        }
    }
    (value == 0).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_into_split_fields() {
        assert_eq!(deposit(0x3c, "0-7"), Some(0x3c));
        assert_eq!(deposit(0x1a0, "0-7,32-35"), Some(0x1_0000_00a0));
        assert_eq!(deposit(1, "18"), Some(1 << 18));
        assert_eq!((deposit(0x100, "0-7"), deposit(1, "x")), (None, None));
    }
}
