//! What the kernel lets the agent see by perf events.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use crate::engine::api::Note;
use crate::os::proc::read_text;
use crate::os::proc::status::Status;
use crate::os::proc::target::Target;
use crate::wire::outcome::{Code, Failure};

/// A table of the kernel's symbols is not longer, in bytes.
const MOST_SYMBOLS: u64 = 64 << 20;
const KALLSYMS: &str = "/proc/kallsyms";

/// The agent's own rights, and the settings that they depend on; None where one is not to be read.
pub struct Rights {
    /// Whether samples may be taken in the kernel.
    pub kernel: bool,
    root: bool,
    /// Whether it is told the kernel's symbols though users may not know them (CAP_SYSLOG).
    syslog: bool,
    paranoid: Option<i32>,
    restrict: Option<i32>,
    /// Whether the kernel tells it where its functions are.
    symbols: bool,
}

impl Rights {
    /// As they are for the calling thread.
    pub fn of_agent() -> Self {
        let paranoid = setting("perf_event_paranoid");
        let status = Target::own_status();
        let privileged = status.as_ref().is_some_and(Status::may_profile_kernel);
        Self {
            kernel: privileged || paranoid.is_some_and(|level| level <= 1),
            root: status.as_ref().is_some_and(|status| status.uid == 0),
            syslog: status.is_some_and(|status| status.may_see_kernel_symbols()),
            paranoid,
            restrict: setting("kptr_restrict"),
            symbols: File::open(KALLSYMS)
                .and_then(tells_addresses)
                .unwrap_or(false),
        }
    }

    /// What of it a user should know.
    pub fn note(&self) -> Option<Note> {
        if !self.kernel {
            let why = format!("kernel.perf_event_paranoid is {}", told(self.paranoid));
            let remedy = format!(
                "{}, or set kernel.perf_event_paranoid to 1, to see the kernel",
                self.with("CAP_PERFMON")
            );
            return Some(
                Note::plain("user code only")
                    .coded(Code::NoKernelFrames)
                    .because(Failure::new(why, remedy)),
            );
        }
        let unnamed = || {
            Note::plain("kernel functions have no names")
                .coded(Code::NoKernelNames)
                .because(self.no_symbols())
        };
        (!self.symbols).then(unnamed)
    }

    /// The kernel tells them to whoever has CAP_SYSLOG where `kptr_restrict` is 1 or less, and to all who may sample it
    /// (`perf_event_paranoid` 1 or less) where that is 0.
    fn no_symbols(&self) -> Failure {
        let restrict = self.restrict.unwrap_or(0);
        let users_may_sample = self.paranoid.is_some_and(|level| level <= 1);
        let get = self.with("CAP_SYSLOG");
        let open = match users_may_sample {
            true => "kernel.kptr_restrict to 0",
            false => "kernel.kptr_restrict to 0 and kernel.perf_event_paranoid to 1",
        };
        let remedy = match (restrict, self.syslog) {
            (..=0, false) if !users_may_sample => {
                format!("{get}, or set kernel.perf_event_paranoid to 1")
            }
            (1, false) => format!("{get}, or set {open}"),
            (2.., false) => format!("{get} and set kernel.kptr_restrict to 1, or set {open}"),
            (2.., true) => "set kernel.kptr_restrict to 1".to_owned(),
            _ => "check whether a container hides /proc/kallsyms".to_owned(),
        };
        let mut why = format!("kernel.kptr_restrict is {}", told(self.restrict));
        if !self.syslog {
            let level = told(self.paranoid);
            why +=
                &format!(", kernel.perf_event_paranoid {level}, and the agent has no CAP_SYSLOG");
        }
        Failure::new(why, remedy)
    }

    /// How the agent gets a capability.
    fn with(&self, capability: &str) -> String {
        match self.root {
            true => format!("give the agent's container {capability}"),
            false => "use --become sudo".to_owned(),
        }
    }

    /// The kernel's symbols; none where they would be of no use. To be called by the thread whose rights these are.
    pub fn kernel_symbols(&self) -> io::Result<Option<Vec<u8>>> {
        if !(self.kernel && self.symbols) {
            return Ok(None);
        }
        let mut text = Vec::new();
        File::open(KALLSYMS)?
            .take(MOST_SYMBOLS)
            .read_to_end(&mut text)?;
        Ok(Some(text))
    }
}

fn setting(name: &str) -> Option<i32> {
    let text = read_text(format!("/proc/sys/kernel/{name}"), 64)?;
    text.trim().parse().ok()
}

fn told(setting: Option<i32>) -> String {
    setting.map_or("not to be read".to_owned(), |level| level.to_string())
}

/// To whom the kernel does not tell them all addresses are zero. (Some symbols are there on any kernel.)
fn tells_addresses(symbols: impl Read) -> io::Result<bool> {
    let reader = BufReader::new(symbols.take(1 << 20));
    for line in reader.lines().take(20_000) {
        let line = line?;
        let address = line.split(' ').next().unwrap_or_default();
        if address.chars().any(|digit| digit != '0') {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIDDEN: &str = "0000000000000000 T startup_64\n0000000000000000 T do_idle\n";
    const TOLD: &str = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T startup_64\n";

    fn rights(kernel: bool, paranoid: Option<i32>, restrict: i32, table: &str) -> Rights {
        Rights {
            kernel,
            root: false,
            syslog: false,
            paranoid,
            restrict: Some(restrict),
            symbols: tells_addresses(table.as_bytes()).unwrap(),
        }
    }

    #[test]
    fn where_the_kernel_hides_its_addresses_the_remedy_is_what_is_missing() {
        const ROOT: &str = "use --become sudo";
        for (restrict, paranoid, syslog, root, has, has_not) in [
            (
                0,
                2,
                false,
                false,
                &[ROOT, "perf_event_paranoid to 1"][..],
                "kptr_restrict",
            ),
            (
                1,
                1,
                false,
                false,
                &[ROOT, "kptr_restrict to 0"],
                "perf_event_paranoid",
            ),
            (
                1,
                2,
                false,
                false,
                &[
                    ROOT,
                    "kptr_restrict to 0 and kernel.perf_event_paranoid to 1",
                ],
                "kptr_restrict to 1",
            ),
            (1, 2, false, true, &["container CAP_SYSLOG"], ROOT),
            (
                2,
                1,
                false,
                false,
                &["use --become sudo and set kernel.kptr_restrict to 1"],
                "paranoid",
            ),
            (2, 1, true, true, &["set kernel.kptr_restrict to 1"], "or"),
            (0, 1, false, false, &["/proc/kallsyms"], "set"),
            (1, 2, true, true, &["/proc/kallsyms"], "set"),
        ] {
            for table in [HIDDEN, ""] {
                let rights = Rights {
                    syslog,
                    root,
                    ..rights(true, Some(paranoid), restrict, table)
                };
                let note = rights.note().unwrap();
                assert_eq!(note.text, "kernel functions have no names");
                assert!(
                    note.why.contains(&format!("kptr_restrict is {restrict}")),
                    "{note:?}"
                );
                assert!(
                    has.iter().all(|word| note.remedy.contains(word)),
                    "{note:?}"
                );
                assert!(!note.remedy.contains(has_not), "{note:?}");
            }
        }
        assert_eq!(rights(true, Some(1), 0, TOLD).note(), None);
    }

    #[test]
    fn without_samples_of_the_kernel_its_names_do_not_matter() {
        for (level, word) in [(Some(2), "is 2"), (None, "not to be read")] {
            let note = rights(false, level, 1, HIDDEN).note().unwrap();
            assert!(note.why.contains("kernel.perf_event_paranoid") && note.why.contains(word));
            assert!(note.remedy.contains("kernel.perf_event_paranoid to 1"));
            assert!(!note.why.contains("kptr_restrict"), "{note:?}");
        }
    }
}
