//! The version of a JVM, as far as it can be seen from outside.

use crate::jvm::hsperf;
use crate::jvm::symbols::jre_version;
use crate::os::proc::maps::Mapped;
use crate::os::proc::named::Named;

/// The version of a JVM with this `libjvm.so`, where it can be told from outside.
pub fn jvm_version(named: &Named, library: Option<&str>, data: &[Mapped]) -> Option<String> {
    let released = library.and_then(|library| version(named, library));
    let published = released.or_else(|| hsperf::version(named, data));
    published.or_else(|| jre_version(named, library?))
}

/// The JDK's own word: `JAVA_VERSION="17.0.9"` in the file `release` of its home, which not every JDK 8 has.
fn version(named: &Named, library: &str) -> Option<String> {
    let (home, _) = library.rsplit_once("/lib/")?;
    let home = home.strip_suffix("/jre").unwrap_or(home);
    let text = named.text(&format!("{home}/release"))?;
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(version.trim_matches('"').to_owned())
}
