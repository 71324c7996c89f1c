//! What a JVM cannot do, known before anything is loaded into it.

use crate::jvm::symbols;
use crate::os::proc::named::Named;
use crate::wire::outcome::{Code, Failure};

/// The first version with what allocations and live objects are sampled by.
const SAMPLES_HEAP: u32 = 11;
/// What allocations are seen by before that: a function of the JVM, by its symbol.
const ALLOC_TRACER: &str = "_ZN11AllocTracer";
/// Releases of the profiler before the first of each pair crash JVMs from the second on (seen).
const KNOWN_BAD: [((u32, u32), u32); 2] = [((4, 0), 25), ((4, 1), 26)];
pub const SYMBOLS: &str = "install the JDK's debug symbols (a package such as openjdk-8-dbg)";

/// Of these events those that the JVM can do, and why not the others. `version` is as the JVM says it, and `library`
/// its `libjvm.so`, where these are known; what is not known is taken to be able.
pub fn events(
    asked: Vec<String>,
    version: Option<&str>,
    library: Option<&str>,
    named: &Named,
) -> (Vec<String>, Vec<Failure>) {
    let old = version.filter(|version| feature(version).is_some_and(|it| it < SAMPLES_HEAP));
    let Some(old) = old else {
        return (asked, Vec::new());
    };
    let without = |name: &str| library.is_some_and(|path| !symbols::has(named, path, name));
    let mut able = Vec::new();
    let mut refused = Vec::new();
    for event in asked {
        match event.as_str() {
            "live" => refused.push(
                Failure::new(
                    format!("live needs JDK {SAMPLES_HEAP} or later, but this is {old}"),
                    "run the application on a later JDK",
                )
                .coded(Code::JdkTooOld),
            ),
            "alloc" if without(ALLOC_TRACER) => refused.push(
                Failure::new(
                    format!("alloc needs the debug symbols of JDK {old}, which are missing"),
                    SYMBOLS,
                )
                .coded(Code::NoDebugSymbols),
            ),
            _ => able.push(event),
        }
    }
    (able, refused)
}

/// Whether a start failed because of allocations alone: of a JVM whose version nothing tells it is not known before.
pub fn only_alloc_fails(failure: &Failure) -> bool {
    failure.reason.contains("AllocTracer")
}

/// Refuse a profiler that is known to crash JVMs of this version. What is not known is taken to be good.
pub fn refuse_known_bad(profiler: Option<&str>, jvm: Option<&str>) -> Result<(), Failure> {
    let (Some(profiler), Some(jvm)) = (profiler, jvm) else {
        return Ok(());
    };
    let (Some(release), Some(version)) = (release(profiler), feature(jvm)) else {
        return Ok(());
    };
    let crashes = |&(before, from): &((u32, u32), u32)| release < before && version >= from;
    match KNOWN_BAD.iter().any(crashes) {
        true => Err(Failure::new(
            format!("async-profiler {profiler} is known to crash JDK {jvm}"),
            "leave --async-profiler out: the shipped library supports all versions",
        )
        .coded(Code::ProfilerTooOld)),
        false => Ok(()),
    }
}

/// (2, 9) of `2.9`.
fn release(profiler: &str) -> Option<(u32, u32)> {
    let (major, minor) = profiler.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// 8 of `1.8.0_412`, 17 of `17.0.9`.
pub fn feature(version: &str) -> Option<u32> {
    let version = version.strip_prefix("1.").unwrap_or(version);
    let end = version.find(|c: char| !c.is_ascii_digit());
    version[..end.unwrap_or(version.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn able(asked: &str, version: &str) -> (Vec<String>, Vec<Failure>) {
        let asked: Vec<String> = asked.split(' ').map(str::to_owned).collect();
        let named = Named::new(std::fs::File::open("/").unwrap().into(), None);
        events(asked, Some(version), Some("/no/libjvm.so"), &named)
    }

    #[test]
    fn versions() {
        for (version, want) in [
            ("1.8.0_412", Some(8)),
            ("17.0.9", Some(17)),
            ("25", Some(25)),
            ("21-ea", Some(21)),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(feature(version), want, "{version}");
        }
    }

    #[test]
    fn a_profiler_that_crashes_is_refused() {
        for (profiler, jvm, good) in [
            ("2.9", "25.0.1", false),
            ("3.0", "26-ea", false),
            ("4.0", "26", false),
            ("4.0", "25.0.2", true),
            ("3.0", "21.0.8", true),
            ("4.4", "26", true),
            ("x", "26", true),
        ] {
            let refused = refuse_known_bad(Some(profiler), Some(jvm));
            assert_eq!(refused.is_ok(), good, "{profiler} {jvm}");
        }
        assert!(refuse_known_bad(None, Some("26")).is_ok());
        assert!(refuse_known_bad(Some("2.9"), None).is_ok());
    }

    #[test]
    fn what_an_old_jvm_cannot_do_is_left_out() {
        let (left, refused) = able("cpu live alloc lock", "1.8.0_412");
        assert_eq!(left, ["cpu", "lock"]);
        assert!(refused[0].reason.contains("live needs JDK 11 or later"));
        assert!(refused[1].remedy.contains("debug symbols"));
        assert!(able("live alloc", "11.0.2").1.is_empty());
        assert!(able("live alloc", "").1.is_empty());
    }
}
