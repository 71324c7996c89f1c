//! What a HotSpot JVM publishes of its heap, its collectors, its compilers and its safepoints.
//!
//! The file belongs to the JVM's user and may contain anything: places are checked at each reading.

use std::fs::File;

use super::host::Reread;
use super::table::{name_of, Kind, Reading};
use crate::jvm::hsperf;

const MOST_COLLECTORS: usize = 4;
/// The file has 32 KiB unless the JVM was told otherwise. All of it is read each time.
const LARGEST: u64 = 256 << 10;
const MOST_SPACES: usize = 4;

struct Entry {
    name: String,
    kind: Kind,
    unit: &'static str,
    place: usize,
}

pub struct Jvm {
    file: Reread,
    entries: Vec<Entry>,
    ticks_per_second: u64,
}

impl Jvm {
    /// None: it publishes nothing of this.
    pub fn open(file: File) -> Option<Self> {
        let size = file.metadata().ok()?.len();
        let mut file = Reread::of((size <= LARGEST).then_some(file));
        let bytes = file.bytes()?;
        let ticks_per_second = hsperf::long_entry(bytes, "sun.os.hrt.frequency")?;
        let entries = entries(bytes);
        (ticks_per_second > 0 && !entries.is_empty()).then_some(Self {
            file,
            entries,
            ticks_per_second,
        })
    }

    pub fn read(&mut self, id: &str, to: &mut Vec<Reading>) {
        let Some(bytes) = self.file.bytes() else {
            return;
        };
        for entry in &self.entries {
            let number = bytes.get(entry.place..).and_then(|rest| rest.first_chunk());
            let Some(value) =
                number.and_then(|eight| u64::try_from(i64::from_ne_bytes(*eight)).ok())
            else {
                continue;
            };
            let value = match entry.unit {
                "us" => {
                    let time = u128::from(value) * 1_000_000 / u128::from(self.ticks_per_second);
                    u64::try_from(time).unwrap_or(u64::MAX)
                }
                _ => value,
            };
            to.push(Reading {
                of: "jvm",
                id: id.to_owned(),
                name: entry.name.clone(),
                kind: entry.kind,
                unit: entry.unit,
                value,
            });
        }
    }
}

fn entries(bytes: &[u8]) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let mut add = |name: String, kind, unit, key: &str| {
        let twice = found.iter().any(|one| one.name == name);
        if let (Some(place), false) = (hsperf::place(bytes, key), twice) {
            found.push(Entry {
                name,
                kind,
                unit,
                place,
            });
        }
    };
    let mut spaces = Vec::new();
    for generation in 0..2 {
        for space in 0..MOST_SPACES {
            let key = format!("sun.gc.generation.{generation}.space.{space}");
            if let Some(name) = hsperf::text_entry(bytes, &format!("{key}.name")) {
                for what in ["used", "capacity"] {
                    // Both generations of ZGC have a space called "space".
                    let end = if generation > 0 && spaces.contains(&name) {
                        "_old"
                    } else {
                        ""
                    };
                    let name = name_of(&format!("{what}_"), &name, end);
                    add(name, Kind::Gauge, "bytes", &format!("{key}.{what}"));
                }
                spaces.push(name);
            }
        }
    }
    for (name, key) in [
        ("metaspace", "metaspace"),
        ("class", "compressedclassspace"),
    ] {
        for what in ["used", "capacity"] {
            add(
                format!("{what}_{name}"),
                Kind::Gauge,
                "bytes",
                &format!("sun.gc.{key}.{what}"),
            );
        }
    }
    for collector in 0..MOST_COLLECTORS {
        let key = format!("sun.gc.collector.{collector}");
        // Shenandoah's times are those of its cycles, in which the program runs on.
        let name = hsperf::text_entry(bytes, &format!("{key}.name"));
        if let Some(name) = name.filter(|name| !name.starts_with("Shenandoah")) {
            let count = name_of("collections_", &name, "");
            add(count, Kind::Counter, "count", &format!("{key}.invocations"));
            add(
                name_of("gc_", &name, "_us"),
                Kind::Counter,
                "us",
                &format!("{key}.time"),
            );
        }
    }
    for (name, unit, key) in [
        ("safepoints", "count", "sun.rt.safepoints"),
        ("safepoint_us", "us", "sun.rt.safepointTime"),
        ("safepoint_sync_us", "us", "sun.rt.safepointSyncTime"),
        ("jit_us", "us", "java.ci.totalTime"),
    ] {
        add(name.to_owned(), Kind::Counter, unit, key);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::metrics::host::tests::told;

    fn published() -> (File, Vec<u8>) {
        let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0];
        bytes.resize(24, 0);
        bytes.extend(32u32.to_ne_bytes());
        bytes.extend(10u32.to_ne_bytes());
        let mut add = |name: &str, value: &[u8]| {
            let data = (20 + name.len() + 1).next_multiple_of(8);
            let length = (data + value.len()).next_multiple_of(8);
            let mut entry = Vec::new();
            for number in [length as u32, 20, 0, 0, data as u32] {
                entry.extend(number.to_ne_bytes());
            }
            entry.extend(name.bytes());
            entry.resize(data, 0);
            entry.extend(value);
            entry.resize(length, 0);
            bytes.extend(entry);
        };
        add("sun.os.hrt.frequency", &1_000_000_000u64.to_ne_bytes());
        add("sun.gc.generation.0.space.0.name", b"eden\0");
        add("sun.gc.generation.0.space.0.used", &4096u64.to_ne_bytes());
        add("sun.gc.generation.1.space.0.name", b"eden\0");
        add("sun.gc.generation.1.space.0.used", &8192u64.to_ne_bytes());
        add("sun.gc.collector.0.name", b"Shenandoah cycles\0");
        add("sun.gc.collector.0.time", &5u64.to_ne_bytes());
        add("sun.gc.collector.1.name", b"G1 old\0");
        add("sun.gc.collector.1.time", &5_007_999u64.to_ne_bytes());
        add("sun.rt.safepoints", &3u64.to_ne_bytes());
        let path = std::env::temp_dir().join(format!("hprofiler-published-{}", std::process::id()));
        let open = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path);
        let mut file = open.unwrap();
        std::fs::remove_file(path).unwrap();
        file.write_all(&bytes).unwrap();
        (file, bytes)
    }

    #[test]
    fn what_a_jvm_publishes_is_read_again_and_never_believed() {
        let (file, bytes) = published();
        let mut jvm = Jvm::open(file.try_clone().unwrap()).unwrap();
        let mut read = || {
            let mut to = Vec::new();
            jvm.read("7", &mut to);
            told(&to)
        };
        assert_eq!(
            read(),
            [
                "jvm 7 used_eden 4096",
                "jvm 7 used_eden_old 8192",
                "jvm 7 gc_g1_old_us 5007",
                "jvm 7 safepoints 3"
            ]
        );
        let place = hsperf::place(&bytes, "sun.rt.safepoints").unwrap() as u64;
        file.write_all_at(&4u64.to_ne_bytes(), place).unwrap();
        assert_eq!(read()[3], "jvm 7 safepoints 4");
        file.write_all_at(&(-4i64).to_ne_bytes(), place).unwrap();
        assert_eq!(read().len(), 3);
        file.set_len(60).unwrap();
        assert_eq!(read(), [""; 0]);
        assert!(Jvm::open(file).is_none());
    }
}
