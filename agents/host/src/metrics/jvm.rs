//! What a HotSpot JVM publishes of its heap, its collectors, its compilers and its safepoints.
//!
//! The file belongs to the JVM's user and may contain anything: places are checked at each reading.

use std::fs::File;

use super::host::Reread;
use super::table::{name_of, Reading, Thing};
use crate::jvm::hsperf;
use crate::wire::events::Kind;

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
        let mut jvm = Thing::new("jvm", id, to);
        for entry in &self.entries {
            let number = bytes.get(entry.place..).and_then(|rest| rest.first_chunk());
            let Some(value) =
                number.and_then(|eight| u64::try_from(i64::from_ne_bytes(*eight)).ok())
            else {
                continue;
            };
            let value = match entry.unit {
                "us" => hsperf::microseconds(value, self.ticks_per_second),
                _ => value,
            };
            jvm.add(&entry.name, entry.kind, entry.unit, value);
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
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::jvm::hsperf::tests::published;
    use crate::metrics::host::tests::told;

    #[test]
    fn what_a_jvm_publishes_is_read_again_and_never_believed() {
        let (file, bytes) = published(&[
            ("sun.os.hrt.frequency", &1_000_000_000u64.to_ne_bytes()),
            ("sun.gc.generation.0.space.0.name", b"eden"),
            ("sun.gc.generation.0.space.0.used", &4096u64.to_ne_bytes()),
            ("sun.gc.generation.1.space.0.name", b"eden"),
            ("sun.gc.generation.1.space.0.used", &8192u64.to_ne_bytes()),
            ("sun.gc.collector.0.name", b"Shenandoah cycles"),
            ("sun.gc.collector.0.time", &5u64.to_ne_bytes()),
            ("sun.gc.collector.1.name", b"G1 old"),
            ("sun.gc.collector.1.time", &5_007_999u64.to_ne_bytes()),
            ("sun.rt.safepoints", &3u64.to_ne_bytes()),
        ]);
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
