//! What a HotSpot JVM publishes in `hsperfdata`, read without touching it.
//!
//! The file belongs to the JVM's user and may contain anything: every offset is checked.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use crate::os::proc::maps::Mapped;
use crate::os::proc::named::Named;

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const LIMIT: u64 = 4 << 20;
const MAX_ENTRIES: u32 = 20_000;
/// A JVM has at most three collectors.
const MAX_COLLECTORS: usize = 8;
/// How names of ParallelGC's young collector begin, up to JDK 11 and in later ones.
const PARALLEL: [&str; 2] = ["PSScavenge", "Parallel young"];

pub fn is_data(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    parts.next().is_some_and(|name| name.parse::<u32>().is_ok())
        && parts
            .next()
            .is_some_and(|folder| folder.starts_with("hsperfdata_"))
}

/// The startup options and flags that the JVM publishes. Empty: it publishes nothing.
pub fn options(named: &Named, mapped: &[Mapped]) -> Vec<String> {
    let Some(bytes) = find(named, mapped) else {
        return Vec::new();
    };
    // Flags from a file are there as in that file, without the `-XX:`.
    let flags = text_entry(&bytes, "java.rt.vmFlags").unwrap_or_default();
    let flags = flags
        .split_ascii_whitespace()
        .map(|flag| format!("-XX:{flag}"));
    let arguments = text_entry(&bytes, "java.rt.vmArgs").unwrap_or_default();
    flags
        .chain(arguments.split_ascii_whitespace().map(str::to_owned))
        .collect()
}

/// The version of a JVM with this `libjvm.so`, from its JDK's file `release`, which not every JDK 8 has, or from what
/// it publishes.
pub fn jvm_version(named: &Named, library: Option<&str>, mapped: &[Mapped]) -> Option<String> {
    let released = library.and_then(|library| {
        let (home, _) = library.rsplit_once("/lib/")?;
        let home = home.strip_suffix("/jre").unwrap_or(home);
        let text = named.text(&format!("{home}/release"))?;
        let mut lines = text.lines();
        let version = lines.find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
        Some(version.trim_matches('"').to_owned())
    });
    released.or_else(|| text_entry(&find(named, mapped)?, "java.property.java.version"))
}

/// The names of the JVM and of its vendor.
pub fn maker(named: &Named, mapped: &[Mapped]) -> Option<(String, String)> {
    let bytes = find(named, mapped)?;
    let text = |name: &str| text_entry(&bytes, &format!("java.property.java.vm.{name}"));
    Some((text("name")?, text("vendor")?))
}

fn find(named: &Named, mapped: &[Mapped]) -> Option<Vec<u8>> {
    open(named, mapped).map(|(_, bytes)| bytes)
}

/// The file that the JVM maps, and its content. A file with that name may belong to a JVM with the same pid in another
/// pid namespace that shares the folder.
pub fn open(named: &Named, mapped: &[Mapped]) -> Option<(File, Vec<u8>)> {
    mapped.iter().find_map(|mapped| {
        let file = named.open_mapped(mapped)?;
        let mut bytes = Vec::new();
        (&file).take(LIMIT).read_to_end(&mut bytes).ok()?;
        Some((file, bytes))
    })
}

/// The values of these counters. None: one is missing or negative.
pub fn numbers<const N: usize>(
    named: &Named,
    mapped: &[Mapped],
    names: [&str; N],
) -> Option<[u64; N]> {
    let bytes = find(named, mapped)?;
    let values = names.map(|name| long_entry(&bytes, name));
    values
        .iter()
        .all(Option::is_some)
        .then(|| values.map(Option::unwrap_or_default))
}

/// How often the collectors have run, by the file that the JVM publishes. None: it does not say. `young_first`: a full
/// collection of ParallelGC begins with a young one, and is not counted again.
pub fn collections(published: &File, young_first: bool) -> Option<u64> {
    let size = published.metadata().ok()?.len().min(LIMIT);
    let mut bytes = vec![0; size as usize];
    published.read_exact_at(&mut bytes, 0).ok()?;
    let name = text_entry(&bytes, "sun.gc.collector.0.name").unwrap_or_default();
    let is_parallel = PARALLEL.iter().any(|begin| name.starts_with(begin));
    let run = |number| long_entry(&bytes, &format!("sun.gc.collector.{number}.invocations"));
    let counted =
        (0..MAX_COLLECTORS).filter(|&number| number != 1 || !(young_first && is_parallel));
    let run: Vec<u64> = counted.filter_map(run).collect();
    (!run.is_empty()).then(|| run.into_iter().fold(0, u64::saturating_add))
}

pub fn text_entry(bytes: &[u8], name: &str) -> Option<String> {
    let value = until_zero(value(bytes, name)?);
    Some(String::from_utf8_lossy(value).into_owned())
}

pub fn long_entry(bytes: &[u8], name: &str) -> Option<u64> {
    let eight = value(bytes, name)?.get(..8)?;
    u64::try_from(i64::from_ne_bytes(eight.try_into().ok()?)).ok()
}

/// A time that the JVM counts in ticks, in microseconds.
pub fn microseconds(ticks: u64, ticks_per_second: u64) -> u64 {
    let time = u128::from(ticks) * 1_000_000 / u128::from(ticks_per_second);
    u64::try_from(time).unwrap_or(u64::MAX)
}

/// The value of an entry, and what follows it.
fn value<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    bytes.get(place(bytes, name)?..)
}

/// Where the value of an entry begins. Only the machine's byte order is read.
pub fn place(bytes: &[u8], name: &str) -> Option<usize> {
    if bytes.get(..4)? != MAGIC {
        return None;
    }
    let mut at = number(bytes, 24)? as usize;
    for _ in 0..number(bytes, 28)?.min(MAX_ENTRIES) {
        let length = number(bytes, at)? as usize;
        let entry = bytes.get(at..at.checked_add(length.max(20))?)?;
        if until_zero(entry.get(number(entry, 4)? as usize..)?) == name.as_bytes() {
            return at.checked_add(number(entry, 16)? as usize);
        }
        at += entry.len();
    }
    None
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::os::files::tests::Folder;

    /// What a JVM with these entries publishes.
    pub fn content(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(24, 0);
        bytes.extend(32u32.to_ne_bytes());
        bytes.extend((entries.len() as u32).to_ne_bytes());
        for (name, value) in entries {
            let data = 20 + name.len() + 1;
            let length = data + value.len() + 1;
            bytes.extend((length as u32).to_ne_bytes());
            bytes.extend(20u32.to_ne_bytes());
            bytes.extend([0; 8]);
            bytes.extend((data as u32).to_ne_bytes());
            bytes.extend([name.as_bytes(), b"\0", value, b"\0"].concat());
        }
        bytes
    }

    /// A file of it, whose name is gone.
    pub fn published(entries: &[(&str, &[u8])]) -> (File, Vec<u8>) {
        let bytes = content(entries);
        let folder = Folder::new();
        let mut options = File::options();
        let open = options.read(true).write(true);
        (open.open(folder.put("7", &bytes)).unwrap(), bytes)
    }

    fn file(entries: &[(&str, &str)]) -> Vec<u8> {
        let entries = entries
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()));
        content(&entries.collect::<Vec<_>>())
    }

    #[test]
    fn which_files_it_is() {
        for (path, is) in [
            ("/tmp/hsperfdata_yarn/7", true),
            ("/tmp/hsperfdata_yarn/7x", false),
            ("/tmp/perfdata/7", false),
            ("/7", false),
        ] {
            assert_eq!(is_data(path), is, "{path}");
        }
    }

    #[test]
    fn an_entry_by_its_name() {
        let bytes = file(&[("a", "1"), ("java.rt.vmArgs", "-Xmx1g -XX:+X"), ("b", "2")]);
        assert_eq!(
            text_entry(&bytes, "java.rt.vmArgs").as_deref(),
            Some("-Xmx1g -XX:+X")
        );
        assert_eq!(text_entry(&bytes, "java.rt"), None);
        let number = |text| long_entry(&file(&[("n", text)]), "n");
        assert_eq!(
            number("\u{5}\0\0\0\0\0\0\0"),
            cfg!(target_endian = "little").then_some(5)
        );
        assert_eq!(number("\0\0\0"), None);
    }

    #[test]
    fn collections_of_all_collectors() {
        let (file, _) = published(&[
            ("sun.gc.collector.0.invocations", &7u64.to_ne_bytes()),
            ("sun.gc.collector.2.invocations", &3u64.to_ne_bytes()),
        ]);
        assert_eq!(collections(&file, true), Some(10));
        assert_eq!(collections(&published(&[]).0, true), None);
        let (file, _) = published(&[
            ("sun.gc.collector.0.name", b"PSScavenge"),
            ("sun.gc.collector.0.invocations", &7u64.to_ne_bytes()),
            ("sun.gc.collector.1.invocations", &3u64.to_ne_bytes()),
        ]);
        assert_eq!(
            [true, false].map(|young_first| collections(&file, young_first)),
            [Some(7), Some(10)]
        );
    }

    #[test]
    fn a_damaged_file_is_none() {
        let whole = file(&[("a", "1"), ("b", "2")]);
        for end in 0..whole.len() {
            text_entry(&whole[..end], "zz");
        }
        let mut endless = file(&[("a", "1")]);
        endless[28..32].fill(0xff);
        endless[32..36].fill(0);
        assert_eq!(text_entry(&endless, "zz"), None);
    }
}
