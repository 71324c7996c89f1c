//! A JVM's own account of its memory: what it publishes, and small commands that it answers without a pause.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::jvm::attach::Attach;
use crate::jvm::hsperf::{self, long_entry};
use crate::jvm::preflight::{refuse_no_attach, Findings};
use crate::os::identity::Namespaces;
use crate::os::proc::target::Target;
use crate::wire::memory::{ClassMemory, Histogram, JvmMemory};
use crate::wire::outcome::{Code, Failure};

/// How long a JVM may take for its small answers together, and for its histogram.
const ANSWERS: Duration = Duration::from_secs(8);
const HISTOGRAM: Duration = Duration::from_secs(100);
const GENERATIONS: usize = 2;
const SPACES: usize = 4;
/// Flags that limit memory, or say how the heap is used.
const FLAGS: [&str; 8] = [
    "MaxHeapSize",
    "InitialHeapSize",
    "MaxDirectMemorySize",
    "MaxMetaspaceSize",
    "CompressedClassSpaceSize",
    "ReservedCodeCacheSize",
    "ThreadStackSize",
    "AlwaysPreTouch",
];
const TRACKING: &str = "-XX:NativeMemoryTracking=";
const MOST_CATEGORIES: usize = 64;
/// The most classes that are named, and the longest histogram that is read, in bytes.
const MOST_CLASSES: usize = 200;
const LONGEST: usize = 16 << 20;

/// What a JVM said, and why it said no more.
#[derive(Default)]
pub struct Said {
    pub memory: JvmMemory,
    pub heap: Option<Range<u64>>,
    /// How much of the metaspace was touched.
    pub metaspace: u64,
    pub failure: Option<Failure>,
}

/// To be called on a thread of its own, which takes the JVM's user and files.
pub fn ask(target: &Target, findings: &Findings, histogram: bool) -> Result<Said, Failure> {
    let namespaces = Namespaces::enter(target)?;
    let published = hsperf::open(&namespaces.named, &findings.performance_data);
    let mut said = Said::default();
    if let Some((_, bytes)) = &published {
        publishes(bytes, &mut said.memory);
        said.metaspace = said.memory.metaspace_used.unwrap_or(0);
    }
    let options = findings.options(&namespaces.named);
    said.failure = refuse_no_attach(target.pid, &options)
        .and_then(|()| {
            let attach = Attach::new(target, &namespaces).within(ANSWERS);
            answers(&attach, &mut said)
        })
        .and_then(|()| {
            if histogram {
                let attach = Attach::new(target, &namespaces).within(HISTOGRAM);
                let published = published.as_ref().map(|(file, _)| file);
                said.memory.histogram = Some(objects(&attach, published)?);
            }
            Ok(())
        })
        .err();
    Ok(said)
}

fn publishes(bytes: &[u8], memory: &mut JvmMemory) {
    let sum = |names: Vec<String>| {
        let values = names.iter().filter_map(|name| long_entry(bytes, name));
        values.reduce(u64::saturating_add)
    };
    let generation = |number| format!("sun.gc.generation.{number}");
    let spaces = (0..GENERATIONS).flat_map(|number| {
        (0..SPACES).map(move |space| format!("{}.space.{space}.used", generation(number)))
    });
    memory.heap_used = sum(spaces.collect());
    let generations = (0..GENERATIONS).map(|number| format!("{}.capacity", generation(number)));
    memory.heap_committed = sum(generations.collect());
    memory.metaspace_used = long_entry(bytes, "sun.gc.metaspace.used");
    memory.metaspace_committed = long_entry(bytes, "sun.gc.metaspace.capacity");
}

fn answers(attach: &Attach, said: &mut Said) -> Result<(), Failure> {
    let command = |command: &str| {
        let (done, text) = attach.command(command, ANSWERS)?;
        Ok::<_, Failure>(if done { text } else { String::new() })
    };
    let text = command("GC.heap_info")?;
    said.heap = heap(&text);
    said.memory.heap_found = said.heap.is_some();
    // What is published may be as old as the last collection.
    said.memory.heap_used = generations_used(&text).or(said.memory.heap_used);
    let metaspace = match metaspace(&text) {
        None => metaspace(&command("VM.metaspace basic")?), // JDK 25 says it only there
        said => said,
    };
    if let Some([used, committed, touched]) = metaspace {
        said.memory.metaspace_used = Some(used);
        said.memory.metaspace_committed = Some(committed);
        said.metaspace = touched;
    }
    let text = command("VM.flags")?;
    said.memory.flags = flags(&text);
    let tracks = text.split_ascii_whitespace().any(|word| {
        word.strip_prefix(TRACKING)
            .is_some_and(|level| level != "off")
    });
    if tracks {
        said.memory.native = native(&command("VM.native_memory summary")?);
    }
    Ok(())
}

/// The addresses of the heap, from the first to the last of `[0x…, 0x…)` in `GC.heap_info`.
fn heap(text: &str) -> Option<Range<u64>> {
    let places = text.split('[').skip(1).filter_map(|rest| {
        let (inside, _) = rest.split_once(')')?;
        let hex = |word: &str| u64::from_str_radix(word.trim().strip_prefix("0x")?, 16).ok();
        let first = hex(inside.split(',').next()?)?;
        Some(first..hex(inside.rsplit(',').next()?)?)
    });
    places.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))
}

/// Of collectors that divide their heap by addresses: `NAME total 76288K, used 24412K [0x…`.
fn generations_used(text: &str) -> Option<u64> {
    let lines = text
        .lines()
        .filter(|line| line.contains(" total ") && line.contains("[0x"));
    let used = lines.map(|line| kibibytes(line, "used "));
    used.reduce(|all, one| all?.checked_add(one?)).flatten()
}

/// What is used, what is committed, and what was touched. JDK 16 and later touch all that they commit; earlier ones,
/// which have a capacity, commit more than they touch.
fn metaspace(text: &str) -> Option<[u64; 3]> {
    let mut lines = text.lines().map(str::trim_start);
    let line = lines.find(|line| line.starts_with("Metaspace ") && line.contains("committed"))?;
    let (used, committed) = (kibibytes(line, "used ")?, kibibytes(line, "committed ")?);
    let touched = if line.contains("capacity") {
        used
    } else {
        committed
    };
    Some([used, committed, touched])
}

/// In bytes.
fn kibibytes(line: &str, after: &str) -> Option<u64> {
    let (number, _) = line.split_once(after)?.1.split_once('K')?;
    number.parse::<u64>().ok()?.checked_mul(1024)
}

fn flags(text: &str) -> BTreeMap<String, u64> {
    let words = text.split_ascii_whitespace();
    let set = words.filter_map(|word| {
        let flag = word.strip_prefix("-XX:")?;
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value.parse().ok()?),
            None => (flag.strip_prefix('+')?, 1),
        };
        let is_collector = name.starts_with("Use") && name.ends_with("GC");
        (FLAGS.contains(&name) || is_collector).then(|| (name.to_owned(), value))
    });
    set.collect()
}

/// Committed bytes by category.
fn native(text: &str) -> BTreeMap<String, u64> {
    let categories = text.lines().filter_map(|line| {
        let (name, amounts) = line.strip_prefix('-')?.split_once(" (reserved=")?;
        let (_, committed) = amounts.split_once("committed=")?;
        let (kibibytes, _) = committed.split_once("KB")?;
        Some((
            name.trim().to_owned(),
            kibibytes.parse::<u64>().ok()?.saturating_mul(1024),
        ))
    });
    categories.take(MOST_CATEGORIES).collect()
}

fn objects(attach: &Attach, published: Option<&File>) -> Result<Histogram, Failure> {
    let (before, began) = (stood_still(published), Instant::now());
    let text = attach.histogram(HISTOGRAM, LONGEST)?;
    let took = began.elapsed().as_secs_f64();
    let stood = before.zip(stood_still(published));
    let seconds = stood.map_or(took, |(before, after)| (after - before).clamp(0.0, took));
    histogram(&text, seconds)
        .ok_or_else(|| Failure::plain("its histogram was cut off").coded(Code::Failed))
}

/// For how long the JVM has stood still since its start, in seconds.
fn stood_still(published: Option<&File>) -> Option<f64> {
    let mut bytes = vec![0; published?.metadata().ok()?.len().min(4 << 20) as usize];
    published?.read_exact_at(&mut bytes, 0).ok()?;
    let ticks = long_entry(&bytes, "sun.rt.safepointTime")?;
    let per_second = long_entry(&bytes, "sun.os.hrt.frequency").filter(|&number| number > 0)?;
    Some(ticks as f64 / per_second as f64)
}

/// None: it has no line with the total.
fn histogram(text: &str, seconds: f64) -> Option<Histogram> {
    let mut classes = Vec::new();
    let mut total = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let (Some(objects), Some(bytes)) = (number(), number()) else {
            continue;
        };
        match words.next() {
            Some(name) if first.ends_with(':') && classes.len() < MOST_CLASSES => {
                let name = name.chars().take(1000).collect();
                classes.push(ClassMemory {
                    name,
                    objects,
                    bytes,
                });
            }
            None if first == "Total" => total = Some((objects, bytes)),
            _ => {}
        }
    }
    let (objects, bytes) = total?;
    Some(Histogram {
        seconds,
        objects,
        bytes,
        classes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_heap_is() {
        for (text, want) in [
            (
                "garbage-first heap   total 389120K, used 125532K [0x00000000e0000000, 0x00000000e0100800, 0x0000000100000000)\n",
                Some(0xe000_0000..0x1_0000_0000),
            ),
            (
                " PSYoungGen      total 76288K, used 24412K [0x00000000fab00000, 0x0000000100000000, 0x0000000100000000)\n\
                 \x20 eden space 65536K, 37% used [0x00000000fab00000,0x00000000fc2d7240,0x00000000feb00000)\n\
                 \x20ParOldGen       total 175104K, used 0K [0x00000000f0000000, 0x00000000fab00000, 0x00000000fab00000)\n",
                Some(0xf000_0000..0x1_0000_0000),
            ),
            (
                "Reserved region:\n - [0x00000000f0000000, 0x0000000100000000) \n - map (vanilla): 0x0000000000013c00\n",
                Some(0xf000_0000..0x1_0000_0000),
            ),
            (" ZHeap           used 30M, capacity 256M, max capacity 256M\n", None),
        ] {
            assert_eq!(heap(text), want, "{text}");
        }
    }

    #[test]
    fn what_is_used_now() {
        let parallel = " PSYoungGen      total 76288K, used 3K [0x00000000fab00000, 0x0000000100000000)\n\
                        \x20 eden space 65536K, 37% used [0x00000000fab00000,0x00000000feb00000)\n\
                        \x20ParOldGen       total 175104K, used 4K [0x00000000f0000000, 0x00000000fab00000)\n\
                        \x20Metaspace       used 5K, capacity 9K, committed 6K, reserved 1056768K\n";
        assert_eq!(generations_used(parallel), Some(7 << 10));
        assert_eq!(metaspace(parallel), Some([5 << 10, 6 << 10, 5 << 10]));
        let later = "Metaspace        used 5K, committed 6K, reserved 1114112K\n";
        assert_eq!(metaspace(later), Some([5 << 10, 6 << 10, 6 << 10]));
        let first = "garbage-first heap   total reserved 262144K, committed 262144K, used 6K [0x00000000f0000000, 0x0000000100000000)\n";
        assert_eq!(
            (generations_used(first), metaspace(first)),
            (Some(6 << 10), None)
        );
        let other = " ZHeap           used 30M, capacity 256M, max capacity 256M\n";
        assert_eq!((generations_used(other), metaspace(other)), (None, None));
    }

    #[test]
    fn flags_that_limit_memory() {
        let text = "-XX:CICompilerCount=2 -XX:MaxHeapSize=536870912 -XX:-UseNUMA -XX:+UseG1GC -XX:+AlwaysPreTouch";
        let want = [
            ("AlwaysPreTouch", 1),
            ("MaxHeapSize", 512 << 20),
            ("UseG1GC", 1),
        ];
        assert_eq!(
            flags(text),
            BTreeMap::from(want.map(|(name, value)| (name.to_owned(), value)))
        );
    }

    #[test]
    fn what_the_jvm_tracks() {
        let text = "Total: reserved=2142761KB, committed=639849KB\n\
                    -                 Java Heap (reserved=524288KB, committed=389120KB)\n\
                    \x20                           (mmap: reserved=524288KB, committed=389120KB) \n\
                    -                     Other (reserved=8KB, committed=4KB)\n";
        let want = [("Java Heap", 389_120 << 10), ("Other", 4096)];
        assert_eq!(
            native(text),
            BTreeMap::from(want.map(|(name, value)| (name.to_owned(), value)))
        );
    }

    #[test]
    fn objects_by_class() {
        let text = " num     #instances         #bytes  class name (module)\n\
                    -------------------------------------------------------\n\
                    \x20  1:         23710      104940072  [B (java.base@17.0.20)\n\
                    \x20  2:          1000          24000  a.Thing\n\
                    Total         24710      104964072\n";
        let found = histogram(text, 0.5).unwrap();
        assert_eq!((found.objects, found.bytes), (24_710, 104_964_072));
        let names: Vec<&str> = found.classes.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["[B", "a.Thing"]);
        assert_eq!(histogram("1: 2 3 a.Thing\n", 0.5), None);
    }
}
